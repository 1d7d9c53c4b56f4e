"""The demo: three zones of four peers each, in processes of their own.

Every peer shares its machine, and one finds them all. A delegate is killed and replaced. A stream
goes to all zones, and a gateway is killed under it.
Then keys are stored, a whole zone is killed, and all keys are read back.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import trio

from nodes.control import ask, sockets_of
from nodes.demo_dashboard import Stay, dashboard_of
from nodes.demo_find import FindReport, find_all
from nodes.demo_stream import Stream, StreamReport, gateway_among
from nodes.demo_table import KEYS, Table, TableReport
from nodes.folders import private_folder
from nodes.multicast import works_at_loopback
from nodes.node import only_error
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from overlay.errors import OverlayError

ZONES = ("east", "north", "west")
SIZE = 4  # peers in each
DELEGATES = 2
NAMES = {f"{zone}-{number}": zone for zone in ZONES for number in range(1, SIZE + 1)}
FIRST = next(iter(NAMES))  # whom the others are told of where there is no multicast
PATIENCE = 60.0  # for any one thing to happen, on a machine that is busy with others

Say = Callable[[str], None]


class DemoFailed(OverlayError):
    """Something that must happen did not."""


class Witness(msgspec.Struct):
    """What one peer of the victim's zone saw; seconds after the kill, or after the restart."""

    name: str
    failed: float
    replaced: float
    returned: float


class DemoReport(msgspec.Struct):
    """What happened, for a table or as JSON."""

    zones_before: list[dict[str, Any]]
    zones_after: list[dict[str, Any]]
    formed: float  # s from the first start until every zone was complete and had its delegates
    victim: str  # the delegate that was killed
    replacement: str
    replaced: float  # s from the kill until the last witness knew the new delegate
    witnesses: list[Witness]
    machines: FindReport
    stream: StreamReport
    table: TableReport
    seconds: float
    failures: list[str]
    traces: str = ""  # where all peers recorded it
    dashboard: str = ""  # where it could be watched


class DemoPeer:
    """One peer process: it tells its address and what happens as JSON lines."""

    def __init__(self, name: str, process: trio.Process) -> None:
        self.name = name
        self.process = process
        self.address = ""
        self.members: dict[str, None] = {name: None}  # of its zone, as it sees it
        self.delegates: dict[str, None] = {}
        self.seen: dict[tuple[str, str], float] = {}  # (event, who): when it happened last

    async def read(self) -> None:
        """Follow what it prints, until it ends."""
        assert self.process.stdout is not None
        rest = b""
        async for part in self.process.stdout:
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._take(msgspec.json.decode(line))

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.get("event")
        who = told.get("member") or told.get("delegate") or ""
        match kind:
            case None:
                self.address = told["address"]
                return
            case "member-joined":
                self.members[who] = None
            case "member-failed" | "member-left":
                if not told.get("restarted"):
                    self.members.pop(who, None)
            case "delegate-appointed":
                self.delegates[who] = None
            case "delegate-dismissed":
                self.delegates.pop(who, None)
        self.seen[kind, who] = told["at"]


