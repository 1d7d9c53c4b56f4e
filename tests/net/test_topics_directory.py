"""The directory of topics, asked over real sockets in an overlay of two zones."""

from pathlib import Path

import pytest
import trio

from overlay.errors import LocalProtocolError
from protocols.gateways import TopicKnown, TopicUnknown, topic_id
from tests.net.zone import DEADLINE, Zone


def test_the_directory_tells_a_name_by_its_id_and_the_zones(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        with trio.fail_after(DEADLINE):
            async with (
                zone.peer("ada", zone="east", sets=[]) as ada,
                zone.peer("bob", ada, zone="west", sets=[]) as bob,
                ada.publisher("plant/7") as out,
                bob.subscribe("plant/7"),
            ):
                await out.wait_for_subscribers(1)  # the gateway of the other zone
                for asker, by in ((ada, "plant/7"), (bob, topic_id("plant/7"))):
                    answer = await asker.find_topic(by)
                    assert isinstance(answer, TopicKnown)
                    assert (answer.name, answer.zones) == ("plant/7", ("east", "west"))
                unknown = await ada.find_topic("nobody/cares")
                assert isinstance(unknown, TopicUnknown)
                assert unknown.reason == "no zone is interested in such a topic"
                with pytest.raises(LocalProtocolError, match="wildcard"):
                    await ada.find_topic("plant/*")
                with pytest.raises(LocalProtocolError, match="128 bits"):
                    await ada.find_topic(1 << 128)

    trio.run(main)
