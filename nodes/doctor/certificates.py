"""Whether the keys on this machine can be used: today, in two weeks, and by nobody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, skipped, well, wrong
from overlay.errors import OverlayError
from overlay.security.folders import (
    AUTHORITY,
    AUTHORITY_CERTIFICATE_FILE,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    NODE_KEY_FILE,
)

SOON = 14 * 86_400.0  # s: time enough to notice, and to issue new ones
OTHERS = 0o077


def check(case: Case) -> Iterator[Finding]:
    """Each node whose keys lie here, or the one that was asked about."""
    places = {case.keys: case.name}
    for node in case.nodes:
        if not node.status["insecure"] and node.options and node.options.keys:
            places[node.path(node.options.keys) or case.keys] = node.name
    found = False
    for keys, name in places.items():
        for folder in homes(keys, name):
            found = True
            yield from examine_folder(folder, time.time())
    if not found:
        whose = f" of {case.name}" if case.name else ""
        yield skipped(f"no keys{whose} in {case.keys}: peers here run with --insecure only")


def homes(keys: Path, name: str) -> list[Path]:
    """The folders that hold keys: the authority's, and each node's or the named one's."""
    if (keys / NODE_KEY_FILE).exists():
        return [keys]
    every = sorted(path.parent for path in keys.glob(f"*/{NODE_KEY_FILE}"))
    authority = [keys / AUTHORITY] if (keys / AUTHORITY / AUTHORITY_KEY_FILE).exists() else []
    return authority + [one for one in every if name in ("", one.name)]


def examine_folder(folder: Path, now: float) -> Iterator[Finding]:
    """One folder of keys."""
    is_authority = folder.name == AUTHORITY and (folder / AUTHORITY_KEY_FILE).exists()
    key = folder / (AUTHORITY_KEY_FILE if is_authority else NODE_KEY_FILE)
    whose = "the authority" if is_authority else folder.name
    try:
        mode = key.stat().st_mode & 0o777
    except OSError as error:
        yield wrong(f"{key}: {error.strerror}", "copy the folder again, or issue new keys")
        return
    if mode & OTHERS:
        yield wrong(
            f"the private key of {whose} can be read by others (mode {mode:04o})",
            f"chmod 600 {key}; issue a new one if others may have read it",
        )
    certificates = {"the authority": folder / CERTIFICATE_FILE}
    if not is_authority:
        certificates = {
            "the authority": folder / AUTHORITY_CERTIFICATE_FILE,
            whose: folder / CERTIFICATE_FILE,
        }
    troubles = [
        trouble for name, path in certificates.items() if (trouble := _trouble(name, path, now))
    ]
    yield from troubles
    if not troubles and not is_authority and not mode & OTHERS:
        yield _whole(folder, whose, now)
    elif not troubles and not mode & OTHERS:
        yield well(f"the certificate of {whose} is good")


def _trouble(whose: str, path: Path, now: float) -> Finding | None:
    from cryptography import x509  # 40 ms: only when there are keys

    again = (
        "make a new authority: `overlay keys init --force`, then issue all keys again"
        if whose == "the authority"
        else f"overlay keys issue {whose} --zone Z --force"
    )
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        return wrong(f"{path} cannot be read: {error}", again)
    begins = certificate.not_valid_before_utc.timestamp()
    ends = certificate.not_valid_after_utc.timestamp()
    if now < begins:
        return wrong(
            f"the certificate of {whose} is valid only from {_day(begins)} on",
            "set this machine's clock (see the check `clock`), or issue it again",
        )
    if now > ends:
        return wrong(f"the certificate of {whose} expired on {_day(ends)}", again)
    if ends - now < SOON:
        left = (ends - now) / 86_400
        return wrong(f"the certificate of {whose} expires in {left:.1f} days", again)
    return None


def _whole(folder: Path, name: str, now: float) -> Finding:
    """What only loading it all can tell: keys that do not fit, a revocation, a wrong name."""
    from overlay.security.credentials import load_credentials

    try:
        credentials = load_credentials(folder, now=now)
    except OverlayError as error:
        what, _, fix = str(error).rpartition(": ")
        return wrong(what or str(error), fix)
    until = _day(credentials.identity.not_after)
    return well(f"the certificate of {name} is good until {until}, its keys fit")


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
