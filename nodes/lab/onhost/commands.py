"""The commands of the agent: a JSON object in, a JSON object out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from nodes.lab.onhost import files, install, peers
from nodes.lab.onhost.facts import facts
from nodes.lab.onhost.folder import Folder, write_bytes
from nodes.lab.onhost.keeper import Keeper
from nodes.lab.onhost.multicast import heard
from nodes.lab.onhost.trouble import Trouble

Asked = dict[str, Any]


def main(words: Sequence[str]) -> None:
    """Do one command; what went wrong is an answer too."""
    command = words[0] if words else ""
    if command == "keep":
        Keeper(Folder(words[1])).run()
        return
    if command == "unpack":  # its input is a tar
        _answer(lambda: {"files": files.unpack(Folder(words[1]), sys.stdin.buffer)})
        return
    asked = json.load(sys.stdin)
    if command == "pack-traces":  # so is its output
        files.pack_traces(Folder(asked["folder"]), asked["paths"])
        return
    _answer(lambda: COMMANDS[command](Folder(asked["folder"]), asked))


def _answer(do: Callable[[], Any]) -> None:
    try:
        answer = {"result": do()}
    except Trouble as trouble:
        answer = {"error": trouble.reason, "fix": trouble.fix}
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        fix = {28: "free some space there", 13: "choose another folder = in its [[host]]"}
        reason = f"{place}{error.strerror or error}"
        answer = {"error": reason, "fix": fix.get(error.errno or 0, "see to it there")}
    print(json.dumps(answer))


def _facts(folder: Folder, asked: Asked) -> Any:
    folder.make()
    return facts(folder, asked["ports"], asked["supervise"])


def _multicast(folder: Folder, asked: Asked) -> Any:
    told = (asked["me"], asked["others"], asked["nonce"], asked["group"], asked["port"])
    return heard(*told, asked["seconds"])


def _missing_wheels(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return install.missing_wheels(folder, asked["house"], asked["wheels"])


def _install(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return install.install(folder, asked["house"], asked["requirement"])


def _prune(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return install.prune(folder)


def _apply(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return peers.apply(
            folder, asked["specs"], remove=asked["remove"], supervise=asked["supervise"]
        )


def _restart(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return peers.restart(folder, asked["names"], asked["env"], asked["supervise"])


def _stop(folder: Folder, asked: Asked) -> Any:
    with folder.locked():
        return peers.stop(folder, asked["supervise"], purge=asked["purge"])


def _status(folder: Folder, asked: Asked) -> Any:
    return peers.status(folder, asked["supervise"])


def _logs(folder: Folder, asked: Asked) -> Any:
    return peers.logs(folder, asked["names"], asked["lines"], asked["supervise"])


def _revoked(folder: Folder, asked: Asked) -> Any:
    """A newer revocation list for every peer here, which look for it every few seconds."""
    for certificate in folder.keys.glob("*/certificate.pem"):
        write_bytes(certificate.with_name("revoked.pem"), asked["list"].encode(), 0o644)


def _traces(folder: Folder, asked: Asked) -> Any:
    return files.finished_traces(folder, asked["supervise"])


COMMANDS: dict[str, Callable[[Folder, Asked], Any]] = {
    "facts": _facts,
    "multicast": _multicast,
    "missing-wheels": _missing_wheels,
    "install": _install,
    "prune": _prune,
    "apply": _apply,
    "restart": _restart,
    "stop": _stop,
    "status": _status,
    "logs": _logs,
    "revoked": _revoked,
    "traces": _traces,
}
