"""Who keeps what in a zone: balance in 99 % of namings, and what a server more moves."""

from __future__ import annotations

from random import Random

import pytest

from overlay.ids import Ring
from protocols.dht.layout import FULLEST, Layout, Terms
from protocols.dht.placement import Tier, point_of, shares, zones_of
from protocols.dht.slices import slices_for

REPLICAS, LATERAL, SLICE_POINTS, NODE_POINTS = 3, 2, 256, 64  # as configured by default

Kept = dict[int, list[str]]


def names_of(rng: Random, count: int) -> tuple[str, ...]:
    return tuple(sorted(f"node-{rng.getrandbits(48):012x}" for _ in range(count)))


def terms_of(bits: int, zone: str = "", tier: Tier = (), points: int = NODE_POINTS) -> Terms:
    return Terms(bits, points, REPLICAS, LATERAL, zone, tier, SLICE_POINTS)


def keeping(servers: tuple[str, ...], terms: Terms) -> Kept:
    """Who keeps each shard, as many as the zone has of it; the leader is the first."""
    layout = Layout(servers, terms)
    wanted = {shard: terms.copies(shard)[0] for shard in range(1 << terms.bits)}
    return {shard: layout.names(shard, count) for shard, count in wanted.items() if count}


def loads(kept: Kept, servers: tuple[str, ...]) -> dict[str, int]:
    counts = dict.fromkeys(servers, 0)
    for names in kept.values():
        for name in names:
            counts[name] += 1
    return counts


def leads(kept: Kept, servers: tuple[str, ...], terms: Terms) -> dict[str, int]:
    counts = dict.fromkeys(servers, 0)
    for shard, names in kept.items():
        counts[names[0]] += terms.copies(shard)[1]
    return counts


def moved(before: Kept, after: Kept) -> int:
    return sum(len(set(names) - set(before.get(shard, ()))) for shard, names in after.items())


def mean_of(counts: dict[str, int]) -> float:
    return sum(counts.values()) / len(counts)


@pytest.mark.parametrize(
    ("sizes", "bits", "namings"),
    [
        pytest.param((32, 1024), 14, 3, id="zones of 32 and 1,024"),
        pytest.param((32, 64, 128, 1024), 14, 2, id="zones of 32 to 1,024"),
        pytest.param((32,), 12, 20, id="a zone of 32"),
        pytest.param((1024,), 12, 2, id="a zone of 1,024, four shards each"),
        pytest.param((100,) * 10, 14, 2, id="ten zones of 100"),
        pytest.param((32, 1024), 14, 100, id="long: 32 and 1,024", marks=pytest.mark.slow),
        pytest.param((32, 64, 128, 1024), 14, 60, id="long: 32 to 1,024", marks=pytest.mark.slow),
        pytest.param((100,) * 10, 14, 100, id="long: ten of 100", marks=pytest.mark.slow),
        pytest.param((100,) * 10, 12, 100, id="long: ten of 100, 4,096", marks=pytest.mark.slow),
    ],
)
def test_no_server_is_responsible_for_more_than_1_3_of_the_mean(
    sizes: tuple[int, ...], bits: int, namings: int
) -> None:
    """The issue's bar, in 99 % of namings. Counting shards is counting keys: a shard has many."""
    rng = Random(6)
    bad = 0
    for _ in range(namings):
        zones = {f"zone-{rng.getrandbits(40):x}": names_of(rng, size) for size in sizes}
        tier = tuple(sorted((zone, slices_for(len(its), 32)) for zone, its in zones.items()))
        responsible: dict[str, int] = {}
        for zone, servers in zones.items():
            terms = terms_of(bits, zone, tier if len(sizes) > 1 else ())
            kept = keeping(servers, terms)
            responsible.update(leads(kept, servers, terms))
            copies = loads(kept, servers)
            assert max(copies.values()) <= FULLEST * mean_of(copies) + 1
        assert sum(responsible.values()) == 1 << bits
        bad += max(responsible.values()) > 1.3 * mean_of(responsible)
    assert bad <= namings // 100


