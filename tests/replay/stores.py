"""An S3 store on the loopback interface, and a way to it that loses answers."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

HOST = "127.0.0.1"
BUCKET = "captures"
SECRET = "whoever-reads-this"
ANSWER_S_MAXIMUM = 30.0
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"
# The parts of Amazon's SDK that Hadoop's S3A loads; its bundle of all services is thirty times as large.
SDK = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
SDK_VERSION = "2.35.4"
_STARTED = re.compile(r"Running on (http://\S+)")
_PASSED_ON = ("content-length", "content-range", "content-type", "etag", "last-modified", "accept-ranges")


def settings(endpoint: str) -> list[str]:
    """Options of `replispec replay` that let Spark read this endpoint."""
    named = {
        "spark.jars.packages": ",".join(
            [HADOOP_AWS, *(f"software.amazon.awssdk:{name}:{SDK_VERSION}" for name in SDK)]
        ),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "any",
        "spark.hadoop.fs.s3a.secret.key": SECRET,
    }
    return [word for name, value in named.items() for word in ("--spark-setting", f"{name}={value}")]


@contextmanager
def s3_store(files: Mapping[str, Path]) -> Iterator[str]:
    """The endpoint of a store whose BUCKET holds these files by their keys."""
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            started = next(found for line in process.stderr if (found := _STARTED.search(line)))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            _put(f"{started[1]}/{BUCKET}", b"")
            for key, path in files.items():
                _put(f"{started[1]}/{BUCKET}/{key}", path.read_bytes())
            yield started[1]
        finally:
            process.terminate()


def _put(url: str, content: bytes) -> None:
    # Without a type urllib calls it a form, which the store would wait to read.
    typed = {"Content-Type": "application/octet-stream"}
    with urlopen(Request(url, content, typed, method="PUT"), timeout=ANSWER_S_MAXIMUM) as answer:
        assert answer.status == 200


@dataclass
class Lossy:
    """`endpoint`: a way to a store, which cuts the first answer with the bytes of each file in half.

    `asked`: how often each file was asked for; `given`: bytes of files that went through.
    """

    endpoint: str = ""
    asked: dict[str, int] = field(default_factory=dict)
    given: int = 0


@contextmanager
def lossy_way(store: str) -> Iterator[Lossy]:
    """A way to a store that loses answers."""
    lossy = Lossy()

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            try:
                answer = urlopen(
                    Request(store + self.path, headers=headers, method=self.command), timeout=ANSWER_S_MAXIMUM
                )
            except HTTPError as error:
                answer = error
            with answer:
                content = answer.read()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() in _PASSED_ON:
                        self.send_header(name, value)
                self.end_headers()
            if self.command == "GET" and self.path.partition("?")[0].endswith(".pcap"):
                times = lossy.asked[self.path] = lossy.asked.get(self.path, 0) + 1
                content = content if times > 1 else content[: len(content) // 2]
                lossy.given += len(content)
                self.close_connection = True
            self.wfile.write(content)

        do_GET = do_HEAD = _pass_on  # noqa: N815 (names of the library)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    lossy.endpoint = f"http://{HOST}:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield lossy
    finally:
        server.shutdown()
        server.server_close()
