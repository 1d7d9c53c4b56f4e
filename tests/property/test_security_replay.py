"""The replay guard, whatever arrives in whatever order: no stamp is ever accepted twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overlay.security.replay import Freshness, ReplayGuard

SKEW = 20

arrivals = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.integers(0, 60), st.integers(0, 3)),
    max_size=200,
)


@given(arrivals, st.integers(1, 5), st.integers(1, 8))
def test_nothing_is_accepted_twice_and_memory_is_bounded(
    events: list[tuple[bytes, int, int]], senders: int, window: int
) -> None:
    guard = ReplayGuard(senders=senders, window=window)
    accepted: set[tuple[bytes, int]] = set()
    now = 0
    for sender, stamp, pause in events:
        now += pause
        if abs(now - stamp) > SKEW:  # the datagram's reader refuses it before it asks
            continue
        if guard.judge(sender, stamp) is Freshness.FRESH:
            assert (sender, stamp) not in accepted
            accepted.add((sender, stamp))
            guard.accept(sender, stamp, now - SKEW)
        assert len(guard) <= senders
        assert all(len(kept) <= window for kept in guard._windows.values())


@given(st.permutations(range(16)))
def test_any_order_within_the_window_is_accepted_once(order: list[int]) -> None:
    guard = ReplayGuard(senders=1, window=16)
    for stamp in order:
        assert guard.judge(b"a", stamp) is Freshness.FRESH
        guard.accept(b"a", stamp, horizon=0)
    assert {guard.judge(b"a", stamp) for stamp in order} == {Freshness.SEEN}
