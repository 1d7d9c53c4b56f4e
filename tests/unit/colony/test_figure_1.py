"""The paper's example (Figure 1), message by message."""

from __future__ import annotations

from overlay.protocol import Message
from protocols.colony import ServantFound, Terms, Wish
from protocols.colony.messages import ServiceRequest, ServiceResponse
from tests.unit.colony.units import Community, service

S1 = service('type = "CPU", time < 10')
S2 = service('type = "disk", size < 100')
S3 = service('type = "printer"')
S4 = service('type = "CPU", time > 5')
S5 = service('type = "disk", size > 10')


def told(src: str, to: str, msg: Message) -> str:
    """One arrow of the figure."""
    match msg:
        case ServiceRequest(wants=wants):
            asked = ", ".join(f"S{4 + want.index}" for want in wants)
            return f"{src} → {to}: SREQ {asked}"
        case ServiceResponse(accepted=accepted, rejected=rejected):
            found = [f"S{4 + one.index} by {one.servant.name}" for one in accepted]
            return f"{src} → {to}: SRESP {', '.join(found)}" + (f" not {rejected}" * bool(rejected))
        case _:
            return ""


def test_the_figure() -> None:
    community = Community()
    community.unit("P1", leads=True)
    for broker in ("P2", "P3"):
        community.unit(broker, "P1", leads=True)
    community.unit("C1", "P2")
    community.unit("C2", "P2", offers=[S1])
    community.unit("C3", "P3", offers=[S2])
    community.unit("C4", "P3", offers=[S3])
    log: list[tuple[str, str, Message]] = []
    community.world.log = log
    community.ask("C1", Wish((S4,)), Wish((S5,)), terms=Terms("exhaustive"))
    assert [told(*one) for one in log] == [
        "C1 → P2: SREQ S4, S5",
        "P2 → C2: SREQ S4",  # S5 and S1 do not overlap
        "P2 → P1: SREQ S5",  # nobody in its own colony may serve it
        "C2 → P2: SRESP S4 by C2",
        "P1 → P3: SREQ S5",
        "P2 → C1: SRESP S4 by C2",
        "P3 → C3: SREQ S5",
        "C3 → P3: SRESP S5 by C3",
        "P3 → P1: SRESP S5 by C3",
        "P1 → P2: SRESP S5 by C3",
        "P2 → C1: SRESP S5 by C3",
    ]
    found = community.heard("C1", ServantFound)
    assert [(one.index, one.servant.name, one.hops) for one in found] == [
        (0, "C2", 1),
        (1, "C3", 3),
    ]


def test_the_tables_of_the_figure() -> None:
    community = Community()
    root = community.unit("P1", leads=True)
    left, right = (community.unit(broker, "P1", leads=True) for broker in ("P2", "P3"))
    community.unit("C1", "P2")
    community.unit("C2", "P2", offers=[S1])
    community.unit("C3", "P3", offers=[S2])
    community.unit("C4", "P3", offers=[S3])
    assert left.table.union == (str(S1),)
    assert right.table.union == (str(S2), str(S3))
    assert sorted(root.table.union) == sorted(map(str, (S1, S2, S3)))
    assert root.table.offering([str(S4)]) == ("P2",)
    assert root.table.offering([str(S5)]) == ("P3",)
