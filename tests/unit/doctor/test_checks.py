"""Each check of the doctor says what is wrong, and says nothing is when nothing is."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes.doctor import (
    certificates,
    clock,
    disk,
    firewall,
    limits,
    namesakes,
    peers,
    ports,
    versions,
)
from nodes.doctor.case import Case, Running, options_in
from nodes.doctor.finding import Verdict
from nodes.doctor.hearing import Heard, read_beacon
from nodes.settings import node_config
from overlay.limits import Limits
from overlay.security.authority import Authority
from overlay.security.datagram import DatagramSigner
from overlay.security.plain import PlainSigner
from overlay.security.rights import Rights
from overlay.wire.datagrams import write_datagram
from protocols.beacon.messages import Announcement, Presence

DAY = 86_400.0


def _case(*sets: str, nodes: tuple[Running, ...] = (), **options: Any) -> Case:
    sets = ("beacon.enabled=false", *sets)
    return Case(node_config(insecure=True, sets=sets, **options), nodes, listen=0.0)


def _wrong(findings: Any) -> list[str]:
    return [one.what for one in findings if one.verdict is Verdict.WRONG]


def _status(**driver: Any) -> dict[str, Any]:
    facts = {"links": [], "refusals": {}, "counters": {}, "uptime": 100.0} | driver
    me = {"name": "ada", "pid": os.getpid(), "zone": "lab", "insecure": True, "events_dropped": 0}
    return me | {"driver": facts}


# -- keys ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    Authority.create(folder, "overlay").issue("ada", Rights(zones=("lab",))).save(folder)
    return folder


def _until(keys: Path) -> float:
    from overlay.security.credentials import read_certificate_file

    return read_certificate_file(keys / "ada" / "certificate.pem").not_after


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (20 * DAY, ""),
        (3 * DAY, "the certificate of ada expires in 3.0 days"),
        (-1.0, "the certificate of ada expired on"),
    ],
)
def test_a_certificate_near_its_end(keys: Path, left: float, said: str) -> None:
    found = list(certificates.examine_folder(keys / "ada", _until(keys) - left))
    if said:
        (one,) = found
        assert one.what.startswith(said)
        assert "overlay keys issue ada" in one.fix
    else:
        assert [one.verdict for one in found] == [Verdict.WELL]


def test_a_certificate_of_the_future(keys: Path) -> None:
    told = _wrong(certificates.examine_folder(keys / "ada", 0.0))
    assert told[-1].startswith("the certificate of ada is valid only from")


def test_keys_that_others_can_read_and_files_that_are_damaged(tmp_path: Path) -> None:
    Authority.create(tmp_path, "overlay").issue("ada", Rights(zones=("lab",))).save(tmp_path)
    key = tmp_path / "ada" / "node.key"
    key.chmod(0o644)
    case = Case(node_config(keys=tmp_path), listen=0.0)
    assert _wrong(certificates.check(case)) == [
        "the private key of ada can be read by others (mode 0644)"
    ]
    key.chmod(0o600)
    key.write_text("nothing\n")
    assert any("is damaged" in what for what in _wrong(certificates.check(case)))


def test_no_keys_is_no_fault(tmp_path: Path) -> None:
    (found,) = certificates.check(Case(node_config(keys=tmp_path), listen=0.0))
    assert found.verdict is Verdict.SKIPPED


# -- ports, limits, disk ---------------------------------------------------------------------------


def test_a_port_that_is_taken_and_by_whom() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        case = _case(bind=[f"127.0.0.1:{port}"])
        (what,) = _wrong(ports.check(case))
        assert what.startswith(f"tcp port {port} is taken by ")
        assert what.endswith(f"(pid {os.getpid()})")
        own = _case(bind=[f"127.0.0.1:{port}"], nodes=(Running(_status()),))
        assert not _wrong(ports.check(own))  # it is the peer that is examined
    assert not _wrong(ports.check(case))


def test_an_address_of_another_machine() -> None:
    assert _wrong(ports.check(_case(bind=["192.0.2.1:7400"])))[0] == (
        "192.0.2.1 is no address of this machine"
    )


def test_a_beacon_port_that_somebody_does_not_share() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("0.0.0.0", 0))
        port = taken.getsockname()[1]
        sets = ("beacon.enabled=true", f"beacon.port={port}", "beacon.ipv6_group=")
        (what,) = _wrong(ports.check(_case(*sets)))
    assert what.startswith(f"udp port {port} of beacons")
    assert str(os.getpid()) in what


def test_few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _wrong(limits.check(_case(nodes=(Running(_status()),))))
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1024))
    assert _wrong(limits.check(_case())) == [
        "a peer may open 1024 files and sockets: about 204 links"
    ]


def test_a_full_disk_and_a_folder_of_somebody_else(tmp_path: Path) -> None:
    room = disk.room("state", tmp_path / "new" / "state", 1)
    assert (room.verdict, str(tmp_path) in room.what) == (Verdict.WELL, True)
    assert disk.room("state", tmp_path, 1 << 60).verdict is Verdict.WRONG


# -- what is heard ---------------------------------------------------------------------------------


def _presence(authority: bytes) -> Presence:
    return Presence(1, "overlay", authority, "lab", 3, ("tcp://192.0.2.7:7400",))


def test_beacons_of_both_kinds_are_read(keys: Path) -> None:
    from overlay.security.credentials import load_credentials

    body = write_datagram("", Announcement(_presence(b""), 1), Limits())
    plain = read_beacon(PlainSigner("ada", "overlay").sign(body, 0.0), "192.0.2.7", 0.0)
    assert plain == Heard("ada", "192.0.2.7", "overlay", b"", "lab")
    credentials = load_credentials(keys, "ada")
    body = write_datagram("", Announcement(_presence(b"x" * 16), 1), Limits())
    signed = DatagramSigner(credentials).sign(body, 1060.0, with_certificate=True)
    heard = read_beacon(signed, "192.0.2.7", 1000.0)
    assert (heard.name, heard.authority, heard.ahead) == ("ada", b"x" * 16, 60.0)


def test_two_overlays_of_one_name() -> None:
    ours = Heard("ada", "192.0.2.1", "overlay", b"x" * 16, "lab")
    also = ours._replace(name="bob")
    theirs = ours._replace(name="eve", authority=b"")
    other = ours._replace(name="kim", overlay="elsewhere", authority=b"y" * 16)
    assert not _wrong(namesakes.compare([ours, also, other], 3.0))
    (what,) = _wrong(namesakes.compare([ours, also, theirs], 3.0))
    assert what.startswith("2 overlays are called 'overlay' (authority 78787878: ada at 192.0.2.1")
    assert "insecure: eve" in what


def test_clocks_that_are_off() -> None:
    told = {"synchronised": True, "offset": 4.0, "error": 0.001, "sources": []}
    assert _wrong(clock.check(_case(nodes=(Running(_status(), told),)))) == [
        "the clock of this machine is 4.0 s behind overlay time (as ada knows it, ± 0.001 s)"
    ]
    good = told | {"offset": 0.01, "sources": [{"source": "bob", "state": "falseticker"}]}
    assert _wrong(clock.check(_case(nodes=(Running(_status(), good),)))) == [
        "ada has outvoted bob: their clocks are off"
    ]


def test_a_silent_ntp_server() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (what,) = _wrong(clock.check(_case(f'time.ntp=["127.0.0.1:{port}"]')))
    assert what.startswith(f"the NTP server 127.0.0.1:{port} does not tell the time")


# -- the rest --------------------------------------------------------------------------------------


def test_counters_of_a_peer_in_plain_words() -> None:
    waiting = {"peer": "bob", "endpoint": "tcp://192.0.2.2:7400", "state": "waiting"}
    status = _status(refusals={"datagram-stale": 3, "unknown-scope": 9}, links=[])
    status["driver"]["links"] = [waiting | {"reason": "no route to host"}]
    zone = {"members": [{"name": "ada"}]}
    found = list(peers.complaints(Running(status, zone=zone)))
    assert [one.verdict for one in found] == [Verdict.WRONG, Verdict.WRONG, Verdict.HINT]
    assert "clocks differ" in found[0].what
    assert "the link to bob is waiting: no route to host" in found[1].what


def test_this_installation_is_whole() -> None:
    assert not _wrong(versions.check(_case()))
    assert versions.numbers("1.10.2rc1") > versions.numbers("1.9")


def test_rules_that_block() -> None:
    ruleset = """
    table inet filter {
        chain inward {
            type filter hook input priority filter; policy accept;
            ip daddr 239.0.0.0/8 drop
            tcp dport 22 drop
        }
        chain forward { type filter hook forward priority filter; policy drop; }
    }
    """
    assert list(firewall.blocking_chains(ruleset)) == [
        "nftables blocks, in table inet filter, chain inward: ip daddr 239.0.0.0/8 drop"
    ]


def test_options_are_read_from_a_command_line() -> None:
    words = [sys.executable, "-m", "nodes.cli", "peer", "--name=ada", "--state=here"]
    options = options_in(words)
    assert options is not None
    assert (options.name, options.state) == ("ada", "here")
    assert options_in(["/usr/bin/overlay", "peer"]) is not None
    assert options_in(["overlay", "status", "peer"]) is None
