"""What a node pays for: it imports only what it needs, since each module stays resident."""

from __future__ import annotations

import subprocess
import sys

import pytest


def imported_by(module: str) -> set[str]:
    script = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(run.stdout.split())


def test_an_insecure_node_does_not_load_cryptography() -> None:
    assert not imported_by("overlay.security.plain") & {"cryptography", "trio", "zmq"}


@pytest.mark.parametrize("module", ["datagram", "credentials", "certificate"])
def test_a_running_node_does_not_load_what_only_the_authority_needs(module: str) -> None:
    unwanted = {
        "overlay.security.authority",
        "cryptography.hazmat.primitives.serialization",  # brings ssh, pkcs7, pkcs12
        "trio",
        "zmq",
    }
    assert not imported_by(f"overlay.security.{module}") & unwanted


def test_the_keys_command_loads_cryptography_late() -> None:
    assert "cryptography" not in imported_by("nodes.cli.keys")
