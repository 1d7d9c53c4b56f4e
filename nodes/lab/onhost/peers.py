"""The peers of a host: made what the operator wants, and asked how they are."""

from __future__ import annotations

import shutil
from typing import Any

from nodes.lab.onhost.control import ask
from nodes.lab.onhost.folder import Folder, write_json
from nodes.lab.onhost.keeping import keeping, settle


def apply(
    folder: Folder, specs: dict[str, dict[str, Any]], *, remove: list[str], supervise: str
) -> dict[str, Any]:
    """Start or restart these peers, stop those; the others are left alone."""
    there = keeping(folder, supervise)
    before = folder.specs()
    wanted = {}
    for name, spec in specs.items():
        generation = before.get(name, {}).get("generation", 0) + 1
        write_json(folder.peers / f"{name}.json", {**spec, "generation": generation})
        (folder.path / "state" / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        wanted[name] = generation
    for name in remove:
        (folder.peers / f"{name}.json").unlink(missing_ok=True)
    there.refresh()
    settle(there, wanted)
    for name in remove:
        shutil.rmtree(folder.keys / name, ignore_errors=True)
    return {"started": sorted(wanted), "supervised": there.kind}


def restart(folder: Folder, names: list[str], env: str, supervise: str) -> dict[str, Any]:
    """Restart these peers, from another environment if one is named."""
    specs = folder.specs()
    changed = {name: {**specs[name], "env": env or specs[name]["env"]} for name in names}
    return apply(folder, changed, remove=[], supervise=supervise)


def stop(folder: Folder, supervise: str, *, purge: bool) -> dict[str, Any]:
    """Stop all; `purge`: and leave nothing of the lab on this host."""
    there = keeping(folder, supervise)
    names = sorted(folder.specs())
    there.stop()
    for name in names:
        (folder.peers / f"{name}.json").unlink(missing_ok=True)
        (folder.kept / f"{name}.json").unlink(missing_ok=True)
    if purge:
        shutil.rmtree(folder.path, ignore_errors=True)
    return {"stopped": names}


def status(folder: Folder, supervise: str) -> dict[str, Any]:
    """Each peer: whether it runs, since when, and which members and zones it sees."""
    there = keeping(folder, supervise)
    states = there.states()
    peers = {}
    for name, spec in folder.specs().items():
        state = states.get(name, {"pid": 0, "starts": 0, "since": 0.0, "ended": "not started"})
        one = {key: state[key] for key in ("pid", "starts", "since", "ended")}
        one |= {"env": spec["env"], "fingerprint": spec["fingerprint"]}
        peers[name] = one | (_view(name, state["pid"]) if state["pid"] else {})
    return {"supervised": there.kind, "peers": peers}


def _view(name: str, pid: int) -> dict[str, Any]:
    """What a peer sees; `silent` says why it tells nothing."""
    try:
        zones = ask(name, pid, "zones")
        told = {
            "zone": zones["zone"],
            "delegate": zones["delegate"],
            "zones": {one["name"]: one["size"] for one in zones["zones"]},
        }
        if zones["zone"]:  # a supervisor is in no base zone
            told["members"] = sorted(one["name"] for one in ask(name, pid, "members")["members"])
        return told
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"silent": str(error)}


def logs(folder: Folder, names: list[str], lines: int, supervise: str) -> dict[str, list[str]]:
    """The last lines of these peers, or of all."""
    there = keeping(folder, supervise)
    return {name: there.log(name, lines) for name in names or sorted(folder.specs())}
