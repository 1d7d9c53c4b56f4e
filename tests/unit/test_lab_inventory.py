"""Inventories: what is right, and one line for each thing that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.lab.inventory import Inventory, load_inventory, parse_inventory
from nodes.lab.inventory_file import add_host, first_inventory, host_block, without_host
from overlay.errors import ConfigError
from overlay.toml_source import Source, parse_toml

HOST = '[[host]]\nname = "h1"\naddress = "10.0.0.1"\n'
OTHER = '[[host]]\nname = "h2"\naddress = "10.0.0.2"\n'


def read(text: str) -> Inventory:
    return parse_inventory(Source("lab.toml", parse_toml(text)), Path("lab.toml"))


def test_defaults_reach_hosts_and_hosts_overrule_them() -> None:
    told = read(
        '[ssh]\nuser = "me"\nport = 2222\n[peers]\ncount = 4\nzone = "a"\n'
        + HOST
        + OTHER
        + 'zone = ["b", "c"]\npeers = 1\nssh_port = 22\nroles = ["broker"]\n'
        + "[host.settings.net]\nheartbeat = 3\n"
    )
    one, two = told.hosts
    assert (one.user, one.ssh_port, one.peers, one.zones, one.roles) == ("me", 2222, 4, ("a",), ())
    assert (two.ssh_port, two.peers, two.zones, two.roles) == (22, 1, ("b", "c"), ("broker",))
    assert (one.settings, two.settings) == ({}, {"net": {"heartbeat": 3}})
    assert two.at == "me@10.0.0.2"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HOST + "prot = 22", "host[h1].prot = 22: no such key: did you mean host[h1].port?"),
        (HOST + "ssh_port = 0", "host[h1].ssh_port = 0: must be a whole number from 1 to 65535"),
        (HOST + "ssh_port = 99999", "host[h1].ssh_port = 99999: must be a whole number from 1"),
        (HOST + "port = 65535", "its last peer would get port 65536"),
        (HOST + "peers = 0", "host[h1]: neither peers nor roles"),
        (HOST + 'roles = ["brokr"]', "each one of 'bdn', 'broker'"),
        (HOST + "zone = []", "host[h1].zone = []: must be text in quotes"),
        (HOST + HOST, "host[h1]: two hosts have this name: rename one"),
        (HOST + OTHER.replace("0.2", "0.1"), "h1 has the same address and ssh port"),
        (HOST.replace('"h1"', '"H 1"'), "host[H 1].name = 'H 1': must be a name like h1"),
        (HOST.replace("10.0", "me@10.0"), "the user goes into user ="),
        ('[[host]]\naddress = "a"\n', 'host[1]: name is missing: add name = "h1"'),
        ("", "no hosts: add a [[host]]"),
        ('[host]\nname = "a"', "write [[host]], with two brackets"),
        ("host = 3", "write a [[host]] section for each host"),
        ('name = "lab"\n' + HOST, "outside of any section: move it below [lab]"),
        ("[labb]\n" + HOST, "[labb]: no such section: did you mean lab?"),
        ('[lab]\nnam = "x"\n' + HOST, "lab.nam = 'x': no such key: did you mean lab.name?"),
        ('[lab]\nname = "my lab"\n' + HOST, "lab.name = 'my lab': must be a name"),
        ('[lab]\nprofile = "lann"\n' + HOST, "must be one of 'lan', 'local', 'wan'"),
        ('[ssh]\nport = "22"\n' + HOST, "ssh.port = '22': must be a whole number"),
        (
            "[settings.membership]\nprobe_perod = 1\n" + HOST,
            "settings: membership.probe_perod = 1: no such key: did you mean",
        ),
        ("[settings]\nprobe_period = 1\n" + HOST, "write [settings.SECTION]"),
        (HOST + "[host.settings.nett]\n", "host[h1].settings: [nett]: no such section: did you"),
        ("[settings.net]\nheartbeat = -1\n" + HOST, "net.heartbeat = -1: must be a number"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    line = str(caught.value)
    assert line.startswith("lab.toml: ")
    assert problem in line
    assert "\n" not in line


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`overlay lab init` writes one"):
        load_inventory(tmp_path / "lab.toml")


def test_broken_toml_says_where(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text("[lab]\nname = lab\n")
    with pytest.raises(ConfigError, match="line 2"):
        load_inventory(tmp_path / "lab.toml")


def test_the_first_inventory_is_a_good_one() -> None:
    text = first_inventory("lab", 3, ["a", "b"], ["me@gpu7.example.org:2200", "10.0.0.7", "gpu7"])
    told = read(text)
    assert [(h.name, h.user, h.address, h.ssh_port, h.zones) for h in told.hosts] == [
        ("gpu7", "me", "gpu7.example.org", 2200, ("a",)),
        ("h2", "", "10.0.0.7", 22, ("b",)),
        ("h3", "", "gpu7", 22, ("a",)),
    ]
    assert {host.peers for host in told.hosts} == {3}
    assert len(read(first_inventory("lab", 2, [], [])).hosts) == 3


def test_every_default_of_the_first_inventory_is_true() -> None:
    """A commented line shows a default: without its # nothing may change."""
    text = first_inventory("lab", 2, [], [])
    opened = "\n".join(
        line.removeprefix("# ") if " = " in line and line.startswith("# ") else line
        for line in text.splitlines()
    ).replace("probe_period = 1.0", "")
    plain, shown = read(text), read(opened)
    assert (shown.lab, shown.ssh, shown.checks) == (plain.lab, plain.ssh, plain.checks)
    assert shown.hosts == plain.hosts


@pytest.mark.parametrize("address", ["", "me@", "a b"])
def test_an_address_that_cannot_be_one(address: str) -> None:
    with pytest.raises(ConfigError):
        first_inventory("lab", 2, [], [address])


def test_a_host_more_and_a_host_less_keep_the_comments() -> None:
    text = "# mine\n" + HOST + "# the second\n" + OTHER + "[host.settings.net]\nheartbeat = 3\n"
    block = host_block("h3", "10.0.0.3", user="me", ssh_port=2200, zone="b", peers=1)
    assert [host.name for host in add_host(text, Path("lab.toml"), block).hosts] == [
        "h1",
        "h2",
        "h3",
    ]
    without = without_host(text + block, "h2", Path("lab.toml"))
    assert "# mine" in without
    assert "heartbeat" not in without
    assert [host.name for host in read(without).hosts] == ["h1", "h3"]
    first = without_host(text, "h1", Path("lab.toml"))
    assert "# the second\n[[host]]" in first
    with pytest.raises(ConfigError, match="two hosts have this name"):
        add_host(text, Path("lab.toml"), HOST)
    with pytest.raises(ConfigError, match="no \\[\\[host\\]\\] named"):
        without_host(text, "h9", Path("lab.toml"))
