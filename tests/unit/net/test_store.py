"""The store: what is put is kept in order, and told when it is safe."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
import trio

from overlay.errors import ConfigError
from overlay.host import Instance
from overlay.net.disk import RUN, Disk
from overlay.net.store import Store, Write
from overlay.protocol import NODE_SCOPE


def after(folder: Path | None, *puts: tuple[bytes, bytes | None]) -> dict[bytes, bytes]:
    """What a store keeps after these puts, each of which it must call safe, and not too soon."""
    told: list[Hashable] = []
    one = Instance("echo", NODE_SCOPE, frozenset())

    async def main() -> dict[bytes, bytes]:
        store = Store(folder, lambda batch: told.extend(token for _, token in batch))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            for number, (key, value) in enumerate(puts):
                store.put(one, key, value, number)
            assert told == []
            await store.settled()
            nursery.cancel_scope.cancel()
        kept = dict(store.kept(one))
        store.close()
        return kept

    kept = trio.run(main)
    assert told == list(range(len(puts)))
    return kept


@pytest.mark.parametrize("on_disk", [True, False])
def test_what_is_put_is_kept_in_order(on_disk: bool, tmp_path: Path) -> None:
    folder = tmp_path / "state" if on_disk else None
    kept = after(folder, (b"b", b"1"), (b"a", b"2"), (b"c", b"3"), (b"c", None), (b"b", b"4"))
    assert list(kept.items()) == [(b"a", b"2"), (b"b", b"4")]
    assert after(folder) == (kept if on_disk else {})


def test_many_are_written_by_few_statements_and_the_last_word_counts(tmp_path: Path) -> None:
    many = [(b"%05d" % number, b"1") for number in range(2 * RUN + 3)]
    again = [(key, None) for key, _ in many[: RUN + 1]] + [(b"00001", b"back"), (b"new", b"2")]
    kept = after(tmp_path, *many, *again)
    assert len(kept) == RUN + 2 + 2
    assert kept[b"00001"] == b"back"
    assert b"00000" not in kept
    assert after(tmp_path) == kept


def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.write([Write("echo", b"a", b"1"), Write("echo", b"b", b"1")])
    wrong: Any = object()
    with pytest.raises(ConfigError, match="cannot be written"):
        disk.write([Write("echo", b"a", b"2"), *_fill(RUN), Write("echo", b"b", wrong)])
    assert disk.read("echo") == {b"a": b"1", b"b": b"1"}
    disk.write([Write("echo", b"a", None)])  # it goes on
    assert disk.read("echo") == {b"b": b"1"}
    disk.close()


def _fill(count: int) -> list[Write]:
    return [Write("echo", b"fill %d" % number, b"") for number in range(count)]


def test_a_folder_that_cannot_be_is_one_line() -> None:
    with pytest.raises(ConfigError, match="state folder /dev/null/x: Not a directory"):
        Store(Path("/dev/null/x"), lambda *_: None)


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_text("this is no database" * 100)
    with pytest.raises(ConfigError, match="move it away to start afresh"):
        Store(tmp_path, lambda *_: None)


def test_a_disk_that_refuses_is_one_line(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.close()
    with pytest.raises(ConfigError, match="cannot be written"):
        disk.write([Write("echo", b"a", b"1")])
