"""Packets of NTP: what is asked, what is believed, and what is refused."""

import pytest

from overlay.errors import RemoteProtocolError
from overlay.net.ntp import (
    ERA,
    PACKET,
    UNIX_EPOCH,
    KissOfDeath,
    ntp_time,
    read_reply,
    unix_time,
    write_request,
)

NONCE = 0x0123456789ABCDEF
NOW = 1_800_000_000.25


def packet(
    *,
    head: int = 4 << 3 | 4,
    stratum: int = 2,
    delay: int = 1 << 15,  # half a second
    dispersion: int = 1 << 14,  # a quarter
    reference: bytes = b"GPS\0",
    origin: int = NONCE,
    received: float = NOW,
    sent: float = NOW + 0.5,
) -> bytes:
    times = (0, origin, ntp_time(received), ntp_time(sent))
    return PACKET.pack(head, stratum, 6, -20, delay, dispersion, reference, *times)


def test_a_request_is_a_client_packet_of_version_4_with_nothing_but_a_number() -> None:
    data = write_request(NONCE)
    assert len(data) == 48
    assert data[0] == 0b00_100_011
    assert data[1:40] == bytes(39)
    assert int.from_bytes(data[40:]) == NONCE


def test_a_reply_tells_its_times_and_its_error() -> None:
    reply = read_reply(packet(), NONCE, NOW)
    assert reply.received == pytest.approx(NOW, abs=1e-6)
    assert reply.sent == pytest.approx(NOW + 0.5, abs=1e-6)
    assert reply.error == 0.5
    assert reply.stratum == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ntp-malformed"),
        (bytes(47), "ntp-malformed"),
        (packet(head=4 << 3 | 3), "ntp-malformed"),  # a client's
        (packet(head=7 << 3 | 4), "ntp-malformed"),  # no version
        (packet(origin=NONCE + 1), "ntp-not-asked"),
        (packet(head=3 << 6 | 4 << 3 | 4), "ntp-unsynchronised"),
        (packet(stratum=16), "ntp-unsynchronised"),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        read_reply(data, NONCE, NOW)


def test_a_kiss_of_death_says_why() -> None:
    with pytest.raises(KissOfDeath, match="RATE"):
        read_reply(packet(stratum=0, reference=b"RATE"), NONCE, NOW)


@pytest.mark.parametrize("seconds", [0.0, NOW, 1_794_991_414.2, ERA - UNIX_EPOCH + 5.0, 5e9])
def test_times_pass_the_format_also_after_2036(seconds: float) -> None:
    assert unix_time(ntp_time(seconds), seconds + 1000) == pytest.approx(seconds, abs=1e-6)
