"""The replay window: exact verdicts; its bounds cost a late stamp, but let none in twice."""

from __future__ import annotations

from overlay.security.replay import Freshness, ReplayGuard, ReplayWindow

FRESH, SEEN, TOO_OLD = Freshness.FRESH, Freshness.SEEN, Freshness.TOO_OLD


def test_a_window_forgets_its_oldest_and_refuses_them() -> None:
    window = ReplayWindow(size=3)
    for stamp in (10, 30, 20, 40):
        assert window.judge(stamp) is FRESH
        window.accept(stamp, horizon=0)
    assert len(window) == 3
    assert window.newest == 40
    verdicts = {stamp: window.judge(stamp) for stamp in (5, 10, 15, 20, 25, 30, 40, 50)}
    assert verdicts == {
        5: TOO_OLD,
        10: TOO_OLD,
        15: FRESH,
        20: SEEN,
        25: FRESH,
        30: SEEN,
        40: SEEN,
        50: FRESH,
    }


def test_a_window_drops_what_is_stale_anyway() -> None:
    window = ReplayWindow(size=100)
    for stamp in range(10):
        window.accept(stamp, horizon=0)
    window.accept(50, horizon=8)
    assert len(window) == 3
    assert window.judge(7) is TOO_OLD
    assert window.judge(8) is SEEN


def test_a_quiet_sender_is_forgotten_for_free() -> None:
    guard = ReplayGuard(senders=2, window=4)
    guard.accept(b"a", 10, horizon=0)
    guard.accept(b"b", 100, horizon=50)
    guard.accept(b"c", 101, horizon=50)
    assert len(guard) == 2
    assert guard.evicted == 0
    assert guard.judge(b"a", 10) is TOO_OLD
    assert guard.judge(b"a", 60) is FRESH


def test_a_busy_sender_pushed_out_is_counted_and_cannot_be_replayed() -> None:
    guard = ReplayGuard(senders=2, window=4)
    for sender, stamp in ((b"a", 100), (b"b", 101), (b"a", 102), (b"c", 103)):
        guard.accept(sender, stamp, horizon=50)
    assert guard.evicted == 1  # b, heard longest ago
    assert guard.judge(b"b", 101) is TOO_OLD
    assert guard.judge(b"b", 102) is FRESH
    assert guard.judge(b"a", 100) is SEEN
    guard.accept(b"b", 104, horizon=50)
    assert guard.judge(b"b", 101) is TOO_OLD
