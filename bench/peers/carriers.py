"""All who carry topics beside ours, by name."""

from __future__ import annotations

from bench.peers.carrier import Carrier
from bench.peers.topics_mosquitto import MosquittoTopics
from bench.peers.topics_nats import NatsTopics
from bench.peers.topics_redis import RedisTopics
from bench.peers.topics_redis_streams import RedisStreams
from bench.peers.topics_zenoh import ZenohTopics

CARRIERS: dict[str, type[Carrier]] = {
    carrier.name: carrier
    for carrier in (ZenohTopics, NatsTopics, RedisTopics, RedisStreams, MosquittoTopics)
}
