"""What a node is told: sections, the order of sources, and addresses."""

from pathlib import Path

import pytest

from nodes.settings import NodeConfig, endpoint, node_config
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
    assert config.section(NetSettings).bind == ("tcp://127.0.0.1:0",)


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


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:5", "tcp://127.0.0.1:5"),
        ("lab-3:5555", "tcp://lab-3:5555"),
        ("[::1]:0", "tcp://[::1]:0"),
        ("tcp://h:65535", "tcp://h:65535"),
        ("ipc:///run/x", "ipc:///run/x"),
    ],
)
def test_addresses_as_people_write_them(text: str, meant: str) -> None:
    assert endpoint(text) == meant


@pytest.mark.parametrize("text", ["", "host", ":5", "h:65536", "h:x", "udp://h:5", "ipc://", "h:٣"])
def test_an_address_that_cannot_be_one_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError, match="write HOST:PORT"):
        endpoint(text)
