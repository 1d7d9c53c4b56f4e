"""Control requests that go on: a line for each value, until either side ends it."""

from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from nodes.control import ControlError, follow
from nodes.folders import private_folder
from nodes.service import ControlService
from tests.unit.cli.test_control import serving


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return private_folder(tmp_path_factory.mktemp("c") / "run")


def test_every_value_comes_until_the_handler_ends(folder: Path) -> None:
    async def count(upto: int) -> AsyncGenerator[dict[str, int]]:
        for number in range(upto):
            yield {"n": number}

    service = ControlService()
    service.register("count", count)
    told = serving(service, folder, lambda path: list(follow(path, "count", upto=3)))
    assert told == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert service.counts == {"answered": 1}


def test_a_client_that_hangs_up_ends_a_silent_handler(folder: Path) -> None:
    ended = []

    async def endless() -> AsyncGenerator[int]:
        try:
            yield 1
            await trio.sleep_forever()
        finally:
            ended.append(True)

    def look() -> int:
        (path,) = folder.glob("*.sock")
        with closing(follow(path, "endless")) as values:
            return int(next(values))

    async def main() -> None:
        async with service.listening(folder, "ada") as listener, trio.open_nursery() as nursery:
            nursery.start_soon(service.serve, listener)
            with trio.fail_after(60):
                assert await trio.to_thread.run_sync(look) == 1
                while not ended:  # noqa: ASYNC110 (a plain list tells)
                    await trio.sleep(0.001)
            nursery.cancel_scope.cancel()

    service = ControlService()
    service.register("endless", endless)
    trio.run(main)


def test_what_cannot_begin_is_told(folder: Path) -> None:
    async def picky(word: str) -> AsyncGenerator[str]:
        yield word

    service = ControlService()
    service.register("picky", picky)
    with pytest.raises(ControlError, match=r"picky: .*unexpected keyword argument 'wrod'"):
        serving(service, folder, lambda path: list(follow(path, "picky", wrod="x")))
    with pytest.raises(ControlError, match="knows only picky"):
        serving(service, folder, lambda path: list(follow(path, "pikcy")))
    with pytest.raises(ControlError, match="cannot be reached: No such file"):
        list(follow(folder / "nobody.1.0.sock", "picky"))
