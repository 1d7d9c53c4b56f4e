"""A standalone Spark cluster on loopback, and a Connect server, from the pyspark package alone."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
import trio

from overlay.traces.java import find_java

HOME = Path(pyspark.__file__).parent
DEADLINE = 90.0  # s; six JVMs may have to share a core with other tests
MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
LOOPBACK = "127.0.0.1"


class Daemon:
    """One JVM that logs into a file, and ends with its children."""

    def __init__(self, log: Path, *words: str, memory: str = "256m") -> None:
        self.log = log
        environment = os.environ | {
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": str(find_java().resolve().parents[1]),
            "SPARK_DAEMON_MEMORY": memory,
        }
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                env=environment,
            )

    def says(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line of its log."""

        async def look() -> re.Match[str]:
            with trio.fail_after(DEADLINE):
                while True:
                    text = self.log.read_text(errors="replace")
                    if found := pattern.search(text):
                        return found
                    assert self.process.poll() is None, text[-2000:]
                    await trio.sleep(0.1)

        return trio.run(look)

    def kill(self) -> None:
        """At once, and its executors with it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Cluster(NamedTuple):
    """A master and its workers."""

    address: str
    workers: list[Daemon]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a master and workers of one core each; all are killed at the end."""
    with ExitStack() as life:
        quiet = ("--webui-port", "0", "--host", LOOPBACK)
        where = "org.apache.spark.deploy"
        master = Daemon(folder / "master.log", f"{where}.master.Master", *quiet, "--port", "0")
        life.callback(master.kill)
        address = master.says(MASTER)[1]
        found = []
        for number in range(workers):
            own = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            log = folder / f"worker{number}.log"
            worker = Daemon(log, f"{where}.worker.Worker", *quiet, *own, address)
            life.callback(worker.kill)
            found.append(worker)
        for worker in found:
            worker.says(re.compile("Successfully registered with master"))
        yield Cluster(address, found)


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a Connect server; its address."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.host": LOOPBACK,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = Daemon(
        folder / "connect.log",
        "org.apache.spark.deploy.SparkSubmit",
        *words,
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
        memory="1g",
    )
    try:
        server.says(re.compile("Spark Connect server started"))
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.kill()
