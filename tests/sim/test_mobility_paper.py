"""The paper's city in small: what each algorithm costs and loses, and how it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mobility import SECTIONS
from bench.mobility_meter import CONTROL, HEADERS, PUBLICATIONS, RENEWALS, Meter
from bench.mobility_paper import base, play
from bench.mobility_workload import (
    ALGORITHMS,
    Algorithm,
    Outcome,
    Workload,
    closest,
    distance,
    leaves,
    tree,
)
from bench.mobility_world import Waking
from bench.papers import published, publisher_mobility
from bench.report import Options, Report, run_sections
from protocols.content.messages import Change, GraftLine, Publication
from protocols.mobility.messages import Handover, StandIn


@pytest.fixture(scope="module")
def found() -> dict[Algorithm, Outcome]:
    """Six publishers on 21 brokers, all of them moving once."""
    return {one: play(base(quick=True, algorithm=one), quick=True) for one in ALGORITHMS}


def test_the_tree_and_the_line_of_its_leaves() -> None:
    parents = tree(4, 4)
    cells = leaves(4, 4)
    assert (len(parents), len(cells)) == (85, 64)
    assert parents["b00"] == ""
    assert {parents[cell] for cell in cells[:4]} == {"b05"}
    assert [distance(cells[0], other, 4) for other in ("b05", cells[1], cells[4], cells[63])] == [
        *(1, 2, 4, 6)
    ]
    assert distance("p000", cells[0], 4) == 1
    assert [list(closest(first, 5, 64)) for first in (0, 30, 63)] == [
        list(range(5)),
        list(range(28, 33)),
        list(range(59, 64)),
    ]


def test_the_meter_takes_each_line_for_a_message_and_counts_links() -> None:
    meter = Meter(600, lambda one, other: distance(one, other, 4))
    change = Change(
        1, 1, unadvertised=("p/a", "p/b"), grafts=(GraftLine("p/c", 1, True),), ungrafted=("p/d",)
    )
    assert meter("b05", "b01", ["", [change]]) == 4 * 600
    assert meter("b21", "p000", ["", [Publication("p000/it", 1, 1, {})]]) == 600
    handover = meter("b21", "b25", ["", [Handover("p000", 1, "delayed", "best-effort")]])
    assert HEADERS < handover < 2 * HEADERS
    meter("b21", "b22", ["", [StandIn("p000", 1, 100.0, (), proxy=True)]])
    meter("b21", "b22", ["", [StandIn("p000", 1, 15.0, ())]])
    assert meter.hops == {
        "unadvertisements": 2,
        "grafts": 1,
        "ungrafts": 1,
        PUBLICATIONS: 1,
        CONTROL: 4 + 2,
        RENEWALS: 2,
    }


def test_a_link_that_was_silent_takes_time_to_wake_up() -> None:
    waking = Waking(takes=0.1, asleep_after=1.0)
    asleep = [waking.touches("a", "b", at, datagram=False) for at in (0.0, 0.5, 1.4, 2.5)]
    assert asleep == [True, False, False, True]
    assert waking.touches("b", "a", 2.6, datagram=False), "each direction sleeps by itself"


def test_grafting_costs_less_and_who_prepares_loses_nothing(
    found: dict[Algorithm, Outcome],
) -> None:
    assert {outcome.moves for outcome in found.values()} == {found["standard"].moves}
    assert found["prefetching"].per_move > found["standard"].per_move
    for cheap in ("proxy", "delayed", "prefetching+delayed"):
        assert found["standard"].per_move > 3 * found[cheap].per_move
    assert found["standard"].ratios()[0] < 0.5
    assert found["standard"].ratios()[-1] == 1.0
    assert found["prefetching"].ratio == found["prefetching+delayed"].ratio == 1.0
    assert all(outcome.doubled == 0 for outcome in found.values())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lossless_handover_delivers_every_probe_once(algorithm: Algorithm) -> None:
    load = base(quick=True, algorithm=algorithm, handover="lossless")
    outcome = play(load, quick=True)
    assert outcome.expected == outcome.delivered
    assert (outcome.ratio, outcome.doubled) == (1.0, 0)
    assert len(outcome.rebuilt) >= outcome.moves, "each move hears that its tree stands"


def test_what_is_rebuilt_when_all_probes_arrive() -> None:
    outcome = Outcome(Workload(), expected=[10] * 4, delivered=[1, 9, 10, 10])
    assert outcome.rebuilding(0.2) == pytest.approx(0.6), "the third probe is sent then"
    outcome.delivered = [10] * 4
    assert outcome.rebuilding(0.2) == pytest.approx(0.2)


def test_sections_and_claims_run_in_their_quick_form(tmp_path: Path) -> None:
    quick = Options(quick=True, only=("time", "figure4", "figure5", "t4", "cause"))
    report: Report = run_sections("mobility", SECTIONS, quick)
    assert {name.partition(":")[0] for name in report.results} == {
        *("time", "figure 4", "figure 5", "t4", "speed")
    }
    paper = published.read("publisher-mobility")
    findings = publisher_mobility.evaluate(paper, tmp_path, quick=True)
    assert {one.claim.name for one in findings} == set(paper.claims)
    by_name = {one.claim.name: one for one in findings}
    assert by_name["lossless"].ours == 100.0
