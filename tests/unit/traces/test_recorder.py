"""The recorder's thread: what it writes, how it ends, and what it does not cost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from overlay.traces.config import TraceSettings
from overlay.traces.recorder import Recorder
from overlay.traces.spool import recover
from tests.unit.traces.rows import delivery, node_traces, read_folder

DEADLINE = 30.0


def until(condition: Callable[[], bool]) -> None:
    """Wait for it; AssertionError after a generous time."""
    end = time.monotonic() + DEADLINE
    pause = Event()
    while not condition():
        assert time.monotonic() < end
        pause.wait(0.01)


def recorder(folder: Path, settings: TraceSettings, failures: list[str] | None = None) -> Recorder:
    failed = (failures if failures is not None else []).append
    made = Recorder(folder, settings, run="lab", recorder="ada", life=5, on_failure=failed)
    made.start()
    return made


def test_all_rows_are_in_a_file_at_the_end(tmp_path: Path) -> None:
    one = recorder(tmp_path, TraceSettings(buffer_rows=20_000))
    traces = node_traces(one.buffer)
    for first in range(1, 10_001):
        traces.take("topics", "", delivery(first))
    one.stop()
    assert [row["first"] for row in read_folder(tmp_path)] == list(range(1, 10_001))
    assert (one.status.rows, one.status.dropped, one.status.files) == (10_000, 0, 1)


def test_rows_are_on_disk_without_waiting_for_the_file_to_be_finished(tmp_path: Path) -> None:
    one = recorder(tmp_path, TraceSettings(flush_every=0.05))
    node_traces(one.buffer).take("topics", "", delivery(1))
    until(lambda: one.status.rows == 1)
    assert list(tmp_path.glob("_spool/*.arrows"))
    assert not list(tmp_path.glob("run=*"))
    one.stop()
    assert len(read_folder(tmp_path)) == 1


def test_a_file_can_be_had_at_once(tmp_path: Path) -> None:
    one = recorder(tmp_path, TraceSettings(flush_every=60))
    one.ready.wait(DEADLINE)
    node_traces(one.buffer).take("topics", "", delivery(1))
    one.rotate_soon()
    until(lambda: one.status.files == 1)
    assert len(read_folder(tmp_path)) == 1
    one.stop()


def test_a_recorder_finishes_what_its_earlier_life_left(tmp_path: Path) -> None:
    first = recorder(tmp_path, TraceSettings(flush_every=0.05))
    node_traces(first.buffer).take("topics", "", delivery(1))
    until(lambda: first.status.rows == 1)
    first._writer.abandon()  # as if the process were gone
    second = Recorder(
        tmp_path, TraceSettings(), run="lab", recorder="ada", life=6, on_failure=print
    )
    second.start()
    second.ready.wait(DEADLINE)
    assert [row["first"] for row in read_folder(tmp_path)] == [1]
    assert len(second.files) == 1
    second.stop()
    first.stop()


def test_a_folder_that_cannot_be_written_ends_tracing_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("a file")
    failures: list[str] = []
    one = recorder(tmp_path / "traces", TraceSettings(flush_every=0.05), failures)
    traces = node_traces(one.buffer)
    traces.take("topics", "", delivery(1))
    until(lambda: bool(failures))
    assert "traces" in failures[0]
    assert one.status.failure == failures[0]
    traces.take("topics", "", delivery(2))  # nobody writes it, and nobody minds
    one.stop()


FULL_DISK = """
import resource, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import pyarrow
from overlay.traces.config import TraceSettings
from overlay.traces.recorder import Recorder
from tests.unit.traces.rows import delivery, node_traces
failures = []
one = Recorder(Path(sys.argv[1]), TraceSettings(flush_every=0.05), run="lab", recorder="ada",
               life=5, on_failure=failures.append)
one.start()
one.ready.wait()
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
traces = node_traces(one.buffer)
end = time.monotonic() + 30
number = 0
while not failures and time.monotonic() < end:
    for _ in range(100):
        number += 1
        traces.take("topics", "", delivery(number))
    time.sleep(0.01)
one.stop()
print(number, len(one.buffer), failures[0])
"""


def test_a_file_that_cannot_grow_keeps_its_whole_batches(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
    recover(tmp_path)
    rows = [row["first"] for row in read_folder(tmp_path)]
    assert rows == list(range(1, len(rows) + 1))
    assert 0 < len(rows) < int(done.stdout.split()[0])


def loaded(code: str) -> set[str]:
    """Which modules a process has after that code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_a_node_that_does_not_record_never_loads_what_recording_needs() -> None:
    modules = loaded("import nodes.peer_process")
    assert not {"pyarrow", "overlay.traces.recorder", "overlay.traces.spool"} & modules


def test_without_pyarrow_one_line_says_what_to_do() -> None:
    code = """
sys.modules["pyarrow"] = None
from overlay.traces.recorder import check_pyarrow
from overlay.errors import ConfigError
try:
    check_pyarrow()
except ConfigError as error:
    print("told:" + str(error).replace(" ", "_"))
"""
    (told,) = (word for word in loaded(code) if word.startswith("told:"))
    assert "zmq-overlay[traces]" in told
