"""One end of a transport measurement, a process of its own: `python -m bench.transport_ends JSON`.

The receiving end prints where it listens as its first line and its result as its second.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import zmq

ALONE = 150  # s; longer than any measurement takes
WARM_UP = 200  # messages of a latency run that are not counted
FLOOD = {"count": 1 << 40, "size": 1 << 20, "window": 32 << 20}  # beside a latency run: no end


def emit(**values: Any) -> None:
    """Tell the parent."""
    print(json.dumps(values), flush=True)


# -- raw pyzmq --------------------------------------------------------------------------------


def raw_receive(options: dict[str, Any]) -> None:
    """Bind a PULL or ROUTER and take in all messages, one per call."""
    context = zmq.Context()
    kind = zmq.PULL if options["pattern"] == "push-pull" else zmq.ROUTER
    taker = context.socket(kind)
    keys = zmq.curve_keypair() if options["curve"] else None
    if keys is not None:
        taker.curve_server = True
        taker.curve_publickey, taker.curve_secretkey = keys
    port = taker.bind_to_random_port("tcp://127.0.0.1")
    emit(port=port, key=keys[0].decode() if keys is not None else "")
    count = options["count"]
    routed = kind == zmq.ROUTER
    if options["latency"]:
        delays = []
        for _ in range(count):
            if routed:
                taker.recv()
            data = taker.recv()
            delays.append(time.monotonic_ns() - int.from_bytes(data[:8], "big"))
        emit(delays=delays[WARM_UP:])
    else:
        taker.recv()
        if routed:
            taker.recv()
        began = time.monotonic_ns()
        for _ in range(count - 1):
            taker.recv()
            if routed:
                taker.recv()
        emit(seconds=(time.monotonic_ns() - began) / 1e9)
    context.destroy(linger=0)


def raw_send(options: dict[str, Any]) -> None:
    """Connect a PUSH or DEALER and send all messages, one per call, copying."""
    context = zmq.Context()
    giver = context.socket(zmq.PUSH if options["pattern"] == "push-pull" else zmq.DEALER)
    if options["curve"]:
        giver.curve_publickey, giver.curve_secretkey = zmq.curve_keypair()
        giver.curve_serverkey = options["key"].encode()
    giver.connect(f"tcp://127.0.0.1:{options['port']}")
    size, count = options["size"], options["count"]
    if options["latency"]:
        rest = bytes(max(0, size - 8))
        due = time.monotonic()
        for _ in range(count):
            due += 1 / options["rate"]
            time.sleep(max(0.0, due - time.monotonic()))
            giver.send(time.monotonic_ns().to_bytes(8, "big") + rest)
    else:
        payload = bytes(size)
        send = giver.send
        for _ in range(count):
            send(payload)
    giver.close(linger=-1)
    context.term()


# -- our nodes --------------------------------------------------------------------------------


def our_end(options: dict[str, Any]) -> None:
    """Run one node of this framework with the load protocol."""
    import trio

    from bench.load import Load, LoadDone
    from overlay.net.config import NetSettings
    from overlay.net.driver import Driver
    from overlay.protocol import PeerMet
    from overlay.security.credentials import load_credentials

    keys = load_credentials(Path(options["keys"]), options["role"]) if options["curve"] else None
    driver = Driver(
        options["role"],
        overlay="bench",
        credentials=keys,
        net=NetSettings(bind=("tcp://127.0.0.1:0",), **options.get("net", {})),
    )
    load = driver.host.add(Load, options)
    beside = options.get("beside")
    flood = driver.host.add(Load, {**FLOOD, **beside}, scope="flood") if beside else None

    async def receive() -> None:
        done = trio.Event()
        results: list[float] = []

        def finished(event: LoadDone) -> None:
            results.append(event.seconds)
            done.set()

        driver.host.listen(LoadDone, finished)
        async with trio.open_nursery() as nursery:
            await nursery.start(driver.run)
            emit(port=int(driver.endpoints[0].rpartition(":")[2]), key="")
            await done.wait()
            if options["latency"]:
                emit(delays=load.delays_ns[WARM_UP:])
            else:
                emit(seconds=results[0])
            driver.stop()

    async def send() -> None:
        met, done = trio.Event(), trio.Event()
        driver.host.listen(PeerMet, lambda _: met.set())
        driver.host.listen(LoadDone, lambda _: done.set())
        async with trio.open_nursery() as nursery:
            await nursery.start(driver.run)
            driver.meet(f"127.0.0.1:{options['port']}")
            await met.wait()
            if flood is not None:
                driver.call(flood.begin, "receiver")
            if options["latency"]:
                due = trio.current_time()
                for _ in range(options["count"]):
                    due += 1 / options["rate"]
                    await trio.sleep_until(due)
                    driver.call(load.send_one, "receiver")
                await trio.sleep(0.5)  # nothing acknowledges these: let the last ones leave
            else:
                driver.call(load.begin, "receiver")
                await done.wait()
            driver.stop()

    trio.run(receive if options["role"] == "receiver" else send)


def main() -> None:
    """Play the end that the JSON on the command line describes."""
    options = json.loads(sys.argv[1])
    signal.alarm(ALONE)  # a benchmark that was killed leaves nobody behind for long
    if options["side"] == "ours":
        our_end(options)
    elif options["role"] == "receiver":
        raw_receive(options)
    else:
        raw_send(options)


if __name__ == "__main__":
    main()
