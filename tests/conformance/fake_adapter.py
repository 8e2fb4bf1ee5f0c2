"""An adapter in a few lines that says what it is told to say, for tests of who listens to it.

`scripted` makes its command: after each request it writes the next of the given answers. It is started with
`-S -E`, so that it costs little.
"""

import sys

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.runtime.documents import official_seam
from replispec.runtime.documents.delimited import delimited

HANG, IGNORE_END, CHILD, ORPHAN = "hang", "ignore-end", "child", "orphan"
TELL = "tell"
"""With a path: a request is taken, and that path of a pipe is told."""
PROGRAM = """
import os, subprocess, sys, time
def request():
    size = os.read(0, 1)
    if not size: sys.exit(0)
    left = size[0] & 0x7f
    if size[0] > 0x7f: left |= os.read(0, 1)[0] << 7
    while left: left -= len(os.read(0, left))
for word in sys.argv[1:]:
    if word == 'hang': time.sleep(1000)
    elif word == 'ignore-end':
        while os.read(0, 65536): pass
        time.sleep(1000)
    elif word in ('child', 'orphan'):
        child = subprocess.Popen(['sleep', '1000'], start_new_session=word == 'orphan')
        sys.stderr.write(str(child.pid)); sys.stderr.flush()
    elif word.startswith('exit'): sys.exit(int(word[4:]))
    elif word.startswith('tell'):
        request()
        with open(word[4:], 'w') as pipe: pipe.write('asked')
    elif word.startswith('flood'):
        while True: os.write(1, bytes.fromhex(word[5:]) * 1000)
    else:
        request(); os.write(1, bytes.fromhex(word))
request()
"""


def scripted(*words: str) -> tuple[str, ...]:
    """The command of an adapter that goes through these words: answers as `said` makes them, or a fault."""
    return (sys.executable, "-S", "-E", "-c", PROGRAM, *words)


def said(request_id: int, **content: object) -> str:
    """A message of an adapter, as a word of `scripted`."""
    message = wire.AdapterMessage(request_id=request_id, **content)  # type: ignore[arg-type]  # by name
    return delimited(official_seam.encode(message)).hex()


def described(**more: object) -> str:
    """The answer to the first request, of an adapter that chooses ports and starts controllers."""
    fields: dict[str, object] = {
        "protocol": 1,
        "implementation": "fake",
        "release": "1.0",
        "roles": [wire.ROLE_CONTROLLER],
        "abilities": [wire.ABILITY_CHOOSE_PORTS],
    }
    return said(1, description=wire.Description(**{**fields, **more}))  # type: ignore[arg-type]  # by name


def ready(port: int, instance: str = "controller", host: str = "127.0.0.1") -> str:
    """The answer to the second request: an instance listens for commands at this port."""
    place = wire.Endpoint(purpose=wire.ENDPOINT_PURPOSE_REMOTING, host=host, port=port)
    return said(2, ready=wire.Ready(instance=instance, listening=[place]))
