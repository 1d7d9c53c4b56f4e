"""What went wrong with a host: a reason and a fix, in one line."""

from __future__ import annotations


class HostFailure(Exception):
    """This host does not take part; the others go on."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.reason = " ".join(reason.split())
        self.fix = " ".join(fix.split())

    def __str__(self) -> str:
        return f"{self.reason}: {self.fix}"


# What ssh says, what it means, and what helps; {at}, {port}, {host} are filled in.
_SSH = (
    ("permission denied", "ssh refuses our keys", "run `ssh-copy-id -p {port} {at}`"),
    (
        "remote host identification has changed",
        "its ssh key is not the one known here",
        "if it was installed anew: `ssh-keygen -R '{known}'`, then `ssh -p {port} {at}` once",
    ),
    (
        "host key verification failed",
        "its ssh key is not known here",
        "run `ssh -p {port} {at}` once and accept the key",
    ),
    (
        "connection refused",
        "nobody listens at ssh port {port}",
        "start sshd there, or set ssh_port = in its [[host]]",
    ),
    ("could not resolve", "{address} is no known name", "correct address = in its [[host]]"),
    (
        "name or service not known",
        "{address} is no known name",
        "correct address = in its [[host]]",
    ),
    ("no route to host", "no way leads to {address}", "is it on, and its cable plugged in?"),
    ("network is unreachable", "no way leads to {address}", "is this machine on its network?"),
    ("timed out", "ssh gets no answer from {address}", "is it on, and is port {port} open?"),
    (
        "too many authentication",
        "ssh offers too many keys",
        "add IdentitiesOnly=yes to its options",
    ),
    ("bad configuration option", "ssh does not know an option", "correct options = in [ssh]"),
    ("can't open user config file", "ssh cannot read its config", "correct config = in [ssh]"),
    ("no space left on device", "its disk is full", "free some space there"),
    ("read-only file system", "its disk is read-only", "choose another folder = in its [[host]]"),
)


def ssh_failure(said: str, *, at: str, address: str, port: int) -> HostFailure:
    """What ssh's last words mean."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = " ".join(lines).lower()
    known = address if port == 22 else f"[{address}]:{port}"
    for sign, reason, fix in _SSH:
        if sign in text:
            filled = {"at": at, "address": address, "port": port, "known": known}
            return HostFailure(reason.format(**filled), fix.format(**filled))
    last = lines[-1] if lines else "it ended without a word"
    return HostFailure(f"ssh fails: {last[:200]}", f"try `ssh -p {port} {at}`")
