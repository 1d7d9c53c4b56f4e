"""The hash table in the simulator: servers in zones, with hops, balance, moves and repairs."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from bench.progress import Progress
from bench.report import Options, Report
from nodes.zone_recipe import ZoneSetup, zone_member
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.sim import Simulator
from protocols.dht import Dht, DhtSettings, Kind, Operation, Outcome, Status
from protocols.membership.machine import Membership
from protocols.zones import Zones

ZONES, EACH, KEYS, LOOKUPS, BITS = 10, 100, 10_000, 300, 13
QUICK = (3, 8, 200, 40, 8)  # eight or ten shards for each server: enough to divide well
VALUE = b"x" * 100
REST = 12.0  # s: `slice_patience`, and a settle, a beat, a question to other zones
SETTLE_WITHIN = 600.0  # s of virtual time


class World:
    """Zones `a`, `b`, … of servers with the settings of a LAN."""

    def __init__(self, zones: int, each: int, bits: int) -> None:
        self.sim = Simulator(6, check_every=1_000_000)
        self.settings = DhtSettings(serve=True, shard_bits=bits)
        self.names: list[NodeId] = []
        for number in range(zones):
            self.add_zone(chr(ord("a") + number), each)

    def add_zone(self, zone: str, each: int) -> None:
        """Start a zone of servers."""
        for number in range(each):
            self.add(f"{zone}{number}")

    def add(self, name: NodeId) -> None:
        """Start one server."""
        self.names.append(name)
        self.sim.add_node(name, self._recipe(name), lan=name[0])

    def _recipe(self, name: NodeId) -> Recipe:
        zone = name[0]

        def add(host: Host) -> None:
            contacts = [one for one in (f"{zone}0", f"{zone}1", f"{zone}2") if one != name]
            zone_member(zone, ZoneSetup(), contacts=contacts, strangers=["a0", "b1", "b0"])(host)
            base, zones = host.protocol(Membership, zone), host.protocol(Zones)
            host.add(Dht, self.settings, base=base, zones=zones)

        return add

    def dht(self, name: NodeId) -> Dht:
        """The table of one."""
        return self.sim.protocol(name, Dht)

    def crash(self, *names: NodeId) -> None:
        """Kill some at once."""
        for name in names:
            self.names.remove(name)
            self.sim.crash(name, "none")

    # -- what is to be waited for -----------------------------------------------------------------

    def whole(self) -> bool:
        """Whether every shard has a leader, and all of its group, alive, the same records."""
        led = 0
        tables = {name: self.dht(name) for name in self.names}
        numbers = {one.table for one in tables.values()}
        zones = {name[0] for name in self.names}
        if len(numbers) != 1 or 0 in numbers:
            return False
        for table in tables.values():
            if table.moving or (len(zones) > 1 and set(table.storage_zones()) != zones):
                return False
            for number, shard in table.shards().items():
                if shard.reign is None:
                    continue
                led += 1
                for name in shard.group.names():
                    other = tables[name].shards().get(number) if name in tables else None
                    if other is None or other.shelf.digest != shard.shelf.digest:
                        return False
        return led == 1 << self.settings.shard_bits

    def settle(self) -> float:
        """Run until everything is whole and nothing moves any more; return when that began."""
        began = last = self.sim.now
        before = -1
        while self.sim.now - began < SETTLE_WITHIN:
            moves = sum(self.dht(name).counts.changed for name in self.names)
            if moves != before or not self.whole():
                before, last = moves, self.sim.now
            elif self.sim.now - last > REST:
                return last - began
            self.sim.run_for(0.25)
        raise RuntimeError("the table never settles")

    # -- asking -----------------------------------------------------------------------------------

    def do(self, name: NodeId, operation: Operation) -> Outcome:
        """One operation, and nothing else until it is done."""
        outcomes: list[Outcome] = []
        self.sim.call(name, self.dht(name).submit, operation, outcomes.append)
        if not self.sim.run_until(lambda: bool(outcomes), 30.0, every=0.01):
            raise RuntimeError(f"{name} has no answer")
        return outcomes[0]

    def fill(self, keys: int) -> None:
        """Put keys from everywhere, a hundred at a time."""
        for start in range(0, keys, 100):
            outcomes: list[Outcome] = []
            for number in range(start, min(start + 100, keys)):
                name = self.names[number * 7919 % len(self.names)]
                operation = Operation(Kind.PUT, b"key-%d" % number, VALUE)
                self.sim.call(name, self.dht(name).submit, operation, outcomes.append)
            wanted = min(100, keys - start)
            self.sim.run_until(lambda: len(outcomes) >= wanted, 30.0, every=0.05)  # noqa: B023
            if any(one.status is not Status.DONE for one in outcomes) or len(outcomes) < wanted:
                raise RuntimeError(f"a put failed: {outcomes}")

    def copied(self) -> int:
        """Bytes of keys and values that leaders sent to members who lacked them."""
        return sum(self.dht(name).counts.copied_bytes for name in self.names)

    def held(self) -> dict[NodeId, dict[bytes, int]]:
        """Who has which keys, and their bytes."""
        return {
            name: {
                key: len(key) + len(record.value or b"")
                for shard in self.dht(name).shards().values()
                if shard.seated
                for key, record in shard.shelf.records.items()
            }
            for name in self.names
        }


def simulated(report: Report, options: Options) -> None:
    """Everything that a thousand servers show."""
    full = (ZONES, EACH, KEYS, LOOKUPS, BITS)
    zones, each, keys, lookups, bits = QUICK if options.quick else full
    progress = Progress("dht", 6)
    progress.step(f"{zones * each} servers in {zones} zones")
    world = World(zones, each, bits)
    report.add("virtual time until all shards are where they belong", "s", [world.settle()])
    progress.step("keys")
    world.fill(keys)
    world.settle()
    _balance(report, world)
    progress.step("lookups")
    _hops(report, world, lookups, keys)
    progress.step("a node joins")
    _moves(report, world, "a node", lambda: world.add("a9999"))
    progress.step("a node crashes")
    world.crash("b3")
    report.add("a node crashed: full replication after", "s", [world.settle()])
    progress.step("a zone joins, and crashes")
    late = chr(ord("a") + zones)
    _moves(report, world, "a zone", lambda: world.add_zone(late, each))
    world.crash(*[name for name in world.names if name[0] == late])
    report.add("a zone crashed: full replication after", "s", [world.settle()])
    lost = [number for number in range(0, keys, 7) if not _readable(world, number)]
    report.require("keys lost with a zone", len(lost), "keys", "at most", 0)


def _readable(world: World, number: int) -> bool:
    outcome = world.do(
        world.names[number % len(world.names)], Operation(Kind.GET, b"key-%d" % number)
    )
    return outcome.value == VALUE


def _balance(report: Report, world: World) -> None:
    led, kept = dict.fromkeys(world.names, 0), dict.fromkeys(world.names, 0)
    for name in world.names:
        for shard in world.dht(name).shards().values():
            led[name] += shard.reign is not None
            kept[name] += shard.seated
    by_zone: dict[str, list[int]] = {}
    for name, count in led.items():
        by_zone.setdefault(name[0], []).append(count)
    busiest = max(mean(counts) for counts in by_zone.values()) / mean(led.values())
    report.add("shards led in each zone, the most to the mean", "×", [busiest])
    for what, counts in (("leads", led), ("keeps", kept)):
        most = max(counts.values()) / mean(counts.values())
        report.require(
            f"shards that a node {what}, the most to the mean", most, "×", "at most", 1.3
        )


def _hops(report: Report, world: World, lookups: int, keys: int) -> None:
    near: list[int] = []
    far: list[int] = []
    again: list[int] = []
    for number in range(lookups):
        name = world.names[number * 31 % len(world.names)]
        key = b"key-%d" % (number * 17 % keys)
        table = world.dht(name)
        where = table.where(key)
        if where.leader is not None:
            continue
        asked, hops = table.counts.routes, table.counts.route_hops
        world.do(name, Operation(Kind.GET, key))
        if table.counts.routes == asked + 1:
            home = world.dht(name).where(key).zone == name[0]
            (near if home else far).append(table.counts.route_hops - hops)
        requests = table.counts.route_requests
        world.do(name, Operation(Kind.GET, key))
        again.append(1 + table.counts.route_requests - requests)
    for what, found, bar in (
        ("in the zone", near, 1),
        ("across zones", far, 3),
        ("cached", again, 1),
    ):
        if found:
            report.add(f"hops of a lookup {what}, mean of {len(found)}", "hops", [mean(found)])
            report.require(f"hops of a lookup {what}", max(found), "hops", "at most", bar)


def _moves(report: Report, world: World, what: str, act: Callable[[], None]) -> None:
    """The least possible is what the new ones keep in the end: it has to come to them."""
    before, copied = dict.fromkeys(world.names), world.copied()
    act()
    took = world.settle()
    held = world.held()
    least = sum(sum(held[name].values()) for name in world.names if name not in before)
    moved = world.copied() - copied
    report.add(f"{what} joined: all in place after", "s", [took])
    report.add(f"{what} joined: bytes moved", "B", [moved])
    ratio = moved / least if least else 1.0
    report.require(f"{what} joined: bytes moved to the least possible", ratio, "×", "at most", 1.2)
