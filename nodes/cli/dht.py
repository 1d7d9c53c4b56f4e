"""`overlay dht`: keys and values of the hash table, through a node of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from nodes.cli.asking import NodeName, ask_each, the_one
from nodes.cli.output import AsJson, complain, counted, print_json, print_table
from nodes.control import Talk, ask, follow

app = typer.Typer(help="Use the hash table through a node of this machine.", no_args_is_help=True)

WITHIN = 15.0  # s for an operation; a node answers, or refuses, after dht.operation_timeout (5 s)

Key = Annotated[str, typer.Argument(help="The key: text, or bytes with --hex.")]
Hex = Annotated[bool, typer.Option("--hex", help="The key is given in hexadecimal digits.")]
Typed = Annotated[
    bool, typer.Option("--typed", help="Values are JSON (numbers, lists, …), not plain text.")
]
Ttl = Annotated[float, typer.Option(min=0, max=1e9, help="Seconds until it expires; 0: never.")]

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder().decode


@app.command()
def put(
    key: Key,
    value: Annotated[str | None, typer.Argument(help="The value; without it, --file.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file whose bytes are the value."),
    ] = None,
    ttl: Ttl = 0.0,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Only if the key has no value; else exit 1.")
    ] = False,
    typed: Typed = False,
    hex: Hex = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Insert a key with its value, or replace the value; it is acknowledged by a quorum."""
    if (value is None) == (file is None):
        raise typer.BadParameter("give a value or --file", param_hint="VALUE")
    content = file.read_bytes() if file is not None else _value(value or "", typed)
    do = "put_if_absent" if if_absent else "put"
    told = _do(node, do, _key(key, hex), value=_encode(content), ttl=ttl)
    _ended(told, key, json, "it has a value already")


