"""The evaluations of the papers: figures of ours beside the published ones, on one page for all.

A paper is a file in configs/papers and a module in bench/papers; the page is
runs/papers/index.html.
"""

from __future__ import annotations

import shutil
from functools import partial
from importlib import import_module
from pathlib import Path

import msgspec

from bench.papers.published import Finding, read
from bench.progress import Progress
from bench.report import Options, Report, machine

NAME = "papers"
PAPERS = {
    "arigatoni": "Resource Discovery in the Arigatoni Overlay Network",
    "broker-discovery": "On the Discovery of Brokers in Distributed Messaging Infrastructures",
    "publisher-mobility": "Publisher Mobility in Distributed Publish/Subscribe Systems",
    "resource-discovery": "Efficient Event-based Resource Discovery",
    "spidercast": "SpiderCast: DHT and publish/subscribe; degree as in DEBS 2007",
}
SECTIONS = dict.fromkeys(PAPERS)
FOLDER = Path("runs") / "papers"


def run(options: Options) -> Report:
    """Evaluate all papers, or those asked for, and write the page; the others' are kept."""
    report = Report(NAME, machine())
    wanted = options.only or tuple(PAPERS)
    progress = Progress(NAME, len(wanted))
    for name in wanted:
        progress.step(name)
        traces = FOLDER / name / "traces"
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir(parents=True)
        evaluate = partial(import_module(f"bench.papers.{name.replace('-', '_')}").evaluate)
        findings: list[Finding] = evaluate(read(name), traces, quick=options.quick)
        (FOLDER / name / "findings.json").write_bytes(msgspec.json.encode(findings))
        for one in findings:
            _enter(report, name, one)
    report.notes.append(f"the page: {_write_page().resolve()}")
    return report


def _enter(report: Report, paper: str, one: Finding) -> None:
    claim = one.claim
    if one.ours is None:
        report.notes.append(f"{paper}: {claim.what} was not tried: {one.note}")
        return
    label = f"{paper}: {claim.what}"
    report.add(label, claim.unit, [one.ours])
    if claim.value is not None:
        off = abs(one.ours - claim.value)
        report.require(f"{label}: off by", off, claim.unit, "at most", claim.within)
    elif claim.least is not None:
        report.require(label, one.ours, claim.unit, "at least", claim.least)
    elif claim.most is not None:
        report.require(label, one.ours, claim.unit, "at most", claim.most)
    if one.note:
        report.notes.append(f"{label}: {one.note}")


def _write_page() -> Path:
    """All papers that were evaluated in this folder, now or before."""
    from overlay.traces.report import page

    told = []
    for name, title in PAPERS.items():
        kept = FOLDER / name / "findings.json"
        if kept.exists():
            findings = msgspec.json.decode(kept.read_bytes(), type=list[Finding])
            rows = [
                [
                    one.claim.figure,
                    one.claim.what,
                    one.claim.told,
                    one.ours,
                    one.claim.unit,
                    one.verdict,
                    one.note,
                ]
                for one in findings
            ]
            told.append({"name": name, "title": title, "rows": rows})
    path = FOLDER / "index.html"
    data = {"runs": [], "tables": {}, "papers": told}
    path.write_text(page("Papers", data, ("page.js", "charts.js", "papers.js")), encoding="utf-8")
    return path
