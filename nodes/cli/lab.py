"""`overlay lab`: deploy peers on machines, look after them, and gather what they recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from nodes.cli.output import AsJson, complain, counted, print_json
from overlay.errors import ConfigError, OverlayError

if TYPE_CHECKING:
    from nodes.lab.inventory import Inventory
    from nodes.lab.progress import Progress

T = TypeVar("T")
app = typer.Typer(
    name="lab",
    help="Deploy peers on machines by ssh, watch them, upgrade them, gather their traces.",
    no_args_is_help=True,
    add_completion=False,
)

Lab = Annotated[
    Path, typer.Option("--lab", help="The inventory.", envvar="OVERLAY_LAB", show_default=True)
]
DEFAULT = Path("lab.toml")
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="Ask for all wheels again, also those that are here.")
]


@app.command()
def init(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[USER@]ADDRESS[:PORT]", help="Its hosts.", show_default="three examples"
        ),
    ] = None,
    lab: Lab = DEFAULT,
    name: Annotated[str, typer.Option(help="The lab's name.")] = "lab",
    zone: Annotated[
        list[str] | None,
        typer.Option(
            help="Hosts are given to these zones in turn; repeatable.", show_default="default"
        ),
    ] = None,
    peers: Annotated[int, typer.Option(min=1, max=200, help="On each host.")] = 2,
    json: AsJson = False,
) -> None:
    """Write an inventory to be edited; an existing one is never overwritten."""
    from nodes.lab.inventory_file import first_inventory

    text = first_inventory(name, peers, zone or [], hosts or [])
    try:
        with lab.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{lab} is there already: edit it, or say --lab OTHER.toml") from None
    if json:
        print_json({"inventory": str(lab)})
    else:
        first = "" if hosts else "write your hosts into it, then "
        other = "" if lab == DEFAULT else f" --lab {lab}"
        print(f"{lab} written. Next: {first}`overlay lab up{other}`")


@app.command()
def up(lab: Lab = DEFAULT, rebuild: Rebuild = False, json: AsJson = False) -> None:
    """Check every host, install, give keys, start peers, and wait until all agree."""
    from nodes.cli.lab_tables import said, show
    from nodes.lab.up import up as bring_up

    inventory = _inventory(lab)
    outcome = _run(inventory, json, lambda op, tell: bring_up(inventory, op, tell, rebuild=rebuild))
    if outcome.older and not json:
        count = counted(len(outcome.older), "peer")
        outcome.warnings["lab"] = f"{count} of an older build: `overlay lab upgrade`"
    show(inventory, outcome, json=json, title=said(outcome))


@app.command()
def upgrade(lab: Lab = DEFAULT, rebuild: Rebuild = False, json: AsJson = False) -> None:
    """Restart all peers from this build, one by one, each when its zone agrees again."""
    from nodes.cli.lab_tables import said, show
    from nodes.lab.upgrade import upgrade as roll

    inventory = _inventory(lab)
    outcome = _run(inventory, json, lambda op, tell: roll(inventory, tell, rebuild=rebuild))
    show(inventory, outcome, json=json, title=said(outcome))


@app.command()
def restart(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PEER|HOST", help="Whom to restart.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Restart every peer.")] = False,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Do not go one by one: the zones notice it.")
    ] = False,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Restart peers, one by one, each when its zone agrees again."""
    from nodes.cli.lab_tables import said, show
    from nodes.lab.upgrade import restart as roll

    if bool(names) == all:
        raise typer.BadParameter("name peers or hosts, or say --all", param_hint="PEER")
    inventory = _inventory(lab)
    _check_names(inventory, names or [])
    outcome = _run(
        inventory,
        json,
        lambda op, tell: roll(inventory, tell, names=names or [], at_once=at_once),
    )
    show(inventory, outcome, json=json, title=said(outcome))


