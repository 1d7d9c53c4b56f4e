"""Raw pyzmq as what topics are compared with: PUSH/PULL, or PUB/SUB that never drops.

One message for each blocking call, with copying, as people write it first.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import zmq

ALONE = 150  # s; longer than any measurement takes
WARM_UP = 200  # messages of a latency run that are not counted


def emit(**values: Any) -> None:
    """Tell the parent."""
    print(json.dumps(values), flush=True)


def raw_end(options: dict[str, Any]) -> None:
    """Play one raw end."""
    context = zmq.Context()
    if options["role"] == "receiver":
        _receive(context, options)
    else:
        _send(context, options)
    sys.stdin.read()  # until the other end is done, too
    context.destroy(linger=0)


def _receive(context: zmq.Context[zmq.Socket[bytes]], options: dict[str, Any]) -> None:
    taker = context.socket(zmq.PULL if options["pattern"] == "push-pull" else zmq.SUB)
    if options["pattern"] == "pub-sub":
        taker.subscribe(b"")
    keys = zmq.curve_keypair() if options["curve"] else None
    if keys is not None:
        taker.curve_server = True
        taker.curve_publickey, taker.curve_secretkey = keys
    port = taker.bind_to_random_port("tcp://127.0.0.1")
    emit(port=port, key=keys[0].decode() if keys is not None else "")
    receive, count = taker.recv, options["count"]
    delays = []
    began = 0
    if options["write"] == "rate":
        began = time.monotonic_ns()
        for _ in range(count):
            data = receive()
            delays.append(time.monotonic_ns() - int.from_bytes(data[:8], "big"))
    else:
        receive()
        began = time.monotonic_ns()
        for _ in range(count - 1):
            receive()
    emit(seconds=(time.monotonic_ns() - began) / 1e9, delays=delays[WARM_UP:])


def _send(context: zmq.Context[zmq.Socket[bytes]], options: dict[str, Any]) -> None:
    giver = context.socket(zmq.PUSH if options["pattern"] == "push-pull" else zmq.XPUB)
    if options["pattern"] == "pub-sub":
        giver.set(zmq.XPUB_NODROP, 1)
        giver.set(zmq.XPUB_VERBOSE, 1)
    if options["curve"]:
        giver.curve_publickey, giver.curve_secretkey = zmq.curve_keypair()
    for port, key in zip(options["ports"], options["raw_keys"], strict=True):
        if options["curve"]:
            giver.curve_serverkey = key.encode()
        giver.connect(f"tcp://127.0.0.1:{port}")
    if options["pattern"] == "pub-sub":
        for _ in options["ports"]:
            giver.recv()  # a subscription: from now on it gets everything
    send, size = giver.send, options["size"]
    if options["write"] == "rate":
        rest = bytes(max(0, size - 8))
        due = time.monotonic()
        for _ in range(options["count"]):
            due += 1 / options["rate"]
            time.sleep(max(0.0, due - time.monotonic()))
            send(time.monotonic_ns().to_bytes(8, "big") + rest)
    else:
        payload = bytes(size)
        for _ in range(options["count"]):
            send(payload)
    giver.close(linger=-1)
