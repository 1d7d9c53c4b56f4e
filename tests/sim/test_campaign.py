"""The campaign and the command: plans, verdicts, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.cli.main import run
from nodes.scenarios import campaign, registry
from overlay.errors import ConfigError
from overlay.scenario import Scenario, Stage
from tests.sim.actors import witness


def test_a_campaign_of_one_process_sums_up_what_it_ran() -> None:
    """All scenarios, under many seeds, are run by `make test` itself."""
    jobs = campaign.plan(["echo-basic", "echo-loss", "membership-basic"], 2)
    summary = campaign.run_campaign(jobs, 1, lambda result: None)
    assert [result.failure for result in summary.failures] == []
    assert summary.passed == len(jobs) == 6
    assert summary.messages > 0


def test_a_plan_without_names_has_every_scenario() -> None:
    names = [job.scenario for job in campaign.plan([], 2)]
    assert names == [entry.name for entry in registry.all_scenarios()] * 2


def test_workers_find_what_one_process_finds(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seeds", "2", "--scenario", "echo-basic", "--json", "--jobs"]
    found = []
    for jobs in ("1", "2"):
        assert campaign.main([*words, jobs]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["passed"] == 2


def test_each_fifth_seed_of_a_long_campaign_has_more_nodes() -> None:
    short, long = (campaign.plan(["echo-basic"], 10, long=long) for long in (False, True))
    larger = [job.seed for job, small in zip(long, short, strict=True) if job.nodes > small.nodes]
    assert larger == [5, 10]


def test_a_failure_ends_with_its_replay_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def doomed(stage: Stage) -> Scenario:
        stage.start("a", witness)
        assert stage.size == 3, "only three is a crowd"
        yield from ()

    monkeypatch.setattr(registry, "_entries", {})
    registry.scenario("doomed", nodes=2)(doomed)
    monkeypatch.setattr(registry, "iter_modules", lambda path: [])
    assert campaign.main(["--seeds", "1", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "replay: overlay sim doomed --seed 1 --nodes 2" in out
    assert "only three is a crowd" in out
    assert out.endswith("0 passed, 1 failed\n")


def test_two_scenarios_of_one_name_are_refused() -> None:
    registry.all_scenarios()
    with pytest.raises(ConfigError, match="two scenarios are called echo-basic"):
        registry.scenario("echo-basic", nodes=2)(lambda stage: iter(()))  # type: ignore[arg-type, return-value]


def test_the_command_runs_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    words = ["sim", "echo-basic", "--seed", "9", "--nodes", "4", "--steps", str(trace), "--json"]
    assert run(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["passed"], result["nodes"], result["seed"]) == (True, 4, 9)
    kinds = {json.loads(line)["kind"] for line in trace.read_text().splitlines()}
    assert {"start", "call", "frame"} <= kinds


def test_the_command_summarises_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "echo-basic"]) == 0
    assert "passed" in capsys.readouterr().out
    assert run(["sim", "--list"]) == 0
    assert "echo-loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sim", "echo-los"], "did you mean echo-loss?"),
        (["sim", "zzz"], "--list"),
        (["sim"], "--list"),
        (["sim", "echo-basic", "--nodes", "1"], "at least 2"),
    ],
)
def test_wrong_usage_is_one_line(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    err = capsys.readouterr().err
    assert hint in err
    assert len(err.splitlines()) == 1


def test_a_trace_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "echo-basic", "--steps", "/no/such/folder/steps"]) == 1
    assert "cannot write the steps" in capsys.readouterr().err
