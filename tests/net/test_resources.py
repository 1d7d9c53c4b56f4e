"""`peer.resources`, `peer.find` and `peer.find_continuous` of real peers, over ZeroMQ."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes import blocking
from nodes.peer import Peer
from nodes.resources import Findings
from overlay.errors import LocalProtocolError
from overlay.predicates import PredicateError
from tests.net.zone import DEADLINE, FEDERATE, Zone, crashing


@asynccontextmanager
async def three(folder: Path, *, secure: bool = False, **last: Any) -> AsyncIterator[list[Peer]]:
    """Three members of a zone who know each other; `last` is about the third."""
    zone = Zone(folder, secure=secure)
    with trio.fail_after(DEADLINE):
        async with (
            zone.peer("ada", sets=[FEDERATE]) as ada,
            zone.peer("bob", ada, sets=[FEDERATE]) as bob,
            zone.peer("eve", ada, **{"sets": [FEDERATE], **last}) as eve,
        ):
            for one in (ada, bob, eve):
                await one.joined(count=3)
            yield [ada, bob, eve]


async def find_until(peer: Peer, query: str, ids: list[str], **more: Any) -> Findings:
    """Ask again until exactly these are found: what was just registered is on its way."""
    while True:
        found = await peer.find(query, fresh=True, **more)
        if found.complete and sorted(one.id for one in found) == sorted(ids):
            return found
        await trio.sleep(0.05)


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_what_one_registers_all_find(tmp_path: Path, secure: bool) -> None:
    async def main() -> None:
        async with three(tmp_path, secure=secure) as (ada, bob, eve):
            assert ada.resources.register("printer", {"kind": "printer", "colour": True}) == (
                "ada/printer"
            )
            bob.resources.register(
                "box", "system = 'Linux', memory <= 64", values={"system": "Linux", "memory": 48}
            )
            await find_until(eve, "kind = 'printer'", ["ada/printer"])
            (box,) = await find_until(ada, "system = 'Linux', memory > 32", ["bob/box"])
            assert box.item == {"system": "Linux", "memory": 48}
            assert (box.owner, box.name, box.model) == ("bob", "box", "dynamic")
            bob.resources.update("box", memory=16)
            await find_until(eve, "memory <= 16", ["bob/box"])
            (own,) = bob.resources.own
            assert own.item == {"system": "Linux", "memory": 16}
            bob.resources.unregister("box")
            ada.resources.unregister("printer")
            await find_until(eve, "memory >= 0", [])
            await find_until(eve, "kind present", [])

    trio.run(main)


def test_ten_of_many_and_the_nearest_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with three(tmp_path) as peers:
            ada = peers[0]
            every = []
            for peer in peers:
                for index in range(8):
                    name = f"r{index}"
                    every.append(peer.resources.register(name, values={"size": index}))
            await find_until(ada, "size >= 0", every)
            some = await ada.find("size >= 0", limit=10)
            assert len(some) == 10
            assert some.complete
            near = await ada.find("size >= 0", limit=10, nearest=True)
            assert [one.owner for one in near[:8]] == ["ada"] * 8
            assert all(one.distance is not None for one in near)
            far = near[-1].distance
            assert far is not None
            assert far > 0

    trio.run(main)


def test_a_find_that_goes_on_tells_what_comes_changes_and_goes(tmp_path: Path) -> None:
    async def main() -> None:
        async with three(tmp_path) as (ada, bob, _eve):
            bob.resources.register("box", "memory <= 64", values={"memory": 48})
            await find_until(ada, "memory >= 1", ["bob/box"])
            with ada.find_continuous("memory >= 1") as changes:
                first = await anext(changes)
                assert (first.id, first.item["memory"]) == ("bob/box", 48)
                bob.resources.update("box", memory=40)
                assert (await anext(changes)).item["memory"] == 40
                bob.resources.register("other", "memory = 7")
                other = await anext(changes)
                assert (other.id, other.model) == ("bob/other", "static")
                bob.resources.unregister("box")
                gone = await anext(changes)
                assert (gone.id, gone.gone) == ("bob/box", True)

    trio.run(main)


def test_who_dies_is_found_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=[FEDERATE]) as ada:
                bob = zone.peer("bob", ada, sets=[FEDERATE])
                async with crashing(bob) as death:
                    await ada.joined(count=2)
                    bob.resources.register("box", values={"memory": 48})
                    await find_until(ada, "memory >= 1", ["bob/box"])
                    death.cancel()
                await find_until(ada, "memory >= 1", [])

    trio.run(main)


def test_a_shared_machine_has_what_it_has(tmp_path: Path) -> None:
    shares = ["resources.share_machine=true", "resources.share_every=0.2", FEDERATE]

    async def main() -> None:
        async with three(tmp_path, sets=shares) as (ada, _bob, _eve):
            (machine,) = await find_until(ada, "memory >= 0.1, cpus >= 1", ["eve/machine"])
            for key in ("system", "memory_free", "disk", "disk_free", "load"):
                assert key in machine.item

    trio.run(main)


def test_zones_find_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=True)
        with trio.fail_after(DEADLINE):
            async with (
                zone.peer("ada", sets=[FEDERATE]) as ada,
                zone.peer("bob", ada, sets=[FEDERATE], zone="east") as bob,
            ):
                bob.resources.register("box", values={"memory": 48})
                await find_until(ada, "memory >= 1", ["bob/box"])
                ada.resources.register("lamp", {"kind": "lamp"})
                await find_until(bob, "kind = 'lamp'", ["ada/lamp"])

    trio.run(main)


def test_mistakes_are_told_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        async with zone.peer("ada") as ada:
            own = ada.resources
            for query in ("memory >", "a > 10, a < 5", "x = 'open", "m" * 100_000, "a >= nan"):
                with pytest.raises(PredicateError):
                    await ada.find(query)
            with pytest.raises(LocalProtocolError, match="no model"):
                await ada.find("memory > 1", model="all")  # type: ignore[arg-type]
            with pytest.raises(LocalProtocolError, match="timeout"):
                await ada.find("memory > 1", timeout=-1)
            with pytest.raises(LocalProtocolError, match="limit"):
                await ada.find("memory > 1", limit=-1)
            with pytest.raises(LocalProtocolError, match="say what it is"):
                own.register("nothing")
            with pytest.raises(LocalProtocolError, match="cannot be called"):
                own.register("a/b", "x = 1")
            with pytest.raises(PredicateError, match="finite"):
                own.register("nan", values={"x": float("nan")})
            own.register("box", "memory <= 64", values={"memory": 1})
            with pytest.raises(LocalProtocolError, match="outside of what is registered"):
                own.update("box", memory=65)
            with pytest.raises(LocalProtocolError, match="outside of what is registered"):
                own.update("box", colour="red")
            with pytest.raises(LocalProtocolError, match="outside of what is registered"):
                own.update("box", memory="much")
            with pytest.raises(LocalProtocolError, match="no resource"):
                own.update("bax", memory=1)

    trio.run(main)


def test_without_trio(tmp_path: Path) -> None:
    options: dict[str, Any] = {"zone": "west", "control": False, "bind": ["127.0.0.1:0"]}
    with blocking.Peer(name="ada", insecure=True, profile="local", **options) as ada:
        ada.register("box", "memory <= 64", values={"memory": 48})
        ada.update("box", memory=40)
        found = ada.find("memory = 40", timeout=5)
        assert [one.id for one in found] == ["ada/box"]
        assert found.complete
        ada.unregister("box")
        assert ada.find("memory >= 1") == []
