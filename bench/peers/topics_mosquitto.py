"""MQTT with QoS 1 (at least once), mosquitto and paho: whoever gets a message acknowledges it.

The server's limit of what may wait is lifted: by default it drops what is beyond a thousand. At
most 20 are under way on each side, as by default: with 1,000 in the publisher, where paho looks
through all of them for each answer, it was slower (11,000 messages/s, not 16,000 in the same run);
with 1,000 in the server it was the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

from bench.peers.carrier import TOPIC, Carrier, Load

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

QOS = 1


class MosquittoTopics(Carrier):
    """A callback gets each message; paho's thread does what the network wants."""

    name: ClassVar[str] = "mosquitto"
    packages: ClassVar[Mapping[str, str]] = {"paho": "paho-mqtt"}
    program: ClassVar[str] = "mosquitto"
    messages: ClassVar[int] = 20_000

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """What cannot be said on the command line is in a file."""
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n"
            "max_queued_messages 0\n"
        )
        return ["-c", str(settings)]

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Until the callback has them all."""
        done = Event()

        def arrived(client: Client, data: Any, message: MQTTMessage) -> None:
            if not take(message.payload):
                done.set()

        client = _client()
        client.on_message = arrived
        client.on_subscribe = lambda *_: ready()
        client.on_connect = lambda *_: client.subscribe(TOPIC, QOS)
        client.connect("127.0.0.1", port)
        client.loop_start()
        done.wait()
        client.disconnect()
        client.loop_stop()

    def send(self, port: int, load: Load) -> None:
        """Until the server has acknowledged the last."""
        connected = Event()
        client = _client()
        client.on_connect = lambda *_: connected.set()
        client.connect("127.0.0.1", port)
        client.loop_start()
        connected.wait()
        last = None
        for message in load.messages():
            last = client.publish(TOPIC, message, QOS)
        if last is not None:
            last.wait_for_publish()
        client.disconnect()
        client.loop_stop()


def _client() -> Client:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    return Client(CallbackAPIVersion.VERSION2)
