"""Every error of the overlay, named by whose fault it is."""


class OverlayError(Exception):
    """The base of all errors that the overlay raises on purpose."""


class LocalProtocolError(OverlayError):
    """The caller broke a contract: the call had no effect."""


class RemoteProtocolError(OverlayError):
    """A peer sent something that it must not send: counted under `reason`, and dropped."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason  # short and stable, for counters: "unknown-tag"
        self.detail = detail  # for people; never holds secrets
        self.protocol = ""  # whose message it was, where one was decoded


class InvariantViolation(OverlayError):
    """Our own state is wrong: stop loudly instead of going on."""


class ConfigError(OverlayError):
    """The user's settings cannot work; one line that says which, and what would be right."""


class SecurityError(OverlayError):
    """Key material is missing, unreadable or does not fit."""
