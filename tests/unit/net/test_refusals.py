"""Refusals: all are counted, few are logged, and nothing grows without bound."""

import pytest

from overlay.errors import RemoteProtocolError
from overlay.net.refusals import LINES, OTHER, REASONS, REMEMBERED_PEERS, Refusals

BAD = RemoteProtocolError("malformed-frame", "detail")


def test_each_counts_under_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    refusals.add("bob", BAD, 0.0)
    refusals.add("eve", BAD, 0.0, 3)
    refusals.add("bob", RemoteProtocolError("flood"), 0.0)
    assert refusals.counts == {"malformed-frame": 4, "flood": 1}
    assert [record.message for record in caplog.records] == [
        "refused from bob: malformed-frame: detail",
        "refused from eve: malformed-frame: detail",
    ]


def test_a_peer_is_logged_once_a_second_at_most(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for n in range(301):
        refusals.add("bob", BAD, n * 0.01)
    assert [record.message for record in caplog.records] == [
        "refused from bob: malformed-frame: detail",
        *["refused from bob: malformed-frame: detail (and 99 more since the last line)"] * 3,
    ]
    assert refusals.counts["malformed-frame"] == 301


def test_forged_senders_cannot_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for n in range(10_000):
        refusals.add(f"10.0.{n >> 8}.{n & 255}", BAD, 0.5)
    assert len(caplog.records) == LINES
    refusals.add("bob", BAD, 1.5)
    assert caplog.records[-1].message.endswith(f"(and {10_000 - LINES} of others)")
    assert refusals.counts["malformed-frame"] == 10_001


def test_a_peer_that_others_pushed_out_is_still_logged_once_a_second() -> None:
    refusals = Refusals()
    for n in range(100 * REMEMBERED_PEERS):
        refusals.add(f"peer{n}", BAD, n / 1000)
    assert len(refusals._logged) <= REMEMBERED_PEERS
    newest = next(reversed(refusals._logged))
    oldest = next(iter(refusals._logged))
    # Whoever is forgotten was logged long ago: the lines of a second are few.
    assert refusals._logged[newest][0] - refusals._logged[oldest][0] > 1.0


def test_reasons_are_bounded_too() -> None:
    refusals = Refusals()
    for n in range(REASONS + 50):
        refusals.add("bob", RemoteProtocolError(f"reason-{n}"), 0.0)
    assert len(refusals.counts) == REASONS + 1
    assert refusals.counts[OTHER] == 50


def test_a_line_is_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    refusals.add("bob\nroot", RemoteProtocolError("bad", "\x1b[31m\r\n" + "x" * 10_000), 0.0)
    (record,) = caplog.records
    assert record.message.startswith("refused from bob?root: bad: ?[31m??xxx")
    assert len(record.message) < 350


def test_somebody_unknown_has_a_name_for_people(caplog: pytest.LogCaptureFixture) -> None:
    Refusals().add("", BAD, 0.0)
    assert caplog.records[0].message.startswith("refused from an unknown sender: ")