@app.command()
def status(lab: Lab = DEFAULT, json: AsJson = False) -> None:
    """Show the lab: every peer, what it sees, and whether all agree; exit 1 when not."""
    from nodes.cli.lab_tables import show
    from nodes.lab.looking import status as look

    inventory = _inventory(lab)
    show(
        inventory,
        _run(inventory, json, lambda op, tell: look(inventory, tell), lock=False),
        json=json,
    )


@app.command()
def logs(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="PEER|HOST", help="Whose.", show_default="all"),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=100_000)] = 20,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the last lines that peers said."""
    from nodes.lab.looking import logs as read

    inventory = _inventory(lab)
    _check_names(inventory, names or [])
    told, outcome = _run(
        inventory, json, lambda op, tell: read(inventory, tell, names or [], lines), lock=False
    )
    if json:
        print_json({"logs": told, "failures": outcome.failures})
    else:
        for name, said in told.items():
            for line in said or ["(nothing)"]:
                print(f"{name}: {line}")
    _end(outcome.failures, json)


@app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="After --; `overlay` is the lab's.")
    ],
    host: Annotated[
        list[str] | None, typer.Option(help="Only there; repeatable.", show_default="all hosts")
    ] = None,
    within: Annotated[float, typer.Option(min=1, help="Seconds for it to end.")] = 60.0,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Run a command on all hosts in parallel; exit 1 when it fails on one."""
    from nodes.lab.looking import execute

    inventory = _inventory(lab)
    chosen = [inventory.host(name) for name in host] if host else inventory.hosts
    told, outcome = _run(
        inventory,
        json,
        lambda op, tell: execute(inventory, tell, chosen, command, within),
        lock=False,
    )
    if json:
        print_json({"hosts": told, "failures": outcome.failures})
    else:
        for name, done in told.items():
            for line in (done["out"] + done["err"]).splitlines():
                print(f"{name}: {line}")
    for name, done in told.items():
        if done["code"]:
            outcome.failures.setdefault(name, f"it ended with {done['code']}")
    _end(outcome.failures, json)


