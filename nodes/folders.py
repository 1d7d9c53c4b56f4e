"""Where a running node leaves its control socket: a folder that is the user's alone."""

import os
import stat
from pathlib import Path

from overlay.errors import ConfigError

USERS = "/run/user"  # where a login session puts the runtime folder of each user


def runtime_folder() -> Path:
    """`zmq-overlay` in `$XDG_RUNTIME_DIR` or `/run/user/UID`, else `/tmp/zmq-overlay-UID`.

    The same folder with and without a login session, so that cron and ssh find the same nodes.
    """
    user = os.geteuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime and os.access(f"{USERS}/{user}", os.W_OK):
        runtime = f"{USERS}/{user}"
    folder = Path(runtime, "zmq-overlay") if runtime else Path(f"/tmp/zmq-overlay-{user}")
    return private_folder(folder)


def private_folder(folder: Path) -> Path:
    """Make the folder with mode 0700; ConfigError if somebody else could reach into it.

    Whoever can write there can pose as a node to `overlay stop`, and read what nodes tell.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be used for control sockets: {error.strerror}:"
            " set XDG_RUNTIME_DIR to a folder of yours"
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"{folder}: is no folder (a link, perhaps): remove it")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{folder}: belongs to user {found.st_uid}: set XDG_RUNTIME_DIR to a folder of yours"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise ConfigError(
            f"{folder}: others can enter it (mode {mode:04o}): run `chmod 700 {folder}`"
        )
    return folder