@app.command()
def get(
    key: Key,
    stale_ok: Annotated[
        bool, typer.Option("--stale-ok", help="Any replica's value will do: cheaper.")
    ] = False,
    hex: Hex = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Print the value of a key; exit 1 when it has none. Bytes are printed as they are."""
    told = _do(node, "get", _key(key, hex), stale_ok=stale_ok)
    value = _read(told["value"])
    if json:
        print_json({"key": key, "found": value is not None, "value": value, "node": told["node"]})
    elif value is not None:
        _print_value(value)
    else:
        complain(f"{key}: no value")
    if value is None:
        raise typer.Exit(1)


@app.command()
def rm(
    key: Key,
    value: Annotated[
        str | None, typer.Option("--value", help="Only if the key has this value.")
    ] = None,
    typed: Typed = False,
    hex: Hex = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Remove a key; exit 1 when there was nothing to remove."""
    old = b"" if value is None else _encode(_value(value, typed))
    told = _do(node, "remove", _key(key, hex), old=old)
    _ended(told, key, json, "no value" if value is None else "it has another value, or none")


@app.command()
def cas(
    key: Key,
    old: Annotated[str, typer.Argument(help="The value that it must have.")],
    new: Annotated[str, typer.Argument(help="The value that it gets.")],
    ttl: Ttl = 0.0,
    typed: Typed = False,
    hex: Hex = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Compare and set: replace the value only if it is the old one; else exit 1."""
    values = {"old": _encode(_value(old, typed)), "value": _encode(_value(new, typed))}
    told = _do(node, "replace", _key(key, hex), **values, ttl=ttl)
    _ended(told, key, json, "it has another value, or none")


@app.command()
def watch(
    key: Key,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many values, the first one included.")
    ] = None,
    hex: Hex = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Print the value of a key now and whenever it is another one, until Ctrl-C."""
    left = count
    lines = follow(the_one(node), "dht-watch", key=_key(key, hex).hex())
    next(lines)  # who watches
    try:
        for line in lines:
            value = _read(line["value"])
            if json:
                print_json({"key": key, "found": value is not None, "value": value}, flush=True)
            elif value is None:
                complain(f"{key}: no value")
            else:
                _print_value(value)
            left = None if left is None else left - 1
            if left == 0:
                break
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
def where(key: Key, hex: Hex = False, node: NodeName = None, json: AsJson = False) -> None:
    """Show which nodes keep a key, as far as a node knows without asking."""
    told = ask(the_one(node), "dht-where", key=_key(key, hex).hex())
    if json:
        print_json(told)
        return
    members = ", ".join(told["members"]) or "not known yet: use the key once"
    columns = ("key", "shard", "zone", "leader", "replicas", "group")
    row = (key, told["shard"], told["zone"], told["leader"] or "-", members, told["version"])
    print_table(columns, [row])


@app.command()
def stats(node: NodeName = None, json: AsJson = False) -> None:
    """Show what nodes of this machine keep, and what the table can and cannot survive."""
    told = ask_each(node, "dht-stats")
    if json:
        print_json({"nodes": told})
        return
    rows = [
        (
            one["node"],
            one["zone"],
            ("yes, " if one["serves"] else "no, ") + one["storage"],
            one["shards"],
            one["leads"],
            one["keys"],
            f"{one['bytes'] / 1000:,.0f}",
            one["moving"],
            one["counts"]["served"],
            one["counts"]["refused"],
            one["counts"]["unknown"],
        )
        for one in told
    ]
    columns = ("node", "zone", "serves", "shards", "leads", "keys", "kB", "to move", "operations")
    print_table((*columns, "refused", "unknown"), rows)
    zones = {zone: slices for one in told for zone, slices in one["storage_zones"].items()}
    if zones:
        listed = ", ".join(f"{zone} ({counted(n, 'slice')})" for zone, n in sorted(zones.items()))
        print(f"storage zones: {listed}")
    for one in told:
        if one["without_majority"]:
            lost = counted(one["without_majority"], "shard")
            print(f"{one['node']}: {lost} without a majority: refused until enough replicas are")
            print("back, or, if they are gone for good, after `overlay dht accept-loss`")
    for said in dict.fromkeys(one["survives"]["says"] for one in told if one["shards"]):
        print(said)


@app.command("accept-loss")
def accept_loss(
    lose_data: Annotated[
        bool,
        typer.Option("--lose-data", help="Say that replicas without a majority are gone for good."),
    ] = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Go on without replicas that will never come back, where they were a majority.

    Such keys are refused, since nobody can tell what the lost replicas acknowledged. With
    --lose-data the survivors among the nodes of this machine go on with what they have; what only
    the lost ones had is gone. Run it on each machine. Replicas that come back join as new ones.
    """
    if not lose_data:
        raise typer.BadParameter(
            "what only lost replicas have would be gone for good: say so", param_hint="--lose-data"
        )
    told = ask_each(node, "dht-accept-loss")
    if json:
        print_json({"nodes": told})
        return
    print_table(
        ("node", "zone", "shards given up"), [(o["node"], o["zone"], o["shards"]) for o in told]
    )


# -- asking ---------------------------------------------------------------------------------------


def _do(node: str | None, do: str, key: bytes, **more: Any) -> dict[str, Any]:
    talk = Talk(the_one(node), "dht", timeout=WITHIN)
    try:
        talk.send(msgspec.json.encode({"do": do, "key": key, **more}))
        told: dict[str, Any] = talk.first | talk.next()
        return told
    finally:
        talk.close()


def _ended(told: dict[str, Any], key: str, json: bool, otherwise: str) -> None:
    if json:
        print_json({"key": key, "done": told["done"], "node": told["node"]})
    elif not told["done"]:
        complain(f"{key}: {otherwise}; nothing was done")
    if not told["done"]:
        raise typer.Exit(1)


def _key(text: str, hex: bool) -> bytes:
    if not hex:
        return os.fsencode(text)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise typer.BadParameter("not hexadecimal digits", param_hint="KEY") from None


def _value(text: str, typed: bool) -> Any:
    if not typed:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"{text!r} is no JSON: {error}", param_hint="VALUE") from None


def _read(packed: str | None) -> Any:
    """A value that crossed the control socket."""
    return None if packed is None else _decode(msgspec.convert(packed, bytes))


def _print_value(value: Any) -> None:
    if isinstance(value, bytes):
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    elif isinstance(value, str):
        print(value, flush=True)
    else:
        print_json(value, flush=True)
