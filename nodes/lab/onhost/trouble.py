"""What a host cannot do, and what would help."""


class Trouble(Exception):
    """One line for people: the reason, and the fix."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
