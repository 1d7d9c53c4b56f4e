"""The example of §5.3, table by table: D1 at E, then D2 at B, which D1 covers."""

from protocols.resources import Request, RequestId, ResourcesSettings
from tests.brokers import Brokers

EDGES = ("AC", "BC", "CD", "DE", "DF", "EG")
D1, D2 = "storage > 40", "storage > 50"


def figure(config: ResourcesSettings | None = None) -> Brokers:
    world = Brokers(EDGES, config)
    for broker, name in (("A", "R1"), ("F", "R2"), ("G", "R3")):
        world.register(broker, name, "storage <= 100", {"storage": 60})
    return world


def tables(world: Brokers, names: dict[RequestId, str]) -> dict[str, tuple[str, str, str]]:
    """SrdSubList, ResourceCacheMap and SubWaitingListMap of each broker, in the paper's words."""

    def resources(ids: tuple[str, ...]) -> str:
        return ",".join(sorted(one.partition("/")[2] for one in ids))

    rows = {}
    for broker, machine in world.machines.items():
        table = machine.requests
        rows[broker] = (
            ",".join(names[one] for one in table.srd_sub_list),
            ",".join(
                f"{names[one]}({resources(cached)})"
                for one, cached in table.resource_cache_map.items()
            ),
            ",".join(
                f"{names[cover]}({','.join(names[one] for one in waiting)})"
                for cover, waiting in table.sub_waiting_list_map.items()
            ),
        )
    return rows


def test_the_tables_of_the_figure() -> None:
    world = figure()
    first = world.find("E", D1)
    world.calm()
    names = {RequestId("E", first): "D1"}
    assert tables(world, names) == {
        "A": ("D1", "", ""),
        "B": ("", "", ""),
        "C": ("D1", "", ""),
        "D": ("D1", "", ""),
        "E": ("D1", "D1(R1,R2,R3)", ""),
        "F": ("D1", "", ""),
        "G": ("D1", "", ""),
    }
    second = world.find("B", D2)
    world.calm()
    names[RequestId("B", second)] = "D2"
    assert tables(world, names) == {
        "A": ("D1", "", ""),
        "B": ("D2", "D2(R1,R2,R3)", ""),
        "C": ("D1", "", "D1(D2)"),
        "D": ("D1", "", "D1(D2)"),
        "E": ("D1", "D1(R1,R2,R3)", "D1(D2)"),
        "F": ("D1", "", ""),
        "G": ("D1", "", ""),
    }
    assert world.found(first) == world.found(second) == ["A/R1", "F/R2", "G/R3"]


def test_the_second_request_goes_to_the_host_of_the_first_alone() -> None:
    world = figure()
    world.find("E", D1)
    world.calm()
    asked = [(src, to) for src, to, msg in world.sent if isinstance(msg, Request)]
    assert sorted(asked) == [("C", "A"), ("D", "C"), ("D", "F"), ("E", "D"), ("E", "G")]
    world.sent.clear()
    world.find("B", D2)
    world.calm()
    asked = [(src, to) for src, to, msg in world.sent if isinstance(msg, Request)]
    assert asked == [("B", "C"), ("C", "D"), ("D", "E")]


def test_a_late_result_comes_once() -> None:
    """R1 is under way while D2 waits at C, D and E: as printed it comes three times."""
    world = figure()
    first = world.find("E", D1)
    for ends in (("E", "D"), ("D", "C"), ("C", "A")):
        world.deliver(ends)  # D1 has reached A, whose answer waits
    late = world.under_way.pop(("A", "C"))
    world.calm()
    second = world.find("B", D2)
    world.calm()
    assert world.ended(first) is None
    assert world.ended(second) is None
    world.under_way["A", "C"] = late
    world.calm()
    assert world.found(first) == world.found(second) == ["A/R1", "F/R2", "G/R3"]
    assert world.machines["B"].counts.doubled_results == 0
    assert world.machines["E"].counts.doubled_results == 0


def test_normal_forwarding_asks_every_edge_broker_again() -> None:
    world = figure(ResourcesSettings(forwarding="normal"))
    first = world.find("E", D1)
    world.calm()
    world.sent.clear()
    second = world.find("B", D2)
    world.calm()
    asked = [(src, to) for src, to, msg in world.sent if isinstance(msg, Request)]
    assert len(asked) == 6
    assert world.found(first) == world.found(second) == ["A/R1", "F/R2", "G/R3"]


def test_direct_results_take_one_hop() -> None:
    world = figure(ResourcesSettings(forwarding="direct"))
    second = world.find("B", D2)
    world.calm()
    assert world.found(second) == ["A/R1", "F/R2", "G/R3"]
    assert sum(machine.counts.results_sent for machine in world.machines.values()) == 3
