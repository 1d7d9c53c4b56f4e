"""Settings: what is valid, who wins, and that every mistake is one line that helps."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.config import Settings, because, bounded, describe, load_settings, sized
from overlay.errors import ConfigError, InvariantViolation
from overlay.limits import Limits
from overlay.setting_fields import fields_of
from overlay.toml_source import Source, overrides, read_toml


class Radio(Settings, frozen=True, kw_only=True):
    """One field of each kind that settings use."""

    interval: Annotated[float, bounded("s", 0.1, 3600, "pause between two calls")] = 4.0
    timeout: Annotated[float, bounded("s", 0.1, 3600, "when a call counts as lost")] = 8.0
    window: Annotated[int, bounded("bytes", 1, 1 << 40, "what may be in flight")] = 1024
    loud: Annotated[bool, because("for people in the room")] = False
    mode: Annotated[Literal["am", "fm"], because("what the receiver can do")] = "fm"
    label: Annotated[str, sized(1, 8, "what the display shows")] = "radio"
    bands: Annotated[tuple[str, ...], sized(0, 3, "where to listen, in this order")] = ()
    relay: Annotated[str | None, because("whom to ask when nobody answers")] = None
    quiet: Annotated[
        Annotated[float, bounded("dB", -90, 0, "")] | None, because("under that nobody hears it")
    ] = None
    gains: Annotated[list[float], sized(0, 2, "one for each antenna")] = msgspec.field(
        default_factory=list
    )
    names: Annotated[dict[str, str], because("how people call the bands")] = msgspec.field(
        default_factory=dict
    )

    def check(self) -> None:
        if self.timeout <= self.interval:
            raise ConfigError(f"timeout = {self.timeout} must be over interval = {self.interval}")


class Lamp(Settings, frozen=True, kw_only=True):
    colour: Annotated[str, sized(1, 20, "so that it fits the room")] = "red"


SECTIONS: dict[str, type[Settings]] = {"radio": Radio, "lamp": Lamp}


def file_with(tmp_path: Path, text: str, name: str = "lab.toml") -> Source:
    path = tmp_path / name
    path.write_text(text)
    return Source(name, read_toml(path).tables)


def refusal(*sources: Source) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(SECTIONS, *sources)
    line = str(caught.value)
    assert line.isprintable(), "one line"
    assert len(line) < 300
    return line


def test_without_sources_every_section_has_its_defaults() -> None:
    assert load_settings(SECTIONS) == {"radio": Radio(), "lamp": Lamp()}


def test_a_later_source_wins_key_by_key(tmp_path: Path) -> None:
    profile = file_with(tmp_path, "[radio]\ninterval = 1\nwindow = 5\n", "lan.toml")
    mine = file_with(tmp_path, "[radio]\nwindow = 6\nloud = true\n")
    words = overrides(["radio.loud=false", "radio.interval=2", "radio.interval = 3.5"])
    assert load_settings(SECTIONS, profile, mine, *words)["radio"] == Radio(
        interval=3.5, window=6, loud=False
    )


def test_every_kind_of_value_can_be_read(tmp_path: Path) -> None:
    source = file_with(
        tmp_path,
        """
        [radio]
        mode = "am"
        label = "kitchen"
        bands = ["uhf", "vhf"]
        relay = "r1"
        gains = [1, 2.5]
        names = { uhf = "high" }
        """,
    )
    assert load_settings(SECTIONS, source)["radio"] == Radio(
        mode="am",
        label="kitchen",
        bands=("uhf", "vhf"),
        relay="r1",
        gains=[1.0, 2.5],
        names={"uhf": "high"},
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("interval = 0", "radio.interval = 0: must be a number from 0.1 to 3600 s"),
        ("interval = nan", "radio.interval = nan: must be a number from 0.1 to 3600 s"),
        ("interval = inf", "radio.interval = inf: must be a number from 0.1 to 3600 s"),
        ("interval = '4s'", "radio.interval = '4s': must be a number from 0.1 to 3600 s"),
        ("interval = true", "radio.interval = true: must be a number from 0.1 to 3600 s"),
        (
            "window = 1.5",
            "radio.window = 1.5: must be a whole number from 1 to 1099511627776 bytes",
        ),
        ("loud = 1", "radio.loud = 1: must be true or false"),
        ("mode = 'pm'", "radio.mode = 'pm': must be one of 'am', 'fm'"),
        ("label = 7", "radio.label = 7: must be text in quotes of 1 to 8 characters"),
        ("label = ''", "radio.label = '': must be text in quotes of 1 to 8 characters"),
        (
            "bands = 'uhf'",
            "radio.bands = 'uhf': must be a list [...] of 0 to 3 items, each text in quotes",
        ),
        (
            "bands = ['a', 7]",
            "radio.bands = ['a', 7]: must be a list [...] of 0 to 3 items, each text in quotes"
            " (wrong at [1])",
        ),
        ("relay = 7", "radio.relay = 7: must be text in quotes"),
        ("quiet = 7", "radio.quiet = 7: must be a number from -90 to 0 dB"),
        ("names = 7", "radio.names = 7: must be a table of values, each text in quotes"),
        ("interval = {a = 1}", "radio.interval = {...}: must be a number from 0.1 to 3600 s"),
        ("intervall = 5", "radio.intervall = 5: no such key: did you mean radio.interval?"),
        ("time-out = 5", "radio.time-out = 5: no such key: did you mean radio.timeout?"),
        ("colour = 'x'", "radio.colour = 'x': no such key: did you mean lamp.colour?"),
        (
            "zzz = 1",
            "radio.zzz = 1: no such key: use one of interval, timeout, window, loud, mode, label, "
            "bands, relay, quiet, gains, names",
        ),
        ("timeout = 3", "[radio]: timeout = 3.0 must be over interval = 4.0"),
    ],
)
def test_a_wrong_key_or_value_names_file_key_value_and_what_is_right(
    tmp_path: Path, line: str, expected: str
) -> None:
    assert refusal(file_with(tmp_path, f"[radio]\n{line}\n")) == f"lab.toml: {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[radoi]\n", "[radoi]: no such section: did you mean radio?"),
        ("[zzz]\n", "[zzz]: no such section: use one of radio, lamp"),
        ('["a\\nb"]\n', "[a\\nb]: no such section: use one of radio, lamp"),
        ("window = 5\n", "window = 5: outside of any section: move it below [radio]"),
        ("zzz = 5\n", "zzz = 5: outside of any section: use one of radio, lamp"),
        ("radio = 5\n", "radio = 5: outside of any section: use one of radio, lamp"),
    ],
)
def test_a_wrong_section_is_named(tmp_path: Path, text: str, expected: str) -> None:
    assert refusal(file_with(tmp_path, text)) == f"lab.toml: {expected}"


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    line = refusal(file_with(tmp_path, f"[radio]\ninterval = '{'x' * 5000}'\n"))
    assert line.endswith("x...: must be a number from 0.1 to 3600 s")


def test_fields_that_do_not_fit_together_name_all_their_sources(tmp_path: Path) -> None:
    one = file_with(tmp_path, "[radio]\ninterval = 9\n", "lan.toml")
    two = file_with(tmp_path, "[radio]\ntimeout = 9\n", "lab.toml")
    assert refusal(one, two).startswith("lan.toml, lab.toml: [radio]: timeout = 9.0 must be over")


@pytest.mark.parametrize(
    ("word", "radio"),
    [
        ("radio.label=7", Radio(label="7")),  # a number as TOML reads it, but text is wanted
        ("radio.label=kitchen", Radio(label="kitchen")),
        ("radio.label='kitchen'", Radio(label="kitchen")),
        ("radio.label=a=b", Radio(label="a=b")),
        ("radio.label=1\nx=2", Radio(label="1\nx=2")),
        ("radio.window=1_000", Radio(window=1000)),
        ('radio.bands=["a"]', Radio(bands=("a",))),
        ("radio.loud=true", Radio(loud=True)),
    ],
)
def test_words_of_the_command_line_need_no_quotes(word: str, radio: Radio) -> None:
    assert load_settings(SECTIONS, *overrides([word]))["radio"] == radio


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("radio.loud=True", "--set: radio.loud = 'True': must be true or false"),
        ("radio.window=", "--set: radio.window = '': must be a whole number from 1 to"),
        ("radio.windw=4", "--set: radio.windw = 4: no such key: did you mean radio.window?"),
        ("a.b.c=4", "--set: [a.b]: no such section: use one of radio, lamp"),
    ],
)
def test_a_wrong_word_of_the_command_line_is_explained(word: str, expected: str) -> None:
    assert refusal(*overrides([word])).startswith(expected)


@pytest.mark.parametrize("word", ["", "radio", "radio.window", "window=4", ".x=4", "radio.=4"])
def test_a_word_of_another_form_shows_the_form(word: str) -> None:
    with pytest.raises(ConfigError, match=r"section\.key=value, like net\.heartbeat=5"):
        overrides([word])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"[radio]\ninterval = = 4\n", "line 2, column 12: broken TOML: Invalid value"),
        (b"[radio]\ninterval = 4\ninterval = 5\n", "line 3, column 13: broken TOML: Cannot"),
        (b"[radio]\nlabel = 'x", 'line 2: broken TOML: Expected "\'"'),
        (b"", ""),
        (b"[radio]\nlabel = '\xff'\n", "line 2: not UTF-8: save it as UTF-8 text"),
        (b"x = " + b"[" * 50_000, "nested too deeply"),
        (b"x = " + b"9" * 50_000, "line 1: broken TOML: Exceeds the limit"),
        (b"x = 2026-02-31", "line 1, column 5: broken TOML: Invalid date"),
        (b"#" * (1 << 20) + b"#", "longer than 1048576 bytes"),
    ],
)
def test_a_broken_file_gives_line_and_reason(tmp_path: Path, raw: bytes, expected: str) -> None:
    path = tmp_path / "lab.toml"
    path.write_bytes(raw)
    if not expected:
        assert read_toml(path).tables == {}
        return
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: {expected}")
    assert line.isprintable()


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: no such file: check the path"):
        read_toml(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_toml(tmp_path)


def test_settings_made_in_python_are_checked_as_well() -> None:
    with pytest.raises(ConfigError, match=r"^Radio\.interval = 0: must be a number from 0\.1"):
        Radio(interval=0)
    with pytest.raises(ConfigError, match=r"^Radio\.interval = nan"):
        Radio(interval=math.nan)
    with pytest.raises(ConfigError, match="must be over interval"):
        Radio(interval=8.0)
    with pytest.raises(ConfigError, match=r"Radio\.window = 0"):
        msgspec.structs.replace(Radio(), window=0)
    with pytest.raises(AttributeError):
        Radio().window = 5  # type: ignore[misc]


def test_describe_tells_all_about_each_setting() -> None:
    rows = list(describe(SECTIONS))
    assert [row.key for row in rows][-1] == "lamp.colour"
    assert rows[0] == ("radio.interval", 4.0, "s", "0.1 to 3600", "pause between two calls")
    bounds = {row.key: row.bounds for row in rows}
    assert bounds["radio.loud"] == "true or false"
    assert bounds["radio.mode"] == "one of 'am', 'fm'"
    assert bounds["radio.label"] == "text in quotes of 1 to 8 characters"
    assert {row.key: row.default for row in rows}["radio.gains"] == []


class NoReason(Settings, frozen=True, kw_only=True):
    bare: int = 1


class NoBounds(Settings, frozen=True, kw_only=True):
    loose: Annotated[int, because("it counts")] = 1


class NoDefault(Settings, frozen=True, kw_only=True):
    needed: Annotated[int, bounded("s", 0, 9, "it counts")]


class WrongDefault(Settings, frozen=True, kw_only=True):
    far: Annotated[int, bounded("s", 0, 9, "it counts")] = 10


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (NoReason, "setting NoReason.bare has no reason"),
        (NoBounds, "number NoBounds.loose needs bounded"),
        (NoDefault, "setting NoDefault.needed has no default"),
        (WrongDefault, "the default of setting WrongDefault.far: Expected `int` <= 9"),
    ],
)
def test_a_careless_declaration_is_our_own_fault(kind: type[Settings], reason: str) -> None:
    with pytest.raises(InvariantViolation, match=reason):
        load_settings({"careless": kind})


def test_limits_have_the_documented_defaults() -> None:
    assert {row.key: row.default for row in describe({"limits": Limits})} == {
        "limits.frame_bytes": 1 << 20,
        "limits.batch_messages": 4096,
        "limits.nesting": 32,
        "limits.string_bytes": 131_072,
        "limits.payload_inline": 32_768,
        "limits.message_bytes": 64 << 20,
        "limits.datagram_bytes": 60_000,
    }


def test_limits_must_fit_into_each_other() -> None:
    line = "string_bytes = 131072 is over frame_bytes = 4096: lower string_bytes or raise frame"
    with pytest.raises(ConfigError, match=line):
        Limits(frame_bytes=4096)
    with pytest.raises(ConfigError, match="frame_bytes = 1048576 is over message_bytes = 8192"):
        Limits(message_bytes=8192)
    Limits(frame_bytes=131_072, message_bytes=131_072)


def assert_valid_or_one_line(sources: Callable[[], list[Source]]) -> None:
    line = "valid"
    try:
        load_settings(SECTIONS, *sources())
    except ConfigError as error:
        line = str(error)
    assert line.isprintable()
    assert 0 < len(line) < 300


toml_values = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=3,
)
some_keys = st.sampled_from([*fields_of(Radio), "radio", "lamp"]) | st.text(max_size=9)


some_tables = st.dictionaries(some_keys, toml_values, max_size=2)


@given(st.dictionaries(some_keys, some_tables | toml_values, max_size=2))
def test_whatever_a_file_holds_it_is_valid_or_refused_in_one_line(
    tables: dict[str, object],
) -> None:
    assert_valid_or_one_line(lambda: [Source("lab.toml", tables)])


@given(st.text(max_size=40) | st.text(max_size=20).map("radio.label={}".format))
def test_whatever_follows_set_is_valid_or_refused_in_one_line(word: str) -> None:
    assert_valid_or_one_line(lambda: overrides([word]))
