"""The paper's cluster in small: three ways to forward find the same, and brokers are servers."""

from __future__ import annotations

from random import Random

import pytest

from bench.resources_paper import Point, measure
from bench.resources_world import Metrics, Work
from overlay.sim.faults import Copy


@pytest.fixture(scope="module")
def found() -> dict[str, Metrics]:
    """Resources and requests of clients, half of the requests covered by others."""
    return {
        way: measure(Point("figure 9", "balanced", way, 0.5), quick=True)
        for way in ("normal", "similarity", "direct")
    }


def test_clients_get_all_results_whatever_the_forwarding(found: dict[str, Metrics]) -> None:
    assert all(metrics.incomplete == 0 for metrics in found.values())
    assert found["direct"].results == found["normal"].results > 0
    # An update may be missing in what is shared, and what it replaced be there.
    assert found["similarity"].results == pytest.approx(found["normal"].results, rel=0.1)


def test_direct_saves_publications_only(found: dict[str, Metrics]) -> None:
    normal, direct = found["normal"], found["direct"]
    assert direct.publications < normal.publications / 2
    assert direct.subscriptions == normal.subscriptions
    assert direct.matchings == normal.matchings


def test_sharing_saves_requests_and_matchings(found: dict[str, Metrics]) -> None:
    assert found["similarity"].subscriptions < found["normal"].subscriptions
    assert found["similarity"].matchings < found["normal"].matchings


def test_what_a_busy_broker_sends_leaves_after_its_work() -> None:
    done = {"b": 0.0}
    work = Work(done.get)
    done["b"] = 0.5
    assert work.touches("b", "x", 1.0, datagram=False)
    passage = [Copy(0.0, in_order=True)]
    work.bend(passage, Random(1))
    assert passage[0].extra == pytest.approx(0.5)
    done["b"] = 0.7  # 0.2 more, while 0.4 of the first are left
    assert work.touches("b", "x", 1.1, datagram=False)
    assert work.late == [pytest.approx(0.6)]
    assert not work.touches("c", "b", 1.1, datagram=False)