@app.command()
def down(
    purge: Annotated[
        bool, typer.Option("--purge", help="Leave nothing on the hosts: no program, keys, traces.")
    ] = False,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Stop all peers, in good order; what is installed stays for the next `up`."""
    from nodes.lab.ending import down as stop

    inventory = _inventory(lab)
    outcome = _run(
        inventory,
        json,
        lambda op, tell: stop(inventory, op, tell, hosts=inventory.hosts, purge=purge),
    )
    if json:
        print_json(outcome)
    else:
        print(f"lab {inventory.name}: {counted(len(outcome.removed), 'peer')} stopped")
    _end(outcome.failures, json)


@app.command("add-host")
def add_host(
    name: Annotated[str, typer.Argument(help="Its name in the lab.")],
    address: Annotated[str, typer.Argument(metavar="[USER@]ADDRESS[:PORT]", help="For ssh.")],
    zone: Annotated[str, typer.Option(help="Of its peers.", show_default="as [peers] says")] = "",
    peers: Annotated[int | None, typer.Option(min=0, max=200, help="How many.")] = None,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Write a host into the inventory, and bring it up."""
    from nodes.lab import inventory_file

    _inventory(lab)
    text = lab.read_text(encoding="utf-8")
    user, place, port = inventory_file.split_address(address)
    block = inventory_file.host_block(name, place, user=user, ssh_port=port, zone=zone, peers=peers)
    inventory_file.add_host(text, lab, block)
    lab.write_text(text.rstrip("\n") + "\n" + block, encoding="utf-8")
    up(lab, rebuild=False, json=json)


@app.command("remove-host")
def remove_host(
    name: Annotated[str, typer.Argument(help="Its name in the lab.")],
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Stop a host's peers, revoke their keys, and take it out of the inventory."""
    from nodes.cli.lab_tables import show
    from nodes.lab.ending import remove_host as remove
    from nodes.lab.inventory_file import without_host

    inventory = _inventory(lab)
    host = inventory.host(name)
    text = without_host(lab.read_text(encoding="utf-8"), name, lab)
    if len(inventory.hosts) == 1:
        raise ConfigError(f"{name} is the only host: `overlay lab down --purge` ends the lab")
    outcome = _run(inventory, json, lambda op, tell: remove(inventory, op, tell, host=host))
    lab.write_text(text, encoding="utf-8")
    show(_inventory(lab), outcome, json=json, title=f"; {name} removed")


@app.command()
def traces(
    out: Annotated[Path, typer.Option(help="Traces go to OUT/traces, the report to OUT/report.")],
    analyze: Annotated[bool, typer.Option(help="Analyse them afterwards, with Spark.")] = True,
    lab: Lab = DEFAULT,
    json: AsJson = False,
) -> None:
    """Gather the traces of all hosts, those that are not here yet, and analyse them."""
    from nodes.lab.gathering import gather

    inventory = _inventory(lab)
    folder = out / "traces"
    outcome, counts = _run(inventory, json, lambda op, tell: gather(inventory, tell, folder))
    told = {"traces": str(folder), **counts, "failures": outcome.failures}
    total = counts["files"] + counts["here"]
    if not json:
        size = f"{counts['bytes'] / 1e6:.1f} MB"
        fetched = f"{counted(counts['files'], 'file')} fetched ({size})"
        print(f"{folder}: {fetched}, {counts['here']} were here")
    if not total and not outcome.failures:
        raise ConfigError('no peer recorded anything: set traces = "delivery" in [lab], then `up`')
    if analyze and total:
        told |= _analyse(folder, out / "report", json)
    if json:
        print_json(told)
    _end(outcome.failures, json)


def _analyse(folder: Path, report: Path, json: bool) -> dict[str, object]:
    try:
        from nodes.cli import analyze as analysis  # it needs the extra `spark`

        done = analysis.run(folder, report, shows=not json)
    except ImportError as error:
        raise ConfigError(f"traces are in {folder}, but no report: {error}") from None
    except OverlayError as error:
        raise ConfigError(f"traces are in {folder}, but no report: {error}") from None
    if not json:
        print(f"report: {done['report']}")
    return {"report": str(done["report"])}


def _inventory(path: Path) -> Inventory:
    from nodes.lab.inventory import load_inventory

    return load_inventory(path)


def _check_names(inventory: Inventory, names: list[str]) -> None:
    """Refuse who is neither a peer nor a host, with the nearest that is."""
    from difflib import get_close_matches

    from nodes.lab.plan import plan

    known = [*(host.name for host in inventory.hosts), *plan(inventory)]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known[:8])} …"
            raise ConfigError(f"{inventory.path}: no peer or host {name!r}: {hint}")


def _run(
    inventory: Inventory,
    json: bool,
    work: Callable[..., Awaitable[T]],
    *,
    lock: bool = True,
) -> T:
    """Run one command with progress, holding the lab unless it only looks."""
    from contextlib import nullcontext

    import trio

    from nodes.lab.operator import Operator
    from nodes.lab.progress import progress

    operator = Operator(inventory.name)

    async def main(tell: Progress) -> T:
        return await work(operator, tell)

    with operator.locked() if lock else nullcontext(), progress(json=json) as tell:
        try:
            return trio.run(main, tell)
        except* KeyboardInterrupt:
            tell.note("interrupted: the same command goes on where it was")
            raise KeyboardInterrupt from None
        except* OverlayError as group:
            raise _first(group) from None
    raise AssertionError("trio.run returns or raises")


def _first(group: BaseExceptionGroup[OverlayError]) -> OverlayError:
    """One line is enough: what the others say is the same of other hosts."""
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    assert isinstance(one, OverlayError)
    return one


def _end(failures: dict[str, str], json: bool) -> None:
    if failures and not json:
        for name, line in failures.items():
            complain(f"{name}: {line}")
    if failures:
        raise typer.Exit(1)
