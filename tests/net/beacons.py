"""Beacons for tests: a group of a test's own, so that no other test hears it."""

from __future__ import annotations

import random
import socket


def own_group() -> tuple[str, ...]:
    """Settings that turn beacons on, for those who share them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fresh = random.SystemRandom()
    group = f"239.255.{fresh.randrange(1, 255)}.{fresh.randrange(1, 255)}"
    return (f"beacon.port={port}", f"beacon.ipv4_group={group}", "beacon.enabled=true")


def setting_words(sets: tuple[str, ...]) -> list[str]:
    """The same for a command line."""
    return [word for one in sets for word in ("--set", one)]
