"""The report: one HTML page that needs no network, made from the tables of the jobs."""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overlay.traces.report.figures import heat, over_time, runs_of
from overlay.traces.report.shortening import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from overlay.traces.analysis import Batch

HERE = Path(__file__).parent
TITLE = "Overlay report"


def write_report(
    out: Path,
    tables: Mapping[str, pa.Table],
    meanings: Mapping[str, str],
    summary: Batch,
    facts: Mapping[str, Any],
) -> Path:
    """Write `index.html`; `facts` are said at its end: master, seconds, versions."""
    data = {
        "runs": runs_of(tables),
        "tables": {name: shortened(name, one, meanings[name]) for name, one in tables.items()},
        "time": over_time(tables),
        "heat": heat(tables),
        "files": {
            "files": summary.files,
            "rows": summary.rows,
            "bytes": summary.bytes,
            "newer": summary.newer,
            "skipped": [[one.file, one.reason] for one in summary.skipped],
        },
        "facts": dict(facts),
    }
    path = out / "index.html"
    path.write_text(page(TITLE, data, ("page.js", "charts.js", "sections.js")), encoding="utf-8")
    return path


def page(title: str, data: Mapping[str, Any], scripts: tuple[str, ...]) -> str:
    """A page with everything in it: style, scripts, plotly, and its data as JSON."""
    import plotly.offline

    # A `</script>` in somebody's topic must not end the element.
    told = json.dumps(_finite(data), separators=(",", ":"), ensure_ascii=False)
    parts = {
        "STYLE": (HERE / "page.css").read_text(encoding="utf-8"),
        "DATA": told.replace("<", "\\u003c"),
        "PLOTLY": plotly.offline.get_plotlyjs(),
        "SCRIPTS": "\n".join((HERE / name).read_text(encoding="utf-8") for name in scripts),
    }
    html = (HERE / "page.html").read_text(encoding="utf-8").replace("{{TITLE}}", escape(title))
    for name, text in parts.items():
        html = html.replace(f"<!--{name}-->", text, 1)
    return html


def _finite(value: Any) -> Any:
    """JSON has no NaN: nothing is known there."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
