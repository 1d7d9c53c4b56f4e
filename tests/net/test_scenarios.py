"""Scenarios that the simulator plays, unchanged, over ZeroMQ."""

from functools import partial

import pytest
import trio

from nodes.scenarios.registry import find
from nodes.stage import play
from overlay.errors import LocalProtocolError
from overlay.scenario import Scenario, ScenarioFailed, Stage, Until


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
@pytest.mark.parametrize(
    "name", ["echo-basic", "echo-churn", "membership-basic", "membership-churn"]
)
def test_a_scenario_holds_over_zeromq(name: str, secure: bool) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=1, secure=secure))


def test_an_error_of_the_script_comes_out_as_it_is() -> None:
    def wrong(stage: Stage) -> Scenario:
        yield Until(lambda: True, within=1, what="nothing")
        stage.partition([])

    with pytest.raises(LocalProtocolError, match="needs network namespaces"):
        trio.run(partial(play, wrong, size=1))


def test_a_wait_in_vain_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    def vain(stage: Stage) -> Scenario:
        yield Until(lambda: False, within=0.01, what="a miracle")

    monkeypatch.setattr("nodes.stage.PATIENCE", 0.01)
    with pytest.raises(ScenarioFailed, match="in vain for a miracle"):
        trio.run(partial(play, vain, size=1))
