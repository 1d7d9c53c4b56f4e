"""Running one scenario in the simulator: a seed and a size in, a verdict and a trace hash out."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import msgspec

from nodes.scenarios.recording import Recording
from nodes.scenarios.registry import Entry, find
from overlay.sim import SimStage, SimulationFailed, Simulator
from overlay.sim.trace import TraceReader
from overlay.sim.tracing import SimTraces

FAULTS = ("lost", "duplicated", "crashed")  # of what the simulator counts


class RunResult(msgspec.Struct, frozen=True):
    """What one run showed."""

    scenario: str
    seed: int
    nodes: int
    passed: bool
    trace_hash: str
    messages: int  # delivered
    steps: int
    virtual_seconds: float
    wall_seconds: float
    node_hours: float  # of simulated life
    replay: str
    faults: dict[str, int] = {}  # what was done to it: frames lost and doubled, nodes crashed
    failure: str = ""
    traces: str = ""  # the folder of the run, if it was recorded
    rows: int = 0  # in it


def replay_line(scenario: str, seed: int, nodes: int, *, wire: bool = False) -> str:
    """Return the command that runs exactly this again."""
    return f"overlay sim {scenario} --seed {seed} --nodes {nodes}" + (" --wire" if wire else "")


def run_scenario(
    scenario: str | Entry,
    seed: int,
    nodes: int = 0,
    *,
    wire: bool = False,
    check_every: int = 1,
    reader: TraceReader | None = None,
    traces: Recording | None = None,
    on_wait: Callable[[str, Simulator], None] | None = None,
) -> RunResult:
    """Play a scenario; a failure is a result, not an exception."""
    entry = find(scenario) if isinstance(scenario, str) else scenario
    nodes = nodes or entry.nodes
    replay = replay_line(entry.name, seed, nodes, wire=wire)
    sim = Simulator(seed, entry.network, wire=wire, check_every=check_every, replay=replay)
    sim.reader = reader
    run = traces.run_of(entry.name, seed, nodes) if traces is not None else ""
    if traces is not None:
        sim.traces = SimTraces(sim, traces.folder, run=run, level=traces.level)
    for rule in entry.faults:
        sim.faults.add(rule)
    stage = SimStage(sim, nodes=nodes)
    began = perf_counter()
    failure = ""
    try:
        stage.play(entry.script, (lambda what: on_wait(what, sim)) if on_wait else None)
    except SimulationFailed as error:
        failure = str(error)
    rows = 0
    if sim.traces is not None:
        sim.traces.close()
        rows = sim.traces.rows
    return RunResult(
        scenario=entry.name,
        seed=seed,
        nodes=nodes,
        passed=not failure,
        trace_hash=sim.hash.hexdigest(),
        messages=sim.traffic.messages,
        steps=sim.steps,
        virtual_seconds=sim.now,
        wall_seconds=perf_counter() - began,
        node_hours=sim.node_seconds / 3600.0,
        replay=replay,
        faults={kind: sim.counts[kind] for kind in FAULTS if sim.counts[kind]},
        failure=failure,
        traces="" if traces is None else str(traces.folder / f"run={run}"),
        rows=rows,
    )
