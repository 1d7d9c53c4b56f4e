"""The report as a browser sees it: everything is drawn, nothing is fetched, nothing fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from overlay.traces.report import page
from tests.spark.conftest import Analysed

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: apt-get install -y chromium shows the report to the test"
)
SECTIONS = (
    *("overview", "time", "delivery", "latency", "membership", "load", "paths", "dht"),
    *("discovery", "resources", "anomalies"),
)


def look(page: Path, profile: Path, *more: str, hash: str = "") -> subprocess.CompletedProcess[str]:
    """Open it, let its scripts run, and return what the document became."""
    assert CHROMIUM is not None
    return subprocess.run(
        [
            CHROMIUM,
            *(
                "--headless=new",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--enable-logging=stderr",
            ),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            *("--host-resolver-rules=MAP * 0.0.0.0", f"--user-data-dir={profile}"),
            *("--virtual-time-budget=20000", *more),
            f"{page.as_uri()}{hash}",
        ],
        capture_output=True,
        text=True,
        timeout=100,
    )


@browser
def test_it_draws_every_section_and_marks_a_node(analysed: Analysed, tmp_path: Path) -> None:
    report = analysed.out / "index.html"
    node = analysed.answers.busy
    done = look(report, tmp_path, "--dump-dom", "--window-size=1280,2000", hash=f"#node={node}")
    document = done.stdout
    assert not re.findall(r"CONSOLE.*(?:Error|error)[^\n]*", done.stderr)
    for section in SECTIONS:
        assert f'<section id="{section}"' in document, section
    charts = re.findall(r'id="chart-([a-z]+)"[^>]*data-ready="yes"', document)
    assert set(charts) >= {
        *("messages", "alive", "bytes", "latency", "agreement", "load", "hops"),
        *("operations", "keys"),
    }
    assert document.count("main-svg") >= len(charts)
    heights = re.findall(r'class="main-svg"[^>]* height="(\d+)"', document)
    assert heights
    assert min(map(int, heights)) >= 200
    card = document[document.index('<aside id="card"') :]
    assert f"<h2>{node}</h2>" in card[:400]
    assert "hidden" not in card[:60]
    assert 'class="marked"' in document
    assert all(f"#node={stop}" in document for stop in analysed.answers.slow_path)


@browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (500, "dark")])
def test_it_fits_and_has_the_colours_of_the_user(
    analysed: Analysed, tmp_path: Path, width: int, theme: str
) -> None:
    shot = tmp_path / "shot.png"
    scheme = "--blink-settings=preferredColorScheme=0" if theme == "dark" else "--hide-scrollbars"
    size = f"--window-size={width},900"
    report = analysed.out / "index.html"
    done = look(report, tmp_path, "--dump-dom", size, scheme)
    assert f'data-theme="{theme}"' in done.stdout
    look(report, tmp_path, f"--screenshot={shot}", size, scheme)
    assert shot.stat().st_size > 20_000


def test_it_needs_no_network_and_names_its_tables(analysed: Analysed) -> None:
    html = (analysed.out / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", html)
    for name in ("delivery", "latency", "paths", "anomalies"):
        assert (analysed.out / "tables" / f"{name}.csv").is_file()
        assert (analysed.out / "tables" / f"{name}.parquet").is_file()


def test_what_peers_say_cannot_become_markup() -> None:
    html = page("<b>", {"topic": "</script><script>alert(1)</script>", "x": float("nan")}, ())
    assert "</script><script>alert" not in html
    assert "<title>&lt;b&gt;</title>" in html
    assert '"x":null' in html
