"""What runs on a host: the keeper and its peers, units, wheels that are here already, the agent."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from nodes.lab import onhost
from nodes.lab.agent_archive import agent
from nodes.lab.onhost.facts import holder
from nodes.lab.onhost.files import unpack
from nodes.lab.onhost.folder import Folder, read_all, write_json
from nodes.lab.onhost.install import missing_wheels, prune
from nodes.lab.onhost.keeper import keeper_pid
from nodes.lab.onhost.logs import MOST, bound_log, last_lines
from nodes.lab.onhost.trouble import Trouble
from nodes.lab.onhost.units import unit_text
from tests.netns.waiting import until

PATIENCE = 30.0
# Stands for the interpreter of an environment: it ends at once if it is told to.
PROGRAM = '#!/bin/sh\necho "said $3"\n[ "$3" != fails ] || exit 3\nexec sleep 1000\n'


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(str(tmp_path / "lab" / "h1"))
    made.make()
    program = made.python_of("env")
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return made


def spec(folder: Folder, name: str, word: str, generation: int = 1) -> None:
    told = {"words": [word], "env": "env", "generation": generation, "fingerprint": ""}
    write_json(folder.peers / f"{name}.json", told)


@pytest.fixture
def keeper(folder: Folder, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    name, data = agent()
    (tmp_path / name).write_bytes(data)
    words = [sys.executable, str(tmp_path / name), "keep", str(folder.path)]
    process = subprocess.Popen(words, env={"PATH": os.environ["PATH"]})
    yield process
    process.terminate()
    assert process.wait(PATIENCE) == 0


def pid_of(folder: Folder, name: str, generation: int = 1) -> int:
    state = read_all(folder.kept).get(name, {"pid": 0, "generation": 0})
    return int(state["pid"]) if state["generation"] == generation else 0


def test_the_keeper_starts_restarts_and_stops(
    folder: Folder, keeper: subprocess.Popen[bytes]
) -> None:
    assert until(lambda: keeper_pid(folder)) == keeper.pid
    spec(folder, "a", "one")
    keeper.send_signal(signal.SIGHUP)
    first = until(lambda: pid_of(folder, "a"))
    os.kill(first, signal.SIGKILL)
    second = until(lambda: pid_of(folder, "a") not in (0, first) and pid_of(folder, "a"))
    log = folder.logs / "a.log"
    assert "keeper: a ended by SIGKILL, starts again in 0.5 s" in log.read_text()

    spec(folder, "a", "two", generation=2)
    keeper.send_signal(signal.SIGHUP)
    third = until(lambda: pid_of(folder, "a", 2))
    assert third != second
    until(lambda: "said two" in log.read_text())

    (folder.peers / "a.json").unlink()
    keeper.send_signal(signal.SIGHUP)
    until(lambda: not read_all(folder.kept))
    assert not Path("/proc", str(third)).exists()


def test_who_fails_at_once_waits_longer_each_time(
    folder: Folder, keeper: subprocess.Popen[bytes]
) -> None:
    spec(folder, "a", "fails")
    until(lambda: keeper_pid(folder))
    keeper.send_signal(signal.SIGHUP)
    log = folder.logs / "a.log"
    until(lambda: log.exists() and "ended with 3, starts again in 1.0 s" in log.read_text())
    assert "ended with 3, starts again in 0.5 s" in log.read_text()


def test_nobody_outlives_a_keeper_that_is_killed(folder: Folder, tmp_path: Path) -> None:
    name, data = agent()
    (tmp_path / name).write_bytes(data)
    spec(folder, "a", "one")
    process = subprocess.Popen([sys.executable, str(tmp_path / name), "keep", str(folder.path)])
    pid = until(lambda: pid_of(folder, "a"))
    process.kill()
    process.wait()
    assert keeper_pid(folder) == 0
    until(lambda: not Path("/proc", str(pid)).exists() or _is_zombie(pid))


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return True


def test_a_log_is_bounded_and_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * (MOST + 1) + b"\n")
        bound_log(log)
        writer.write(b"after\n")
    assert log.read_bytes() == b"after\n"
    assert (tmp_path / "a.log.1").stat().st_size == MOST + 2
    assert last_lines(log, 5) == ["after"]
    assert last_lines(tmp_path / "none.log", 5) == []


def test_a_unit_quotes_what_systemd_would_read(tmp_path: Path) -> None:
    place = Folder(str(tmp_path / "a lab" / "h1"))
    told = {"words": ["peer", '--set=a.b="50%"', "$HOME"], "env": "e", "generation": 3}
    text = unit_text(place, "h1-1", told)
    assert '"--set=a.b=\\"50%%\\"" "$$HOME"' in text
    assert text.startswith(f"# folder {place.path}\n# generation 3\n")
    assert "Restart=always" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path: Path, folder: Folder) -> None:
    told = {"words": ["peer", '--set=a.b="50%"'], "env": "env", "generation": 1}
    unit = tmp_path / "overlay-lab.service"
    unit.write_text(unit_text(folder, "h1-1", told))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "overlay-lab.service" not in done.stderr, done.stderr


def test_wheels_of_an_older_build_are_not_sent_again(folder: Folder) -> None:
    (folder.houses / "old").mkdir()
    (folder.houses / "old" / "a.whl").write_bytes(b"a")
    (folder.houses / "old" / "own.whl").write_bytes(b"old")
    sha = {
        "a.whl": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        "own.whl": "0" * 64,
    }
    assert missing_wheels(folder, "new", sha) == ["own.whl"]
    assert (folder.houses / "new" / "a.whl").read_bytes() == b"a"
    spec(folder, "a", "one")
    (folder.envs / "old").mkdir()
    assert prune(folder)["removed"] == ["new", "old"]
    assert folder.python_of("env").exists()


def test_a_tar_may_not_lead_out_of_the_folder(folder: Folder) -> None:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("../evil")
        archive.addfile(entry, BytesIO())
    packed.seek(0)
    with pytest.raises(Trouble, match="does not belong"):
        unpack(folder, packed)


def test_a_free_port_has_no_holder_and_a_taken_one_has(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"(pid {os.getpid()})" in holder(port)
    assert holder(port) == ""


def test_the_agent_answers_troubles_as_json(tmp_path: Path) -> None:
    name, data = agent()
    (tmp_path / name).write_bytes(data)
    blocked = tmp_path / "file"
    blocked.write_text("")
    asked = {"folder": f"{blocked}/lab", "supervise": "auto", "ports": {}}
    done = subprocess.run(
        [sys.executable, str(tmp_path / name), "facts"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert "Not a directory" in told["error"]
    assert told["fix"]


def test_what_runs_on_hosts_is_the_standard_library_alone() -> None:
    for path in sorted(Path(onhost.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                ours = name.startswith("nodes.lab.onhost")
                assert ours or name.partition(".")[0] in sys.stdlib_module_names, (path, name)
