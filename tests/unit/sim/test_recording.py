"""The recording effects, which all unit tests of protocols stand on."""

from __future__ import annotations

from overlay.protocol import LinkUp, UdpAddress
from tests.recording import CancelTimer, Cast, Emit, RecordingEffects, Send, SetTimer, Store
from tests.sim.actors import Beacon, Note


def test_everything_is_recorded_in_order_and_drained_once() -> None:
    effects = RecordingEffects()
    effects.send("b", Note(1))
    effects.send(["c", "d"], Note(2))
    effects.cast(UdpAddress("h", 1), Beacon(3))
    effects.set_timer("x", 1.5)
    effects.set_timer("y", 2.5)
    effects.cancel_timer("x")
    effects.store(b"k", None, "token")
    effects.emit(LinkUp("b"))
    assert effects.timers == {"y": 2.5}
    assert effects.drain() == [
        Send("b", Note(1)),
        Send("c", Note(2)),
        Send("d", Note(2)),
        Cast(UdpAddress("h", 1), Beacon(3)),
        SetTimer("x", 1.5),
        SetTimer("y", 2.5),
        CancelTimer("x"),
        Store(b"k", None, "token"),
        Emit(LinkUp("b")),
    ]
    assert effects.drain() == []