@pytest.mark.parametrize("size", [4, 32, 100])
def test_servers_of_a_zone_lead_alike_and_keep_at_most_1_3_of_the_mean(size: int) -> None:
    rng = Random(size)
    for _ in range(3):
        servers, terms = names_of(rng, size), terms_of(12)
        kept = keeping(servers, terms)
        assert max(leads(kept, servers, terms).values()) <= -(-4096 // size)
        copies = loads(kept, servers)
        assert max(copies.values()) <= FULLEST * mean_of(copies)
        assert all(len(set(names)) == REPLICAS for names in kept.values())


def test_a_server_that_joins_or_leaves_moves_little_else() -> None:
    """In the mean over namings, within 1.2 × of what must move: its own share."""
    tier = tuple((zone, 4) for zone in "abcdefghij")
    for bits, terms in ((14, terms_of(14, "a", tier)), (12, terms_of(12))):
        rng = Random(bits)
        joining, leaving, least_in, least_out = 0, 0, 0, 0
        for _ in range(6):
            servers = names_of(rng, 100)
            before, after = keeping(servers[1:], terms), keeping(servers, terms)
            joining += moved(before, after)
            least_in += loads(after, servers)[servers[0]]
            leaving += moved(after, before)
            least_out += loads(after, servers)[servers[0]]
        assert least_in <= joining <= 1.2 * least_in
        assert least_out <= leaving <= 1.2 * least_out


def test_a_zone_that_joins_moves_hardly_anything_inside_the_others() -> None:
    rng = Random(3)
    bits = 14
    old = tuple((zone, 4) for zone in "abcdefghij")
    new = (*old, ("k", 4))
    zones = {zone: names_of(rng, 100) for zone, _ in new}
    came = {zone: keeping(its, terms_of(bits, zone, new)) for zone, its in zones.items()}
    gone = {zone: keeping(zones[zone], terms_of(bits, zone, old)) for zone, _ in old}
    least = sum(len(names) for names in came["k"].values())
    elsewhere = sum(moved(gone[zone], came[zone]) for zone, _ in old)
    assert elsewhere <= 0.2 * least


def test_small_tables_are_laid_out_whole() -> None:
    """More servers than shards, fewer than replicas, one, none; and the shards of other zones."""
    assert Layout((), terms_of(2)).names(0, 3) == []
    assert Layout(("a",), terms_of(2)).names(3, 3) == ["a"]
    assert sorted(Layout(("a", "b"), terms_of(2)).names(1, 3)) == ["a", "b"]
    servers = names_of(Random(1), 50)
    kept = keeping(servers, terms_of(2))
    assert max(loads(kept, servers).values()) == 1
    tier = (("a", 1), ("b", 1))
    for shard in range(16):
        layout = Layout(servers, terms_of(4, "c", tier))  # a zone that offers no storage yet
        assert len(set(layout.names(shard, 3))) == 3


def test_shares_are_as_groups_are_spread() -> None:
    assert shares(1, 3, 2) == (3,)
    assert shares(2, 3, 2) == (3, 2)
    assert shares(5, 3, 2) == (2, 2, 1, 0, 0)
    tier = (("a", 1), ("b", 1), ("c", 1), ("d", 1))
    for shard in range(16):
        zones = zones_of(shard, 4, tier, SLICE_POINTS)
        given = [terms_of(4, zone, tier).copies(shard) for zone in zones]
        assert given == [(2, True), (2, False), (1, False), (0, False)]


def test_without_points_it_is_the_papers_ring() -> None:
    servers = names_of(Random(2), 20)
    ring = Ring(servers)
    layout = Layout(servers, terms_of(6, points=0))
    for shard in range(64):
        first = ring.responsible_for(point_of(shard, 6))
        assert layout.names(shard, 3) == [first, *ring.successors(first, 2)]
