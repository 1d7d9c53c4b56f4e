"""The documentation site builds without a warning, its links lead somewhere, no network needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.examples import ROOT

BUILD_SECONDS = 110  # 3 s alone


class Page(HTMLParser):
    """What a page loads, where it leads, and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        if "id" in told:
            self.places.add(told["id"])
        if tag in ("script", "img") and "src" in told:
            self.loads.append(told["src"])
        elif tag == "link" and told.get("rel") != "canonical":
            self.loads.append(told["href"])
        elif tag == "a" and "href" in told:
            self.leads.append(told["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_all_links_and_assets_are_there(site: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 30
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # served at any path, so its links start at the root
        for target in [*page.loads, *page.leads]:
            where, place = urldefrag(unquote(target))
            if re.match(r"https?:|mailto:", where):
                if target in page.loads:
                    wrong.append(f"{path.name} loads {target}")
                continue
            file = (path.parent / where).resolve() if where else path
            if not file.exists():
                wrong.append(f"{path.name}: {target} is not there")
            elif place and file in pages and place not in pages[file].places | {"__search"}:
                wrong.append(f"{path.name}: {target} has no such place")
    assert not wrong, "\n".join(wrong)


def test_styles_load_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text()), path.name


def test_each_protocol_has_its_page_with_a_diagram(site: Path) -> None:
    for folder in (ROOT / "protocols").glob("*/machine.py"):
        page = site / "protocols" / f"{folder.parent.name}.html"
        text = page.read_text(encoding="utf-8")
        assert 'class="diagram"' in text, page.name
        assert 'id="specification"' in text, page.name
        assert 'id="invariants"' in text, page.name
