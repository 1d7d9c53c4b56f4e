"""What a node is told: sections, the order of sources, and addresses."""

from pathlib import Path

import pytest

from nodes.settings import NodeConfig, node_config
from overlay.config import Settings
from overlay.errors import ConfigError
from overlay.net.config import NetSettings
from protocols.echo import EchoConfig


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("[echo]\ntimeout = 3.0\nretries = 5\n")
    config = node_config("ada", files=[file], sets=["echo.timeout=4"], bind=["127.0.0.1:0"])
    echo = config.section(EchoConfig)
    assert (echo.timeout, echo.retries, echo.max_open) == (4.0, 5, EchoConfig().max_open)
    assert config.section(NetSettings).bind == ("127.0.0.1:0",)


def test_a_wrong_setting_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("[echo]\ntimeuot = 3.0\n")
    with pytest.raises(ConfigError, match=r"lab.toml: echo.timeuot = 3.0.*did you mean") as wrong:
        node_config("ada", files=[file])
    assert "\n" not in str(wrong.value)


def test_defaults_need_no_file() -> None:
    assert NodeConfig().section(EchoConfig) == EchoConfig()


def test_a_section_that_nobody_added_is_told() -> None:
    class Other(Settings, frozen=True, kw_only=True):
        pass

    with pytest.raises(ConfigError, match="Other is no section"):
        NodeConfig().section(Other)


def test_an_address_in_a_file_is_checked_where_the_file_is_known(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text('[net]\nbind = ["127.0.0.1:0", "nowhere"]\n')
    with pytest.raises(ConfigError, match=r"lab.toml: net.bind = 'nowhere': write HOST:PORT"):
        node_config("ada", files=[file])


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"bind": ["h:65536"]}, "--bind: net.bind = 'h:65536': a port is at most 65535"),
        ({"advertise": ["udp://h:5"]}, "--advertise: net.advertise = 'udp://h:5': the transport"),
        ({"seeds": [":5"]}, "--seed: ':5': write HOST:PORT"),
        ({"sets": ['net.bind=["x"]']}, "--set: net.bind = 'x': write HOST:PORT"),
        ({"sets": ["net.bind=7"]}, "--set: net.bind = 7: must be a list"),
    ],
)
def test_a_wrong_address_names_its_option(told: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        node_config("ada", **told)  # type: ignore[arg-type]
    assert str(wrong.value).startswith(complaint)


def test_seeds_are_addresses_as_people_write_them() -> None:
    config = node_config("ada", seeds=["127.0.0.1:5", "[::1]:6", "ipc:///run/x"])
    assert config.seeds == ("tcp://127.0.0.1:5", "tcp://[::1]:6", "ipc:///run/x")


def test_an_insecure_node_listens_at_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    assert node_config(insecure=True).section(NetSettings).bind == ("tcp://127.0.0.1:0",)
    assert node_config().section(NetSettings).bind == ("tcp://0.0.0.0:0",)
    lab = tmp_path / "lab.toml"
    lab.write_text('[net]\nbind = ["tcp://0.0.0.0:7400"]\n')
    told = node_config(insecure=True, files=[lab])
    assert told.section(NetSettings).bind == ("tcp://0.0.0.0:7400",)
