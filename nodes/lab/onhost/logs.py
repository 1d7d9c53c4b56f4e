"""Log files of bounded size, and their ends."""

import shutil
from pathlib import Path

MOST = 4 << 20  # bytes of a log; then it becomes NAME.log.1, whose predecessor goes
TAIL = 1 << 20  # bytes that are read for the last lines


def bound_log(path: Path) -> None:
    """Move what is too long aside; who writes goes on, since the file stays the same one."""
    if path.exists() and path.stat().st_size > MOST:
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        with path.open("r+b") as file:
            file.truncate(0)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; none when there is no file."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return file.read().decode(errors="replace").splitlines()[-count:]
