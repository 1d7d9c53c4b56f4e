"""Asking a running peer, as `nodes/control.py` does, with the standard library alone."""

import json
import os
import socket
from pathlib import Path
from typing import Any

SECONDS = 5.0


def sockets_folder() -> Path:
    """Where peers of this user leave their sockets: as `nodes/folders.py` says."""
    user = os.geteuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime and os.access(f"/run/user/{user}", os.W_OK):
        runtime = f"/run/user/{user}"
    return Path(runtime, "zmq-overlay") if runtime else Path(f"/tmp/zmq-overlay-{user}")


def ask(name: str, pid: int, do: str, **arguments: object) -> Any:
    """What that process says; OSError when it is not there (yet), ValueError when it refuses."""
    path = next(sockets_folder().glob(f"{name}.{pid}.*.sock"), None)
    if path is None:
        raise FileNotFoundError(2, "it has no control socket yet")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(SECONDS)
        link.connect(str(path))
        link.sendall(json.dumps({"do": do, "arguments": arguments}).encode() + b"\n")
        with link.makefile("rb") as lines:
            reply = json.loads(lines.readline() or b'{"error": "it hung up"}')
    if reply.get("error"):
        raise ValueError(reply["error"])
    return reply.get("result")
