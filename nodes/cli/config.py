"""`overlay config`: what can be set, what holds, and whether a file is right."""

from pathlib import Path
from typing import Annotated

import typer

from nodes.cli.output import AsJson, Profile, print_json, print_table
from nodes.settings import DEFAULT_PROFILE, SECTIONS, config_sources
from overlay.config import describe, load_settings
from overlay.profiles import profile_names

app = typer.Typer(help="Show and check settings.", no_args_is_help=True, add_completion=False)

Sets = Annotated[list[str] | None, typer.Option("--set", help="section.key=value; repeatable.")]


@app.command()
def show(
    config: Annotated[list[Path] | None, typer.Option(help="A TOML file; repeatable.")] = None,
    profile: Profile = DEFAULT_PROFILE,
    set: Sets = None,
    json: AsJson = False,
) -> None:
    """Show every setting: what holds now, its default, unit and bounds, and why it exists."""
    loaded = load_settings(SECTIONS, *config_sources(profile, config or (), set or ()))
    rows = []
    for row in describe(SECTIONS):
        section, _, key = row.key.partition(".")
        rows.append({"value": getattr(loaded[section], key), **row._asdict()})
    if json:
        print_json({"profile": profile, "profiles": profile_names(), "settings": rows})
    else:
        columns = ("key", "value", "default", "unit", "bounds", "reason")
        print_table(columns, [[_shown(row[column]) for column in columns] for row in rows])


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="TOML files, later ones winning.")],
    profile: Profile = DEFAULT_PROFILE,
    set: Sets = None,
    json: AsJson = False,
) -> None:
    """Read files as a node would; the first thing that is wrong is told in one line."""
    load_settings(SECTIONS, *config_sources(profile, files, set or ()))
    if json:
        print_json({"files": [str(file) for file in files], "profile": profile, "right": True})
    else:
        print(f"{', '.join(str(file) for file in files)}: right, over profile {profile}")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
