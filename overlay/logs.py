"""What a node logs, as text for people or as one JSON object a line for programs.

Each line tells its event and the protocol that it is about, and whoever logs says so:

    log.warning("NTP server %s is silent", one, extra=about("ntp-silent", "time", server=one))

Node and zone come by themselves: tasks that a node starts inherit who they speak for.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from overlay.errors import ConfigError

Format: TypeAlias = Literal["text", "json"]
FORMATS: tuple[Format, ...] = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
TEXT = "overlay: %(message)s"


class Speaker(NamedTuple):
    """The node that a line is of; empty before there is one."""

    node: str = ""
    zone: str = ""


NOBODY = Speaker()
_speaker: ContextVar[Speaker] = ContextVar("speaker", default=NOBODY)


def speak_for(node: str, zone: str) -> Speaker:
    """From now on this task, and those that it starts, log for that node; who it was before."""
    before = _speaker.get()
    _speaker.set(Speaker(node, zone))
    return before


def about(event: str, protocol: str, **facts: object) -> dict[str, Any]:
    """What belongs to a line besides its text, for `extra=`."""
    return {"about": (event, protocol, facts)}


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, node, zone, protocol, event, message and facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Never more than a line, whatever the text holds."""
        # Lines of other libraries have no event: they are named after their logger.
        event, protocol, facts = getattr(record, "about", ("log", record.name, {}))
        node, zone = _speaker.get()
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "node": node,
            "zone": zone,
            "protocol": protocol,
            "event": event,
            "message": record.getMessage(),
            "facts": facts,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure(form: str = "text", level: str = "warning") -> None:
    """Log to stderr in that form, from that level on; ConfigError says what there is."""
    for option, told, known in (("format", form, FORMATS), ("level", level, LEVELS)):
        if told not in known:
            raise ConfigError(f"--log-{option} {told!r}: choose one of {', '.join(known)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # libraries have much to say
    logging.getLogger("overlay").setLevel(level.upper())
