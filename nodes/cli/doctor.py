"""`overlay doctor`: what is wrong with a peer or this host, in plain words, and the fix."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from nodes.cli.completion import running_nodes
from nodes.cli.output import AsJson, Profile, console, counted, print_json
from nodes.control import ControlError, sockets, sockets_of
from nodes.folders import runtime_folder
from nodes.settings import DEFAULT_PROFILE, node_config

Words = list[str] | None
STYLES = {"well": "green", "hint": "yellow", "skipped": "dim", "wrong": "bold red"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    name: Annotated[
        str | None,
        typer.Argument(help="A node of this machine.", autocompletion=running_nodes),
    ] = None,
    bind: Annotated[Words, typer.Option(help="HOST:PORT that a peer shall listen at.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Where keys lie.", show_default="as `overlay keys`")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Where a peer shall keep state.")] = None,
    profile: Profile = DEFAULT_PROFILE,
    config: Annotated[Words, typer.Option(help="A TOML file of settings; repeatable.")] = None,
    set: Annotated[Words, typer.Option(help="section.key=value; repeatable.")] = None,
    listen: Annotated[float, typer.Option(min=0, max=600, help="Seconds to listen.")] = 3.0,
    only: Annotated[Words, typer.Option(help="Only this check; repeatable.")] = None,
    json: AsJson = False,
) -> None:
    """Examine this host and the peers on it, or one of them; exits with 1 if anything is wrong."""
    from nodes.doctor import CHECKS, Case, Verdict
    from nodes.doctor.case import running

    unknown = [one for one in only or () if one not in CHECKS]
    if unknown:
        raise typer.BadParameter(
            f"{unknown[0]!r}: there are {', '.join(CHECKS)}", param_hint="only"
        )
    folder = runtime_folder()
    paths = list(sockets(folder)) if name is None else sockets_of(folder, name)
    if name is not None and not paths:
        raise ControlError(f"no node {name!r} runs here: without a name the host is examined")
    settings = node_config(
        keys=keys,
        state=state,
        profile=profile,
        files=config or (),
        sets=set or (),
        bind=bind or (),
    )
    case = Case(settings, tuple(map(running, paths)), name or "", listen)
    found = []
    for check in only or CHECKS:
        for finding in CHECKS[check](case):
            found.append({"check": check, **msgspec.structs.asdict(finding)})
            if not json:
                _print(found[-1])
    wrong = [one for one in found if one["verdict"] == Verdict.WRONG]
    if json:
        print_json({"well": not wrong, "findings": found})
    elif wrong:
        print(f"{counted(len(wrong), 'thing')} to mend")
    else:
        print("nothing is wrong")
    if wrong:
        raise typer.Exit(1)


def _print(finding: dict[str, str]) -> None:
    from rich.text import Text

    verdict = finding["verdict"]
    head = Text(f"{verdict:<8}", style=STYLES[verdict]) + Text(f"{finding['check']:<13}")
    screen = console()
    screen.print(head.append(finding["what"], style=""), soft_wrap=True)
    if finding["fix"]:
        fix = f"fix: {finding['fix']}" if verdict == "wrong" else finding["fix"]
        screen.print(Text(" " * 21 + fix), soft_wrap=True)
