"""What mkdocs does besides: pages made from the code, specifications in pages, diagrams drawn."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.structure.files import File

from nodes.reference import commands, diagrams, settings, specification

ROOT = Path(__file__).parents[1]
PAGES = {
    "reference/settings.md": settings.page,
    "reference/commands.md": commands.page,
}
COPIES = {  # pages of the repository that live elsewhere
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/design.md": "overlay/DESIGN.md",
}
DIAGRAM = re.compile(r"```(sequence|picture)\n(.*?)```", re.DOTALL)
ROW = re.compile(r"^\| \[[^\]]+\]\((\w+\.md)\) .*\n", re.MULTILINE)  # of a table of pages
SPEC = re.compile(r"^<!-- specification: (\w+) -->$", re.MULTILINE)


def on_config(config):
    """Leave out of the navigation what is not there."""
    config.nav = _present(config.nav, Path(config.docs_dir))
    return config


def _present(entries, docs):
    kept = []
    for entry in entries:
        title, target = next(iter(entry.items()))
        if isinstance(target, list):
            kept.append({title: _present(target, docs)})
        elif target in PAGES or target in COPIES or _is_there(docs / target):
            kept.append(entry)
    return kept


def _is_there(page):
    """Whether a page exists, and what it is about does, too: a protocol that is being written."""
    if not page.is_file():
        return False
    about = SPEC.findall(page.read_text(encoding="utf-8"))
    return set(about) <= set(specification.names())


def on_files(files, config):
    """Add the pages that are made; leave out those about nothing."""
    for file in list(files.documentation_pages()):
        if not _is_there(Path(file.abs_src_path)):
            files.remove(file)
    for place, page in PAGES.items():
        files.append(File.generated(config, place, content=page()))
    for place, source in COPIES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_without_links(text)))
    return files


def _without_links(text):
    """Paths of the repository that are no page of this site stay as words."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)[^)]+\)", r"\1", text)


def on_page_markdown(markdown, page, config, files):
    """Put specifications and drawings where they belong."""
    here = {file.name + ".md" for file in files if file.is_documentation_page()}
    markdown = ROW.sub(lambda found: found[0] if found[1] in here else "", markdown)
    markdown = SPEC.sub(lambda found: specification.page_part(found[1]), markdown)
    return DIAGRAM.sub(lambda found: diagrams.draw(found[1], found[2]), markdown)
