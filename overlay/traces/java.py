"""Finding the Java that Spark needs; if there is none, one line says how to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from overlay.errors import ConfigError

OLDEST = 17  # what Spark 4 runs on
INSTALL = (
    ("apt-get", "apt-get install -y openjdk-17-jre-headless"),
    ("dnf", "dnf install -y java-17-openjdk-headless"),
    ("apk", "apk add openjdk17-jre-headless"),
    ("pacman", "pacman -S --noconfirm jre17-openjdk-headless"),
    ("zypper", "zypper install -y java-17-openjdk-headless"),
    ("brew", "brew install openjdk@17"),
)


def find_java() -> Path:
    """The `java` of $JAVA_HOME or of the PATH; ConfigError says which command installs one."""
    home = os.environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java"] if home else []
    candidates += [found] if (found := shutil.which("java")) else []
    seen = []
    for candidate in candidates:
        version = _version(candidate)
        if version >= OLDEST:
            return Path(candidate)
        seen.append(f"{candidate} is {f'Java {version}' if version else 'no Java that runs'}")
    there = f" ({'; '.join(seen)})" if seen else ""
    raise ConfigError(f"Spark needs Java {OLDEST} or newer{there}: {_how_to_install()}")


def _version(java: str) -> int:
    """Major version; 0 when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found and done.returncode == 0 else 0


def _how_to_install() -> str:
    for tool, command in INSTALL:
        if shutil.which(tool):
            needs_root = os.geteuid() != 0 and tool != "brew"
            return f"run `{'sudo ' if needs_root else ''}{command}`"
    return "install one from https://adoptium.net, and set JAVA_HOME to its folder"
