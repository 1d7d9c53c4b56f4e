"""What a peer said last counts, though it is gone when we come to read it."""

from __future__ import annotations

import json
import subprocess
import sys

from nodes.spawning import ROOT

RUNS = 5
LOAD = {"keys": "", "side": "ours", "size": 100, "count": 20_000, "curve": False, "latency": False}


def start(role: str, **options: object) -> subprocess.Popen[str]:
    words = [
        sys.executable,
        "-m",
        "bench.transport_ends",
        json.dumps(LOAD | options | {"role": role}),
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_the_last_answer_of_a_peer_that_stops_arrives() -> None:
    """The receiver stops right after its last acknowledgement, for which the sender waits."""
    for _ in range(RUNS):
        receiver = start("receiver")
        assert receiver.stdout is not None
        where = json.loads(receiver.stdout.readline())
        sender = start("sender", **where)
        try:
            assert sender.wait(20) == 0
            assert receiver.wait(20) == 0
        finally:
            for end in (sender, receiver):
                end.kill()
                end.communicate()
