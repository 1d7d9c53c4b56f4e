"""What tests of bad peers share: a node that is started to be attacked."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.net.strangers import WITHIN, Attack, Play, check_log, scene


@pytest.fixture
def play(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Play:
    """Run an attack on a node that was started for it."""

    def run(attack: Attack, *sets: str, secure: bool = True) -> None:
        async def main() -> None:
            with trio.fail_after(1.5 * WITHIN):
                async with scene(tmp_path, secure=secure, sets=sets) as stage:
                    await attack(stage)

        trio.run(main)
        check_log(caplog)

    return run
