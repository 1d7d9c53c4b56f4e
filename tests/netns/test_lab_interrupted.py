"""An `up` that is interrupted while it installs: the next one goes on where it was."""

from __future__ import annotations

import signal

import pytest

from tests.netns.lab_fixture import Hosts


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_up_goes_on_after_an_interruption(ssh_hosts: Hosts) -> None:
    there = ssh_hosts("h1")
    there.write(peers=1)
    first = there.desk.start(there.words("lab", "up"), environment=there.environment())
    first.line(r"\] installing")
    first.signal(signal.SIGINT)
    assert first.wait() == 1
    assert first.lines[-1] == "overlay: interrupted"
    assert "interrupted: the same command goes on where it was" in first.lines
    assert not [line for line in first.lines if "Traceback" in line]
    assert there.lab_json("up")["started"] == ["h1-1"]
