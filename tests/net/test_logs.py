"""The log of a real peer: one JSON object a line, with who comes and goes in its zone."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.net.processes import peer


def test_a_peer_logs_its_zone_as_json(tmp_path: Path) -> None:
    words = ("--insecure", "--zone", "lab", "--set", "beacon.enabled=false")
    logging = ("--log-format", "json", "--log-level", "info")
    with peer(tmp_path, "--name", "ada", *words, *logging) as ada:
        assert ada.process.stderr is not None
        with peer(tmp_path, "--name", "bob", "--seed", ada.address, *words) as bob:
            lines = [json.loads(ada.process.stderr.readline())]
            while lines[-1]["event"] != "member-joined":
                lines.append(json.loads(ada.process.stderr.readline()))
            bob.signal(signal.SIGKILL)
            while lines[-1]["event"] != "member-failed":
                lines.append(json.loads(ada.process.stderr.readline()))
    assert {(line["node"], line["zone"]) for line in lines} == {("ada", "lab")}
    assert lines[0]["event"] == "insecure"
    failed = lines[-1]
    assert (failed["protocol"], failed["message"]) == ("membership", "bob failed")
    assert failed["facts"]["member"] == "bob"
    assert "link-up" in {line["event"] for line in lines if line["protocol"] == "net"}
