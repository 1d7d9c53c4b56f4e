"""`overlay keys`: make an authority, issue and revoke node certificates."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from nodes.cli.output import AsJson, print_json, print_table
from overlay.errors import SecurityError
from overlay.ids import check_name
from overlay.security.folders import (
    AUTHORITY,
    CERTIFICATE_FILE,
    NODE_KEY_FILE,
    default_keys_folder,
)
from overlay.security.rights import Rights

if TYPE_CHECKING:
    from overlay.security.identity import Identity

# Cryptography is imported by the commands that need it: `overlay --help` stays quick.

app = typer.Typer(
    name="keys",
    help="Make the overlay's authority, and issue and revoke node certificates.",
    no_args_is_help=True,
    add_completion=False,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        help="Where keys lie.",
        show_default="$OVERLAY_HOME/keys or ~/.config/zmq-overlay/keys",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@app.command()
def init(
    overlay: Annotated[str, typer.Option("--overlay", help="The overlay's name.")] = "overlay",
    folder: Folder = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Make the overlay's authority; done once, on a machine that you trust."""
    from overlay.security.authority import Authority

    keys = _keys_folder(folder)
    authority = Authority.create(keys, overlay, replace=force)
    facts = {
        "overlay": authority.overlay,
        "folder": str(keys / AUTHORITY),
        "not_after": _day(authority.not_after),
    }
    _show(
        facts,
        json,
        f"Authority of overlay {authority.overlay!r} in {keys / AUTHORITY}, "
        f"valid until {facts['not_after']}.\n"
        "Keep this folder private. Next: overlay keys issue NAME --zone Z",
    )


@app.command()
def issue(
    name: Annotated[str, typer.Argument(help="The node's name, unique in the overlay.")],
    zone: Annotated[list[str], typer.Option(help="A zone that it may join; '*' is any.")],
    role: Annotated[
        list[str] | None,
        typer.Option(help="A role that it may play: broker, bdn, supervisor, collector, …"),
    ] = None,
    publish: Annotated[
        list[str] | None,
        typer.Option(help="A topic pattern that it may publish to.", show_default="**"),
    ] = None,
    subscribe: Annotated[
        list[str] | None,
        typer.Option(help="A topic pattern that it may subscribe to.", show_default="**"),
    ] = None,
    dht_read: Annotated[bool, typer.Option(help="May it read the DHT?")] = True,
    dht_write: Annotated[bool, typer.Option(help="May it write to the DHT?")] = True,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long it is valid.")] = 365,
    folder: Folder = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Make keys and a certificate for one node."""
    from overlay.security.authority import Authority

    keys = _keys_folder(folder)
    rights = Rights(
        zones=tuple(zone),
        roles=tuple(role or ()),
        publish=tuple(publish or ("**",)),
        subscribe=tuple(subscribe or ("**",)),
        dht_read=dht_read,
        dht_write=dht_write,
    )
    if (keys / check_name(name) / NODE_KEY_FILE).exists() and not force:
        raise SecurityError(
            f"{keys / name} holds keys already: `--force` replaces them (the old certificate "
            f"stays valid unless you run `overlay keys revoke {name}` first)"
        )
    credentials = Authority.load(keys).issue(name, rights, days)
    home = credentials.save(keys, replace=force)
    facts = {"folder": str(home), **_identity_facts(credentials.identity)}
    _show(
        facts,
        json,
        f"Keys of {name!r} in {home}, valid until {facts['not_after']}.\n"
        "For another machine copy that whole folder into its keys folder.",
    )


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="A node's name, or one certificate's serial.")],
    folder: Folder = None,
    json: AsJson = False,
) -> None:
    """Refuse a node's certificates from now on."""
    from overlay.security.authority import Authority

    authority = Authority.load(_keys_folder(folder))
    revoked = authority.revoke(name)
    facts = {
        "revoked": [msgspec.to_builtins(entry) for entry in revoked],
        "list": str(authority.revocations_file),
    }
    _show(
        facts,
        json,
        f"{len(revoked)} certificate(s) of {revoked[0].name!r} revoked. For nodes on other "
        f"machines copy {authority.revocations_file} into their folders.",
    )


@app.command("list")
def list_issued(folder: Folder = None, json: AsJson = False) -> None:
    """Show every certificate that the authority issued."""
    from overlay.security.authority import Authority

    now = time.time()
    authority = Authority.load(_keys_folder(folder))
    issued = [
        {**msgspec.to_builtins(entry), "state": entry.state(now)} for entry in authority.issued()
    ]
    if json:
        print_json({"overlay": authority.overlay, "issued": issued})
        return
    columns = ("name", "state", "valid until", "serial")
    rows = [(one["name"], one["state"], _day(one["not_after"]), one["serial"]) for one in issued]
    print_table(columns, rows, title=authority.overlay)


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(help="A node's name.", show_default="the authority")
    ] = None,
    folder: Folder = None,
    json: AsJson = False,
) -> None:
    """Show a node's certificate and rights, or the authority; never a private key."""
    keys = _keys_folder(folder)
    facts = _authority_facts(keys) if name is None else _node_facts(keys, name)
    width = max(map(len, facts))
    _show(
        facts,
        json,
        "\n".join(f"{key:<{width}}  {_plain(value)}" for key, value in facts.items()),
    )


def _authority_facts(keys: Path) -> dict[str, Any]:
    from overlay.security.authority import Authority

    now = time.time()
    authority = Authority.load(keys)
    issued = authority.issued()
    return {
        "overlay": authority.overlay,
        "folder": str(keys / AUTHORITY),
        "not_after": _day(authority.not_after),
        "issued": len(issued),
        "valid": sum(entry.state(now) == "valid" for entry in issued),
        "revoked": sum(entry.state(now) == "revoked" for entry in issued),
    }


def _node_facts(keys: Path, name: str) -> dict[str, Any]:
    from overlay.security.credentials import read_certificate_file

    path = keys / check_name(name) / CERTIFICATE_FILE
    if not path.exists():
        raise SecurityError(
            f"no certificate of {name!r} in {keys}: "
            f"run `overlay keys issue {name} --zone Z`, or see `overlay keys list`"
        )
    return {"folder": str(path.parent), **_identity_facts(read_certificate_file(path))}


def _identity_facts(identity: Identity) -> dict[str, Any]:
    return {
        "name": identity.name,
        "overlay": identity.overlay,
        "serial": f"{identity.serial:x}",
        "fingerprint": identity.fingerprint.hex(),
        "not_before": _day(identity.not_before),
        "not_after": _day(identity.not_after),
        "curve_key": identity.curve_key.hex(),
        **{field: getattr(identity.rights, field) for field in Rights.__struct_fields__},
    }


def _keys_folder(folder: Path | None) -> Path:
    return folder.expanduser() if folder is not None else default_keys_folder()


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _show(facts: dict[str, Any], as_json: bool, text: str) -> None:
    if as_json:
        print_json(facts)
    else:
        print(text)
