"""Topic rights with real keys: the node itself refuses, and so do others if it does not."""

from pathlib import Path

import pytest
import trio

from overlay.errors import LocalProtocolError
from protocols.topics import Topics
from protocols.topics.core import Core
from tests.net.zone import DEADLINE, Zone, until


def everybody_may(_name: str, _what: str, _topic: str) -> bool:
    return True


def test_a_certificate_decides_what_its_node_publishes_and_gets(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=True)

    async def main() -> None:
        ada = zone.peer("ada", publish=("sensors/**",), subscribe=())
        async with ada, zone.peer("bob", ada, publish=(), subscribe=("sensors/*/t",)) as bob:
            with trio.fail_after(DEADLINE):
                with pytest.raises(
                    LocalProtocolError, match=r"'ada' does not .* publish to 'door'"
                ):
                    async with ada.publisher("door"):
                        raise AssertionError("it was opened")
                with pytest.raises(LocalProtocolError, match=r"not allow it to subscribe"):
                    async with ada.subscribe("sensors/7/t"):
                        raise AssertionError("it was opened")
                with pytest.raises(
                    LocalProtocolError, match=r"'bob' .* subscribe to 'sensors/\*\*'"
                ):
                    bob.on_message("sensors/**", print)
                async with bob.subscribe("sensors/*/t") as messages:
                    async with ada.publisher("sensors/7/t") as out:
                        await out.wait_for_subscribers()
                        await out.publish(21.5)
                        assert (await messages.get()).data == 21.5

    trio.run(main)


@pytest.mark.parametrize("reliability", ["ack", "nack", "unordered"])
def test_others_refuse_who_does_not_ask_its_own_certificate(
    tmp_path: Path, reliability: str
) -> None:
    zone = Zone(tmp_path, secure=True)

    async def main() -> None:
        ada = zone.peer("ada")
        async with ada, zone.peer("eve", ada, publish=("x",), subscribe=("x",)) as eve:
            await ada.joined(count=2)
            await eve.joined(count=2)
            core: Core = eve.node.protocol(Topics)._core
            core.may = everybody_may
            async with (
                eve.subscribe("**") as stolen,
                ada.subscribe("**") as messages,
                ada.publisher("secret", reliability=reliability) as secret,
                ada.publisher("x", reliability=reliability) as allowed,
                eve.publisher("forged", reliability=reliability) as forged,
            ):
                await until(lambda: "eve" in allowed.subscribers)
                with trio.fail_after(DEADLINE):
                    forged.publish_nowait("forged")
                    refusals = ada.node.driver.refusals.counts
                    await until(lambda: refusals["may-not-publish"] > 0)
                    await secret.publish("secret")
                    await secret.flush()
                    await allowed.publish("allowed")
                    await allowed.flush()
                    assert (await stolen.get()).data in ("allowed", "forged")
                    assert {(await messages.get()).data for _ in range(2)} == {"secret", "allowed"}
                    assert "eve" not in secret.subscribers
                forged.close()

    trio.run(main)
