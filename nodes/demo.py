"""The demo: eight peers in processes of their own, one of which is killed and comes back."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from nodes.control import ask, sockets_of
from nodes.folders import private_folder
from nodes.node import only_error
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from overlay.errors import OverlayError

NAMES = ("ada", "bob", "cyn", "dan", "eve", "fay", "gus", "hal")
VICTIM = "dan"
ZONE = "demo"
SETTINGS = (
    f"echo.regular={list(NAMES)}",
    "echo.every=0.1",
    "echo.timeout=0.5",
    "echo.retries=0",  # so that a loss is seen as one
)
ECHO_SECONDS = 2.0  # before the kill, and again after the return
AWAY_SECONDS = 1.0  # how long the victim is gone at least
PATIENCE = 30.0  # for any one thing to happen, on a machine that is busy with others

Say = Callable[[str], None]


class DemoFailed(OverlayError):
    """Something that must happen did not."""


class PeerReport(msgspec.Struct):
    """What one peer did; times in seconds."""

    name: str
    ended: int = 0  # requests, whichever way
    answered: int = 0
    lost: int = 0
    noticed: float | None = None  # after the kill, that its link to the victim broke
    reunited: float | None = None  # after the restart, that its link to the victim is up again
    exit_code: int | None = None


class DemoReport(msgspec.Struct):
    """What happened, for a table or as JSON."""

    peers: list[PeerReport]
    victim: str
    seconds: float
    failures: list[str]


class DemoPeer:
    """One peer process: it tells its address and its links as JSON lines."""

    def __init__(self, name: str, process: trio.Process, started: float) -> None:
        self.name = name
        self.process = process
        self.started = started
        self.address = ""
        self.lost: dict[str, float] = {}  # by peer: when the link broke last
        self.up: dict[str, float] = {}

    async def read(self) -> None:
        """Follow what it prints, until it ends."""
        assert self.process.stdout is not None
        rest = b""
        async for part in self.process.stdout:
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._take(msgspec.json.decode(line))

    def _take(self, told: dict[str, Any]) -> None:
        match told.get("event"):
            case None:
                self.address = told["address"]
            case "link-up":
                self.up.setdefault(told["peer"], told["at"])
            case "link-lost":
                self.lost.setdefault(told["peer"], told["at"])


class Demo:
    """Starts, kills, restarts and counts; every process ends with it."""

    def __init__(self, folder: Path, say: Say, waiting_for: Say) -> None:
        self._folder = folder
        self._say = say
        self._waiting_for = waiting_for
        self._peers: dict[str, DemoPeer] = {}
        self._runtime = private_folder(folder / "run")
        self._control = private_folder(self._runtime / "zmq-overlay")

    async def play(self) -> DemoReport:
        """The whole demo."""
        began = time.time()
        reports = {name: PeerReport(name) for name in NAMES}
        async with trio.open_nursery() as nursery:
            try:
                await self._act(nursery, reports)
            finally:
                await self._end_processes()  # before the folder goes, in which they write
            nursery.cancel_scope.cancel()
        failures = _failures(reports)
        return DemoReport(list(reports.values()), VICTIM, time.time() - began, failures)

    async def _act(self, nursery: trio.Nursery, reports: dict[str, PeerReport]) -> None:
        began = time.time()
        self._make_keys()
        for name in NAMES:
            await self._start(nursery, name)
        await self._until("all peers have an address", self._all_have_addresses)
        self._say(
            f"{len(NAMES)} peers run after {time.time() - began:.1f} s, with keys of their own"
        )
        for name in NAMES:
            others = [other.address for other in self._peers.values() if other.name > name]
            await self._meet(name, others)
        await self._until("every peer has a link to every other", self._all_linked)
        base = await self._counts()
        self._say(f"every peer is linked to every other; echoes for {ECHO_SECONDS:g} s")
        await self._pause("echoes", ECHO_SECONDS)
        before_kill = await self._counts()

        for peer in self._peers.values():
            peer.lost.clear()  # attempts before they had met
        killed_at = time.time()
        self._peers[VICTIM].process.send_signal(signal.SIGKILL)
        self._say(f"{VICTIM} is killed (SIGKILL)")
        survivors = [self._peers[name] for name in NAMES if name != VICTIM]
        await self._until(
            f"all others notice that {VICTIM} is gone",
            lambda: all(VICTIM in peer.lost for peer in survivors),
        )
        for peer in survivors:
            reports[peer.name].noticed = peer.lost[VICTIM] - killed_at
            peer.up.pop(VICTIM, None)
        await self._pause(f"{VICTIM} is away", AWAY_SECONDS)

        restarted_at = time.time()
        seeds = tuple(peer.address for peer in survivors)
        await self._start(nursery, VICTIM, seeds)
        self._say(f"{VICTIM} starts again")
        await self._until(
            f"all others are linked to {VICTIM} again",
            lambda: all(VICTIM in peer.up for peer in survivors),
        )
        for peer in survivors:
            reports[peer.name].reunited = peer.up[VICTIM] - restarted_at
        base[VICTIM] = _minus(base[VICTIM], before_kill[VICTIM])  # so that its first life adds
        self._say(f"{VICTIM} is back; echoes for {ECHO_SECONDS:g} s")
        await self._pause("echoes", ECHO_SECONDS)
        for name, counts in (await self._counts()).items():
            since = _minus(counts, base[name])
            reports[name].ended = since["answered"] + since["timed_out"]
            reports[name].answered = since["answered"]
            reports[name].lost = since["timed_out"]
        await self._stop(reports)

    # -- steps --------------------------------------------------------------------------------

    def _make_keys(self) -> None:
        from overlay.security.authority import Authority
        from overlay.security.rights import Rights

        authority = Authority.create(self._folder / "keys", "demo")
        for name in NAMES:
            authority.issue(name, Rights(zones=(ZONE,)), 1).save(self._folder / "keys")

    async def _start(self, nursery: trio.Nursery, name: str, seeds: tuple[str, ...] = ()) -> None:
        options = PeerOptions(
            name=name,
            zone=ZONE,
            seed=seeds,
            profile="local",
            set=SETTINGS,
            bind=("127.0.0.1:0",),
            keys=str(self._folder / "keys"),
            events=True,
            json=True,
        )
        with (self._folder / f"{name}.log").open("ab") as log:
            process = await trio.lowlevel.open_process(
                peer_command(options),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the demo, which ends its peers
                env=peer_environment(XDG_RUNTIME_DIR=str(self._runtime)),
            )
        self._peers[name] = peer = DemoPeer(name, process, time.time())
        nursery.start_soon(peer.read)

    async def _meet(self, name: str, addresses: list[str]) -> None:
        for address in addresses:
            await self._ask(name, "meet", address=address)

    async def _counts(self) -> dict[str, dict[str, int]]:
        return {name: (await self._ask(name, "status"))["protocols"]["echo"] for name in NAMES}

    async def _ask(self, name: str, do: str, **arguments: object) -> Any:
        paths = sockets_of(self._control, name)
        if not paths:
            raise DemoFailed(f"{name} has no control socket: {self._last_words(name)}")
        question = partial(ask, paths[0], do, timeout=PATIENCE, **arguments)
        return await trio.to_thread.run_sync(question)

    async def _stop(self, reports: dict[str, PeerReport]) -> None:
        for peer in self._peers.values():
            peer.process.terminate()
        with trio.move_on_after(PATIENCE):
            self._waiting_for("all peers stop")
            for peer in self._peers.values():
                reports[peer.name].exit_code = await peer.process.wait()

    async def _end_processes(self) -> None:
        for peer in self._peers.values():
            peer.process.kill()
        with trio.CancelScope(shield=True):
            for peer in self._peers.values():
                await peer.process.wait()

    # -- conditions ---------------------------------------------------------------------------

    def _all_have_addresses(self) -> bool:
        return all(peer.address for peer in self._peers.values())

    def _all_linked(self) -> bool:
        return all(len(peer.up) == len(NAMES) - 1 for peer in self._peers.values())

    async def _until(self, what: str, condition: Callable[[], bool]) -> None:
        self._waiting_for(f"waiting until {what}")
        with trio.move_on_after(PATIENCE):
            while not condition():
                for peer in self._peers.values():
                    if peer.process.poll() is not None and peer.name != VICTIM:
                        raise DemoFailed(f"{peer.name} ended: {self._last_words(peer.name)}")
                await trio.sleep(0.01)
            return
        raise DemoFailed(f"waited {PATIENCE:g} s in vain: {what}")

    async def _pause(self, what: str, seconds: float) -> None:
        self._waiting_for(f"{what}, {seconds:g} s")
        await trio.sleep(seconds)

    def _last_words(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


def _minus(counts: dict[str, int], base: dict[str, int]) -> dict[str, int]:
    return {key: counts[key] - base[key] for key in counts}


def _failures(reports: dict[str, PeerReport]) -> list[str]:
    """What a reader must not have to find in the table."""
    found = []
    for name, report in reports.items():
        if not report.answered:
            found.append(f"{name} got no echo")
        if report.exit_code != 0:
            found.append(f"{name} ended with code {report.exit_code}")
        if name != VICTIM and (report.noticed is None or report.reunited is None):
            found.append(f"{name} did not see {VICTIM} go and come back")
    return found


async def play(say: Say, waiting_for: Say) -> DemoReport:
    """Run the demo in a folder that is gone afterwards; DemoFailed says what did not happen.

    `say` gets what happened, a line each, and `waiting_for` what is awaited now. SIGINT and
    SIGTERM end it, however often they come, only after all that it made is gone.
    """
    report = None
    try:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope)
                with tempfile.TemporaryDirectory(prefix="overlay-demo-") as folder:
                    report = await Demo(Path(folder), say, waiting_for).play()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_error(group) from None
    if report is None:
        raise DemoFailed("interrupted; all peers are stopped, nothing is left behind")
    return report


async def _cancel_on_signal(signals: AsyncIterator[int], life: trio.CancelScope) -> None:
    async for _ in signals:
        life.cancel()
