"""Those who keep keys beside our table: measured where installed, else said to be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dht_ends import Load
from bench.dht_peers import KEEPERS, beside_others
from bench.peers.keeper_redis import RedisKeeper
from bench.report import Options, Report

LOAD = {"size": 100, "keys": 20, "sequential": 100, "many": 200, "under_way": 20}


@pytest.mark.parametrize("name", list(KEEPERS))
def test_each_keeps_what_it_is_given(name: str, tmp_path: Path) -> None:
    keeper = KEEPERS[name]()
    if how := keeper.missing():
        pytest.skip(how)
    with keeper.serving(tmp_path) as port:
        found = keeper.measure(port, Load(LOAD))
    assert len(found["get"]) == len(found["put"]) == LOAD["sequential"]
    assert min(found["get"]) > 1_000  # ns: somebody was asked


def test_who_is_not_installed_is_skipped_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisKeeper, "packages", {"no_such_module": "redis"})
    monkeypatch.setattr(RedisKeeper, "program", "no-such-server")
    report = Report("dht", {})
    beside_others(report, Options(peers=("redis",)), LOAD)
    assert report.notes == [
        "redis is skipped, since it is not installed:"
        " pip install redis, apt-get install no-such-server"
    ]
