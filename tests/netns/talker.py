"""A program for hosts: one driver that prints where it is and all that it hears.

    talker.py NAME BIND [--group HOST PORT] [--meet ENDPOINT] [--advertise ENDPOINT]

It says a word to everybody it met, and casts one to its group, five times a second. Lines:
`at ENDPOINT…`, `word NAME`, `datagram NAME INTERFACE HOST NUMBER`, `copies COUNT`.
"""

from __future__ import annotations

import argparse

import trio

from overlay.protocol import Group, PeerMet
from tests.net.drivers import Speaker, speaker

EVERY = 0.2  # s


def _tell(*words: object) -> None:
    print(*words, flush=True)


async def _talk(one: Speaker, group: Group | None, met: list[str]) -> None:
    number = copies = 0
    while True:
        number += 1
        for peer in met:
            one.say(peer, number)
        if group is not None:
            one.cast(group, number)
        for name, _, _ in one.talk.heard:
            _tell("word", name)
        for origin, told, _ in one.talk.cast_to_us:
            _tell("datagram", origin.name, origin.interface, origin.address.host, told)
        one.talk.heard.clear()
        one.talk.cast_to_us.clear()
        if one.count("datagram copies") > copies:
            copies = one.count("datagram copies")
            _tell("copies", copies)
        await trio.sleep(EVERY)


async def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("bind")
    parser.add_argument("--group", nargs=2)
    parser.add_argument("--meet")
    parser.add_argument("--advertise")
    told = parser.parse_args()
    advertise = (told.advertise,) if told.advertise else ()
    one = speaker(told.name, bind=(told.bind,), advertise=advertise)
    met: list[str] = []
    one.driver.host.listen(PeerMet, lambda event: met.append(event.peer))
    group = Group(told.group[0], int(told.group[1])) if told.group else None
    async with trio.open_nursery() as nursery:
        await nursery.start(one.driver.run)
        if group is not None:
            one.driver.datagrams.join(group)
        if told.meet:
            one.driver.meet(told.meet)
        _tell("at", *one.driver.endpoints)
        await _talk(one, group, met)


if __name__ == "__main__":
    trio.run(main)
