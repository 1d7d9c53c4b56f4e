"""The wheel of a program that was installed from one: packed again from what was installed."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path

from nodes.lab.operator import LabError

DISTRIBUTION = "zmq-overlay"
NOT_PACKED = ("INSTALLER", "REQUESTED", "direct_url.json")  # pip writes them when it installs


def pack_installed(folder: Path) -> None:
    """Write `zmq_overlay-VERSION-….whl` into the folder."""
    found = importlib.metadata.distribution(DISTRIBUTION)
    tag = next(
        line.partition(":")[2].strip()
        for line in (found.read_text("WHEEL") or "Tag: py3-none-any").splitlines()
        if line.startswith("Tag:")
    )
    name = f"{DISTRIBUTION.replace('-', '_')}-{found.version}-{tag}.whl"
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        record = ""
        for file in found.files or ():
            # Scripts lie outside of site-packages, and are made again from entry_points.txt.
            if ".." in file.parts or file.suffix == ".pyc" or file.name in NOT_PACKED:
                continue
            if file.name == "RECORD":
                record = str(file)
                continue
            path = Path(str(file.locate()))
            if not path.is_file():
                raise LabError(f"{path} is missing: install {DISTRIBUTION} again")
            wheel.write(path, str(file))
        listed = [f"{entry.filename},," for entry in wheel.infolist()]
        wheel.writestr(record, "\n".join([*listed, f"{record},,", ""]))
