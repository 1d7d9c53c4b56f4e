"""The options of `overlay peer`, and a parser for them that costs nothing to import.

typer and rich cost a node 100 ms and 8 MB. So the plain forms `--name X`, `--name=X` and
`--insecure` are read here; anything else (a typo, `--help`, completion) is left to typer, which
knows how to talk to people. A test compares the two.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.settings import DEFAULT_PROFILE


class PeerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `overlay peer` was told: a text, a list or a switch for the option of each name."""

    name: str = ""
    zone: str = ""
    overlay: str = ""
    seed: tuple[str, ...] = ()
    profile: str = DEFAULT_PROFILE
    config: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    bind: tuple[str, ...] = ()
    advertise: tuple[str, ...] = ()
    keys: str = ""
    state: str = ""
    insecure: bool = False
    events: bool = False
    trace: str = ""  # the level of the traces
    trace_dir: str = ""
    share_machine: bool = False  # register it as a resource
    dashboard: str = ""  # HOST:PORT of a web page about it
    dashboard_token: str = ""  # a file that holds it
    allow_actions: bool = False  # on that page
    supervisor: bool = False  # of the management zone instead of a base zone
    json: bool = False
    log_format: str = "text"  # or json
    log_level: str = "warning"


def parse(words: Sequence[str]) -> PeerOptions | None:
    """Read a plain command line; None when it is not plain."""
    told: dict[str, str | bool | list[str]] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.removeprefix("--").partition("=")
        option = option.replace("-", "_") if "_" not in option else ""
        default = getattr(_DEFAULTS, option, None) if word.startswith("--") else None
        if default is None or (isinstance(default, bool) and equals):
            return None
        if isinstance(default, bool):
            told[option] = True
            continue
        if not equals:
            value = next(rest, "--")
            if value.startswith("--"):
                return None
        if isinstance(default, tuple):
            values = told.setdefault(option, [])
            assert isinstance(values, list)
            values.append(value)
        else:
            told[option] = value
    return msgspec.convert(told, PeerOptions)


def plain_words(options: PeerOptions) -> list[str]:
    """The plain command line that `parse` reads as these options."""
    words = []
    for option, value in msgspec.structs.asdict(options).items():
        if value == getattr(_DEFAULTS, option):
            continue
        if isinstance(value, bool):
            words.append(f"--{option.replace('_', '-')}")
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{option.replace('_', '-')}={one}" for one in values]
    return words


_DEFAULTS = PeerOptions()


def path_or_none(text: str) -> Path | None:
    """An option that was left out means the default place."""
    return Path(text).expanduser() if text else None
