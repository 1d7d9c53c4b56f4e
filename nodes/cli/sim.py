"""`overlay sim SCENARIO`: run one scenario in the simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from nodes.cli.completion import scenarios
from nodes.cli.output import AsJson, complain, console, print_json, print_table
from nodes.scenarios.recording import Recording
from overlay.errors import ConfigError
from overlay.tracing import LEVEL_NAMES, Level

if TYPE_CHECKING:
    from nodes.scenarios.mobility_tour import Tour
    from nodes.scenarios.registry import Entry
    from nodes.scenarios.running import RunResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sim)


def sim(
    scenario: Annotated[
        str, typer.Argument(help="Its name; --list shows all.", autocompletion=scenarios)
    ] = "",
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 1,
    nodes: Annotated[int, typer.Option(min=0, help="How many; 0: as the scenario likes.")] = 0,
    wire: Annotated[bool, typer.Option("--wire", help="Pass messages through the codec.")] = False,
    check_every: Annotated[int, typer.Option(min=0, help="Steps between two checks.")] = 1,
    trace: Annotated[
        Path | None, typer.Option(help="Record traces of all nodes in this folder, as Parquet.")
    ] = None,
    trace_level: Annotated[
        str, typer.Option(help="How much of them: delivery, messages or all.")
    ] = "all",
    algorithm: Annotated[
        str, typer.Option(help="Of the scenario `mobility`: how publishers move.")
    ] = "",
    handover: Annotated[
        str, typer.Option(help="Of the scenario `mobility`: best-effort, sounded or lossless.")
    ] = "",
    steps: Annotated[Path | None, typer.Option(help="Write every step, as JSON lines.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False,
    json: AsJson = False,
) -> None:
    """Run one scenario in the simulator."""
    from nodes.scenarios.registry import all_scenarios, find

    if list_all:
        entries = all_scenarios()
        if json:
            print_json([{"name": e.name, "nodes": e.nodes, "about": e.about} for e in entries])
        else:
            print_table(("scenario", "nodes", ""), [(e.name, e.nodes, e.about) for e in entries])
        return
    if not scenario:
        complain("which scenario? `overlay sim --list` shows them all")
        raise typer.Exit(2)
    try:
        find(scenario)  # before anything is written
        tour = _tour(scenario, algorithm, handover)
    except ConfigError as error:
        complain(error)
        raise typer.Exit(2) from None
    if nodes == 1:
        complain("a scenario needs at least 2 nodes; 0 leaves it to the scenario")
        raise typer.Exit(2)
    if trace_level not in LEVEL_NAMES[1:]:
        complain(f"--trace-level {trace_level}: one of {', '.join(LEVEL_NAMES[1:])}")
        raise typer.Exit(2)
    try:
        result = _run(
            scenario if tour is None else tour.entry(),
            seed,
            nodes,
            wire=wire,
            check_every=check_every,
            traces=None if trace is None else Recording(trace, Level[trace_level.upper()]),
            steps=steps,
            quiet=json,
        )
    except (OSError, ConfigError) as error:
        complain(f"cannot write the traces to {trace}: {getattr(error, 'strerror', '') or error}")
        raise typer.Exit(1) from None
    if json:
        print_json(result if tour is None else {**to_builtins(result), "mobility": tour.report})
    else:
        _summarise(result)
        if tour is not None and tour.report:
            print_table(
                ("", ""), [(k.replace("_", " "), _shown(v)) for k, v in tour.report.items()]
            )
    if not result.passed:
        raise typer.Exit(1)


def _tour(scenario: str, algorithm: str, handover: str) -> "Tour | None":
    if scenario != "mobility":
        if algorithm or handover:
            raise ConfigError("--algorithm and --handover belong to the scenario mobility")
        return None
    from nodes.scenarios.mobility_tour import Tour

    return Tour(algorithm or "delayed", handover or "lossless")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _run(
    scenario: "str | Entry",
    seed: int,
    nodes: int,
    *,
    wire: bool,
    check_every: int,
    traces: "Recording | None",
    steps: Path | None,
    quiet: bool,
) -> "RunResult":
    from contextlib import ExitStack

    from nodes.scenarios.running import run_scenario
    from overlay.sim import Simulator
    from overlay.sim.trace import TraceFile

    with ExitStack() as open_until_done:
        reader = None
        if steps is not None:
            try:
                reader = TraceFile(open_until_done.enter_context(steps.open("wb")))
            except OSError as error:
                complain(f"cannot write the steps to {steps}: {error.strerror}")
                raise typer.Exit(1) from None
        status = None
        if not quiet:
            name = scenario if isinstance(scenario, str) else scenario.name
            status = open_until_done.enter_context(console().status(name))

        def show(what: str, sim: Simulator) -> None:
            if status is not None:
                status.update(f"{name} at {sim.now:.2f} s: waiting for {what}")

        return run_scenario(
            scenario,
            seed,
            nodes,
            wire=wire,
            check_every=check_every,
            reader=reader,
            traces=traces,
            on_wait=show,
        )


def _summarise(result: "RunResult") -> None:
    rate = result.messages / result.wall_seconds if result.wall_seconds else 0.0
    print_table(
        ("", ""),
        [
            ("verdict", "passed" if result.passed else "FAILED"),
            ("nodes", result.nodes),
            ("simulated", f"{result.virtual_seconds:.3f} s, {result.node_hours:.3f} node-hours"),
            ("messages", f"{result.messages:,} delivered, {rate:,.0f} per second"),
            ("took", f"{result.wall_seconds:.2f} s"),
            ("trace hash", result.trace_hash),
            *([("traces", f"{result.rows:,} rows in {result.traces}")] if result.traces else []),
        ],
        title=f"{result.scenario}, seed {result.seed}",
    )
    if not result.passed:
        complain(result.failure)
