"""What wire and disk do without a protocol."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from pathlib import Path

from lab.ports import LOOPBACK

CHUNK_BYTES = 4 << 20


def floor(megabytes: int, folder: Path) -> float:
    """MB/s of a file that is sent over loopback and written to another file: no protocol at all."""
    size = megabytes * 10**6
    with tempfile.TemporaryFile(dir=folder) as source, tempfile.TemporaryFile(dir=folder) as target:
        source.write(os.urandom(10**6) * megabytes)
        source.flush()
        with socket.create_server((LOOPBACK, 0)) as listener:
            thread = threading.Thread(target=_send_file, args=(listener, source.fileno(), size))
            thread.start()
            began = time.perf_counter()
            with socket.create_connection(listener.getsockname()) as connection:
                left = size
                while left:
                    piece = connection.recv(CHUNK_BYTES)
                    target.write(piece)
                    left -= len(piece)
            target.flush()
            took = time.perf_counter() - began
            thread.join()
    return megabytes / took


def _send_file(listener: socket.socket, source: int, size: int) -> None:
    connection, _ = listener.accept()
    with connection:
        at = 0
        while at < size:
            at += os.sendfile(connection.fileno(), source, at, size - at)
