"""The agent as one file: `onhost/` packed so that any Python can run it."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path

from nodes.lab import onhost

PACKAGE = "nodes/lab/onhost"
MOMENT = (2026, 1, 1, 0, 0, 0)  # of all entries: the same sources make the same bytes
START = "import runpy\nrunpy.run_module('nodes.lab.onhost', run_name='__main__', alter_sys=False)\n"


@cache
def agent() -> tuple[str, bytes]:
    """Its file name, which tells its content, and its bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {"__main__.py": START, "nodes/__init__.py": "", "nodes/lab/__init__.py": ""}
        for path in sorted(Path(onhost.__file__).parent.glob("*.py")):
            files[f"{PACKAGE}/{path.name}"] = path.read_text(encoding="utf-8")
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    data = packed.getvalue()
    return f"agent-{hashlib.sha256(data).hexdigest()[:12]}.pyz", data
