"""Where Spark runs: in this process, on a standalone cluster, or behind Spark Connect."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from overlay.errors import ConfigError
from overlay.traces.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
MEMORY = "4g"  # of the JVM's heap: with the rest of the process it stays below 8 GB
LOOPBACK = "127.0.0.1"
LOG4J = Path(__file__).with_name("log4j2.properties")

COMMON = {
    "spark.sql.ansi.enabled": "false",  # a mean of nothing is null, and must not end the whole job
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",  # adaptive execution joins those that turn out small
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.files.maxPartitionBytes": "64m",
}
"""What a session may be told at any time, also over Connect."""

OWN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.maxResultSize": "1g",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
}
"""What must be known before the JVM starts."""


@contextmanager
def open_session(master: str = "", *, memory: str = MEMORY) -> Iterator[SparkSession]:
    """Yield a session at `master` (`local[N]`, `spark://HOST:PORT`, `sc://HOST:PORT`).

    Without one it is the session of this process, or a local one.

    It is stopped at the end, unless it was there before: Spark has one for each process.
    ConfigError: the master is none, or Java or pyspark is missing.
    """
    _check_master(master or LOCAL)
    present = _spark_session().getActiveSession()
    if present is not None:
        _check_same(present, master or present.conf.get("spark.master", LOCAL))
        yield present
        return
    master = master or LOCAL
    with TemporaryDirectory(prefix="overlay-spark-", ignore_cleanup_errors=True) as scratch:
        is_far = master.startswith("sc://")
        session = _connect(master) if is_far else _start(master, memory, Path(scratch))
        try:
            yield session
        finally:
            session.stop()


def is_remote(session: SparkSession) -> bool:
    """Whether it is a Connect session: it has no JVM here."""
    return "connect" in type(session).__module__


def _check_master(master: str) -> None:
    if not master.startswith(("local", "spark://", "sc://", "yarn", "k8s://")):
        raise ConfigError(
            f"no such master: {master!r}; right are local[*], spark://HOST:PORT and sc://HOST:PORT"
        )


def _check_same(present: SparkSession, master: str) -> None:
    if not is_remote(present) and (there := present.conf.get("spark.master")) != master:
        raise ConfigError(f"this process has a Spark session at {there} already, not at {master}")


def _connect(address: str) -> SparkSession:
    session_class = _spark_session()
    try:
        session: SparkSession = session_class.builder.remote(address).getOrCreate()
        for key, value in COMMON.items():
            session.conf.set(key, value)
    except ImportError as error:
        raise ConfigError(f"{address} needs pip install 'pyspark[connect]': {error}") from None
    except Exception as error:
        raise ConfigError(f"no Spark Connect server at {address}: {_first_line(error)}") from error
    return session


def _start(master: str, memory: str, scratch: Path) -> SparkSession:
    session_class = _spark_session()
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.resolve().parents[1])
    options = f"-Dlog4j2.configurationFile={LOG4J.as_uri()} -XX:+UseParallelGC"
    builder = (
        session_class.builder.master(master)
        .appName("overlay analyze")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.sql.warehouse.dir", str(scratch))
    )
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        builder = builder.config("spark.driver.host", LOOPBACK).config(
            "spark.driver.bindAddress", LOOPBACK
        )
    for key, value in (COMMON | OWN).items():
        builder = builder.config(key, value)
    try:
        with _output_to(scratch / "spark.log"):
            session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise ConfigError(f"Spark does not start at {master}: {_first_line(error)}") from error
    return session


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """While the JVM starts, which inherits stdout and stderr for good.

    It is talkative there, and would keep a pipe open a while after this process has ended.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {place: os.dup(place) for place in (1, 2)}
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for place in kept:
            os.dup2(file, place)
        yield
    finally:
        for place, before in kept.items():
            os.dup2(before, place)
            os.close(before)
        os.close(file)


def _is_here(master: str) -> bool:
    """Whether nobody but this machine must reach the driver."""
    host = urlsplit(master).hostname or ""
    return master.startswith("local") or host in (LOOPBACK, "localhost", "::1")


def _spark_session() -> type[SparkSession]:
    try:
        from pyspark.sql import SparkSession as Found
    except ImportError:
        raise ConfigError("analysing needs pyspark: pip install 'zmq-overlay[spark]'") from None
    found: type[SparkSession] = Found
    return found


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
