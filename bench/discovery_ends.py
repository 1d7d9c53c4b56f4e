"""The two processes of a first contact: one answers all the time, one starts again and again.

They are told what to do by lines of JSON, and tell what happened, with the machine's clock.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from bench.own_network import NEW_NETWORK

if TYPE_CHECKING:
    from nodes.peer import Peer

SERVICE = "_overlay-bench._tcp.local."
SETS = ("beacon.enabled=true", "beacon.mdns=never")
Options = dict[str, str]
Browse = Callable[[Options, str], None]


def tell(**words: Any) -> None:
    """Say one line."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    """Wait for one; the end of the parent is ours."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    told: dict[str, Any] = json.loads(line)
    return told


# -- ours -----------------------------------------------------------------------------------------


def our_peer(options: Options, name: str) -> Peer:
    """A peer with keys, which is told no address."""
    from pathlib import Path

    from nodes.peer import Peer

    return Peer.join(
        name=name,
        keys=Path(options["folder"]),
        bind=[f"{options['host']}:0"],
        control=False,
        sets=SETS,
    )


def answer_ours(options: Options) -> None:
    """Run a peer, and tell who comes and goes."""
    from protocols.membership import MemberJoined, MemberLeft

    async def main() -> None:
        async with our_peer(options, "answerer") as peer:
            with peer.node.events(MemberJoined, MemberLeft) as events:
                tell(ready=True)
                async for event in events:
                    kind = "joined" if isinstance(event, MemberJoined) else "left"
                    if event.zone == peer.zone:
                        tell(event=kind, member=event.member, monotonic=time.monotonic())

    trio.run(main)


def browse_ours(options: Options, name: str) -> None:
    """Start a peer, and leave when that is wanted."""
    from protocols.beacon import PeerFound
    from protocols.membership import MemberJoined

    async def main() -> None:
        peer = our_peer(options, name)
        seen: dict[type, float] = {}

        def note(event: Any) -> bool:
            """Look at the clock when it happens, not when this task gets its turn."""
            if isinstance(event, PeerFound) or event.member == "answerer":
                seen.setdefault(type(event), time.monotonic())
            return MemberJoined in seen

        events = peer.node.events(PeerFound, MemberJoined, where=note)
        began = time.monotonic()
        async with peer:
            await anext(events)
            joined = seen[MemberJoined]
            tell(began=began, answered=seen.get(PeerFound, joined), joined=joined)
            await trio.to_thread.run_sync(hear)
        tell(left=True)

    trio.run(main)


# -- others ---------------------------------------------------------------------------------------


def answer_zeroconf(options: Options) -> None:
    """Register one service."""
    import socket

    from zeroconf import ServiceInfo, Zeroconf

    with _closing(Zeroconf(interfaces=[options["host"]])) as zeroconf:
        address = socket.inet_aton(options["host"])
        zeroconf.register_service(
            ServiceInfo(SERVICE, f"answerer.{SERVICE}", port=7, addresses=[address])
        )
        tell(ready=True)
        hear()


def browse_zeroconf(options: Options, name: str) -> None:
    """Browse until the service is there."""
    from zeroconf import DNSQuestionType, ServiceBrowser, Zeroconf

    answered: list[float] = []
    done = threading.Event()

    def changed(**_: Any) -> None:
        answered.append(time.monotonic())
        done.set()

    # By default it first asks for an answer by unicast; on one host both ends share that port, and
    # the answer goes to the wrong one. By multicast no record is repeated within a second.
    near = options["host"].startswith("127.")
    kind = DNSQuestionType.QM if near else None
    time.sleep(1.2 if near else 0.0)
    began = time.monotonic()
    with _closing(Zeroconf(interfaces=[options["host"]])) as zeroconf:
        ServiceBrowser(zeroconf, SERVICE, handlers=[changed], question_type=kind)
        done.wait(20)
        tell(began=began, answered=answered[0])


@contextmanager
def _closing(zeroconf: Any) -> Iterator[Any]:
    try:
        yield zeroconf
    finally:
        zeroconf.close()


def _zenoh_config(options: Options) -> Any:
    import zenoh

    config = zenoh.Config()
    interface = "lo" if options["host"].startswith("127.") else "auto"
    for key, value in {
        "mode": "peer",
        "listen/endpoints": [f"tcp/{options['host']}:0"],
        "scouting/multicast/interface": interface,
    }.items():
        config.insert_json5(key, json.dumps(value))
    return config


def answer_zenoh(options: Options) -> None:
    """Run a peer that answers scouts."""
    import zenoh

    with zenoh.open(_zenoh_config(options)):
        tell(ready=True)
        hear()


def browse_zenoh(options: Options, name: str) -> None:
    """Scout until the first Hello."""
    import zenoh

    began = time.monotonic()
    scout = zenoh.scout(what="peer", config=_zenoh_config(options))
    scout.recv()
    tell(began=began, answered=time.monotonic())
    scout.stop()


def answer_pyre(options: Options) -> None:
    """Run a node."""
    from pyre import Pyre

    node = Pyre("answerer")
    node.start()
    tell(ready=True)
    while True:
        node.recv()


def browse_pyre(options: Options, name: str) -> None:
    """Start a node, and wait until it meets the other."""
    from pyre import Pyre

    began = time.monotonic()
    node = Pyre(name)
    node.start()
    while node.recv()[0] != b"ENTER":
        pass
    tell(began=began, answered=time.monotonic())
    node.stop()


ANSWER: dict[str, Callable[[Options], None]] = {
    "ours": answer_ours,
    "python-zeroconf": answer_zeroconf,
    "zenoh": answer_zenoh,
    "pyre": answer_pyre,
}
BROWSE: dict[str, Browse] = {
    "ours": browse_ours,
    "python-zeroconf": browse_zeroconf,
    "zenoh": browse_zenoh,
    "pyre": browse_pyre,
}
WARM = {
    "ours": ("nodes.peer", "overlay.security.credentials", "psutil"),
    "python-zeroconf": ("zeroconf",),
    "zenoh": ("zenoh",),
    "pyre": ("pyre",),
}


def main(role: str, told: str, apart: str) -> None:
    """Run one end until its parent has enough."""
    options: Options = json.loads(told)
    kind = options["kind"]
    for module in WARM[kind]:
        __import__(module)
    if apart:
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "no network namespace")
        tell(apart=True)
    hear()
    if role == "answer":
        ANSWER[kind](options)
        return
    tell(ready=True)
    while True:
        BROWSE[kind](options, hear()["name"])


if __name__ == "__main__":
    main(*sys.argv[1:])