class Demo:
    """Starts, kills, restarts and counts; every process ends with it."""

    def __init__(
        self, folder: Path, traces: Path | None, say: Say, waiting_for: Say, stay: Stay
    ) -> None:
        self._stay = stay
        self._url = ""  # of the dashboard
        self._folder = folder
        self._traces = traces
        self._say = say
        self._waiting_for = waiting_for
        self._peers: dict[str, DemoPeer] = {}
        self._down: dict[str, None] = {}  # whose processes may be gone
        self._overlay = f"demo-{token_hex(3)}"  # two demos on one machine must not mix
        self._finds = works_at_loopback()
        self._runtime = private_folder(folder / "run")
        self._control = private_folder(self._runtime / "zmq-overlay")

    async def play(self) -> DemoReport:
        """The whole demo."""
        async with trio.open_nursery() as nursery:
            try:
                async with dashboard_of(self._control, self._say) as self._url:
                    report = await self._act(nursery)
            finally:
                await self._end_processes()  # before the folder goes, in which they write
            nursery.cancel_scope.cancel()
        return report

    async def _act(self, nursery: trio.Nursery) -> DemoReport:
        began = time.time()
        self._make_keys()
        told = await self._start_all(nursery)
        await self._until("all peers run", lambda: all(p.address for p in self._peers.values()))
        started = f"{len(NAMES)} peers run after {time.time() - began:.1f} s"
        self._say(f"{started}, with keys of their own; {told}")
        if self._url:
            self._say(f"watch them live: {self._url}")
        await self._until("every peer knows its zone and its delegates", self._all_formed)
        before = await self._table("every zone is known", lambda zones: _complete(zones, ZONES))
        formed = time.time() - began
        self._say(f"{len(ZONES)} zones of {SIZE} formed after {formed:.1f} s")
        machines = await self._find_machines()

        victim = before[0]["delegates"][0]
        zone = NAMES[victim]
        witnesses = [self._peers[name] for name in NAMES if NAMES[name] == zone and name != victim]
        old = dict(witnesses[0].delegates)
        killed_at = time.time()
        self._kill(victim)
        self._say(f"{victim}, a delegate of zone {zone}, is killed (SIGKILL)")
        await self._until(
            f"{victim} is out of every view of zone {zone}, and replaced",
            lambda: all(
                victim not in peer.members
                and victim not in peer.delegates
                and len(peer.delegates) == DELEGATES
                for peer in witnesses
            ),
        )
        (replacement,) = (name for name in witnesses[0].delegates if name not in old)
        after = await self._table(
            "the other zones know the replacement",
            lambda zones: _complete(zones, ZONES, smaller=zone, delegate=replacement),
        )
        replaced = max(peer.seen["delegate-appointed", replacement] for peer in witnesses)
        self._say(f"{replacement} stands for zone {zone} now, {_ms(replaced - killed_at)} later")

        restarted_at = time.time()
        await self._start(nursery, victim, () if self._finds else (witnesses[0].address,))
        del self._down[victim]
        await self._until(
            f"{victim} is back in every view of its zone",
            lambda: all(victim in peer.members for peer in witnesses),
        )
        await self._until(f"{victim} can be asked", lambda: self._listens(victim))
        self._say(f"{victim} starts again, and is back")
        saw = [
            Witness(
                peer.name,
                peer.seen["member-failed", victim] - killed_at,
                peer.seen["delegate-appointed", replacement] - killed_at,
                peer.seen["member-joined", victim] - restarted_at,
            )
            for peer in witnesses
        ]
        stream = await self._stream()
        table = await self._table_outlives_a_zone(ZONES[1])
        seconds = time.time() - began
        await self._offer_dashboard()
        failures = stream.faults() + table.faults() + await self._stop()
        return DemoReport(
            zones_before=before,
            zones_after=after,
            formed=formed,
            victim=victim,
            replacement=replacement,
            replaced=replaced - killed_at,
            witnesses=saw,
            machines=machines,
            stream=stream,
            table=table,
            seconds=seconds,
            failures=failures,
            traces="" if self._traces is None else str(self._traces.resolve()),
            dashboard=self._url,
        )

    async def _offer_dashboard(self) -> None:
        """All is done: let the survivors run on for a while, for whoever wants to look."""
        if self._url and self._stay.seconds:
            self._say(f"{len(NAMES) - len(self._down)} peers run on; look at {self._url}")
            self._waiting_for(f"Ctrl-C ends this, {self._stay.seconds:g} s does, too")
            await self._stay.wait()

    async def _start_all(self, nursery: trio.Nursery) -> str:
        """Start everybody; what they were told of each other."""
        seeds: tuple[str, ...] = ()
        if not self._finds:
            self._say("this machine has no multicast at loopback, so peers get an address")
            await self._start(nursery, FIRST)
            await self._until(f"{FIRST} has an address", lambda: bool(self._peers[FIRST].address))
            seeds = (self._peers[FIRST].address,)
        for name in NAMES:
            if name not in self._peers:
                await self._start(nursery, name, seeds)
        return (
            f"all they were told is the address of {FIRST}"
            if seeds
            else ("no address was given: they find each other by multicast")
        )

    async def _find_machines(self) -> FindReport:
        """Find what every peer shares, by one of the first zone."""
        self._waiting_for("waiting until the machines of all peers are found")
        try:
            report = await find_all(sockets_of(self._control, FIRST)[0], FIRST, NAMES)
        except trio.TooSlowError:
            raise DemoFailed("the machines of all peers could not be found") from None
        self._say(report.told())
        return report

    async def _stream(self) -> StreamReport:
        """Publish in the first zone to all others, and kill the gateway of the last one."""
        members = [name for name, zone in NAMES.items() if zone == ZONES[-1]]
        doomed = gateway_among(members)
        paths = {name: sockets_of(self._control, name)[0] for name in NAMES}
        stream = Stream(FIRST, paths, doomed)

        def kill() -> None:
            self._kill(doomed)
            self._say(f"{doomed}, the gateway of zone {ZONES[-1]}, is killed in mid-stream")

        self._waiting_for("waiting until all subscribers have the stream")
        self._say(f"{FIRST} publishes to {stream.topic}; all others subscribe, in all zones")
        with trio.move_on_after(2 * PATIENCE):
            report = await stream.play(kill)
            report.successor = gateway_among([name for name in members if name != doomed])
            self._say(f"{report.successor} goes on for it; {report.told()}")
            return report
        raise DemoFailed("the stream did not end")

    async def _table_outlives_a_zone(self, zone: str) -> TableReport:
        """Store keys by a peer of the first zone, kill another one, and read them back."""
        there = [name for name in NAMES if name not in self._down]
        paths = {name: sockets_of(self._control, name)[0] for name in there}

        def kill() -> None:
            self._say(f"{KEYS:,} keys are stored; all peers of zone {zone} are killed at once")
            for name in there:
                if NAMES[name] == zone:
                    self._kill(name)

        self._waiting_for(f"waiting until {KEYS:,} keys are stored and read back")
        with trio.move_on_after(4 * PATIENCE):
            report = await Table(paths[FIRST], list(paths.values())).play(zone, kill)
            self._say(report.told())
            return report
        raise DemoFailed("the keys could not be stored, or read back")

    def _listens(self, name: str) -> bool:
        return bool(sockets_of(self._control, name))

    def _kill(self, name: str) -> None:
        self._down[name] = None
        self._peers[name].process.send_signal(signal.SIGKILL)

    # -- steps --------------------------------------------------------------------------------

    def _make_keys(self) -> None:
        from overlay.security.authority import Authority
        from overlay.security.rights import Rights

        authority = Authority.create(self._folder / "keys", self._overlay)
        for name, zone in NAMES.items():
            topics = ("demo/**",)
            rights = Rights((zone,), (), topics, topics, dht_read=True, dht_write=True)
            authority.issue(name, rights, 1).save(self._folder / "keys")

    async def _start(self, nursery: trio.Nursery, name: str, seeds: tuple[str, ...] = ()) -> None:
        options = PeerOptions(
            name=name,
            zone=NAMES[name],
            seed=seeds,
            profile="local",
            set=(
                f"beacon.enabled={str(self._finds).lower()}",
                "traces.run=demo",
                "dht.serve=true",
                "dht.shard_bits=7",  # few keys, and twelve processes on few cores
                "dht.compare=0.5",
                "dht.silence=2.0",
                # One zone founds the table, once it is complete; the others join it.
                f"dht.founders={SIZE if NAMES[name] == ZONES[0] else 0}",
            ),
            bind=("127.0.0.1:0",),
            keys=str(self._folder / "keys"),
            share_machine=True,
            events=True,
            json=True,
            trace="" if self._traces is None else "messages",
            trace_dir="" if self._traces is None else str(self._traces),
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
        self._peers[name] = peer = DemoPeer(name, process)
        nursery.start_soon(peer.read)

    async def _table(
        self, what: str, holds: Callable[[list[dict[str, Any]]], bool]
    ) -> list[dict[str, Any]]:
        """The zones as a delegate of the last zone knows them, once they are as wanted."""
        teller = next(iter(next(reversed(self._peers.values())).delegates))
        self._waiting_for(f"waiting until {what}")
        with trio.move_on_after(PATIENCE):
            while True:
                zones: list[dict[str, Any]] = (await self._ask(teller, "zones"))["zones"]
                if holds(zones):
                    return zones
                await trio.sleep(0.05)
        raise DemoFailed(f"waited {PATIENCE:g} s in vain: {what}")

    async def _ask(self, name: str, do: str) -> Any:
        paths = sockets_of(self._control, name)
        if not paths:
            raise DemoFailed(f"{name} has no control socket: {self._last_words(name)}")
        return await trio.to_thread.run_sync(partial(ask, paths[0], do, timeout=PATIENCE))

    async def _stop(self) -> list[str]:
        """Stop all; who did not end well."""
        for peer in self._peers.values():
            peer.process.terminate()
        codes: dict[str, int | None] = dict.fromkeys(self._peers)
        with trio.move_on_after(PATIENCE):
            self._waiting_for("waiting until all peers stop")
            for peer in self._peers.values():
                codes[peer.name] = await peer.process.wait()
        return [
            f"{name} ended with code {code}"
            for name, code in codes.items()
            if code != 0 and name not in self._down
        ]

    async def _end_processes(self) -> None:
        for peer in self._peers.values():
            peer.process.kill()
        with trio.CancelScope(shield=True):
            for peer in self._peers.values():
                await peer.process.wait()

    # -- conditions ---------------------------------------------------------------------------

    def _all_formed(self) -> bool:
        return all(
            len(peer.members) == SIZE and len(peer.delegates) == DELEGATES
            for peer in self._peers.values()
        )

    async def _until(self, what: str, condition: Callable[[], bool]) -> None:
        self._waiting_for(f"waiting until {what}")
        with trio.move_on_after(PATIENCE):
            while not condition():
                for peer in self._peers.values():
                    if peer.process.poll() is not None and peer.name not in self._down:
                        raise DemoFailed(f"{peer.name} ended: {self._last_words(peer.name)}")
                await trio.sleep(0.01)
            return
        raise DemoFailed(f"waited {PATIENCE:g} s in vain: {what}")

    def _last_words(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


def _complete(
    zones: list[dict[str, Any]],
    names: tuple[str, ...],
    *,
    smaller: str = "",
    delegate: str = "",
) -> bool:
    """Every zone has its size and its delegates; one lost a member and has that new delegate."""
    return [zone["name"] for zone in zones] == list(names) and all(
        zone["size"] == SIZE - (zone["name"] == smaller)
        and len(zone["delegates"]) == DELEGATES
        and (zone["name"] != smaller or delegate in zone["delegates"])
        for zone in zones
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


async def play(
    say: Say, waiting_for: Say, traces: Path | None = None, stay: float = 0.0
) -> DemoReport:
    """Run the demo in a folder that is gone afterwards; DemoFailed says what did not happen.

    All peers leave what they record in `traces`, which stays. After the last act they run on for
    `stay` seconds, for whoever looks at the dashboard; a SIGINT only ends that.
    `say` gets what happened, a line each, and `waiting_for` what is awaited now. SIGINT and
    SIGTERM end it, however often they come, only after all that it made is gone.
    """
    report = None
    looking = Stay(stay)
    try:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope, looking)
                with tempfile.TemporaryDirectory(prefix="overlay-demo-") as folder:
                    report = await Demo(Path(folder), traces, say, waiting_for, looking).play()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_error(group) from None
    if report is None:
        raise DemoFailed("interrupted; all peers are stopped, nothing is left behind")
    return report


async def _cancel_on_signal(
    signals: AsyncIterator[int], life: trio.CancelScope, looking: Stay
) -> None:
    async for _ in signals:
        if not looking.end():
            life.cancel()
