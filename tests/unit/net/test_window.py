"""How far bulk runs ahead: marks that go and come back."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from overlay.net.window import BulkWindow


def test_it_is_open_until_so_much_is_on_its_way() -> None:
    window = BulkWindow(1000)
    found = []
    for size in (999, 500, 1):  # a frame is not cut in two
        found.append(window.open)
        window.sent(size)
    assert found == [True, True, False]


def test_a_mark_is_due_after_an_eighth_and_reopens_it_when_it_comes_back() -> None:
    window = BulkWindow(1000)

    def state() -> tuple[bool, int | None, bool]:
        return window.open, window.due, window.awaited

    window.sent(124)
    assert state() == (True, None, False)
    window.sent(1)
    assert state() == (True, 125, False)
    window.marked()
    assert state() == (True, None, True)
    window.sent(900)
    assert state() == (False, 1025, True)
    window.taken(125)
    assert state() == (True, 1025, False)


@pytest.mark.parametrize("frame", [1, 7, 100, 125, 999, 1000, 5000])
def test_while_it_is_closed_a_mark_is_on_its_way(frame: int) -> None:
    window = BulkWindow(1000)
    sent = 0
    for _ in range(20_000 // frame + 20):
        if window.open:
            window.sent(frame)
            sent += frame
            if window.due is not None:
                assert window.due == sent
                window.marked()
                last = sent
        else:
            assert window.awaited
            window.taken(last)
    assert sent >= 10_000


@pytest.mark.parametrize("upto", [0, 399, 801, 1 << 60])
def test_a_mark_that_was_never_sent_is_the_peers_fault(upto: int) -> None:
    window = BulkWindow(1000)
    window.sent(400)
    window.marked()
    window.sent(400)
    window.marked()
    window.taken(400)
    with pytest.raises(RemoteProtocolError) as caught:
        window.taken(upto)
    assert caught.value.reason == "stray-mark"
    assert window.awaited
    window.taken(400)  # it was repeated
    window.taken(800)
    assert not window.awaited


def test_only_a_mark_that_everything_waits_for_is_overdue() -> None:
    window = BulkWindow(1000)
    window.sent(500)
    window.marked()
    found = [window.overdue]
    window.sent(600)
    found.append(window.overdue)
    window.taken(500)
    found.append(window.overdue)
    assert found == [None, 500, None]


def test_a_new_connection_begins_anew() -> None:
    window = BulkWindow(1000)
    window.sent(2000)
    window.marked()
    window.reset()
    assert window.open
    assert not window.awaited
    with pytest.raises(RemoteProtocolError):
        window.taken(2000)
