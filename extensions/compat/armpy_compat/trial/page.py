"""A trial as one HTML page, without scripts and without other files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from armpy_compat.trial.trial_result import MODEL_COLUMNS, TrialResult

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8886; }
td:first-child { overflow-wrap: anywhere; min-width: 8rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; padding: .5rem; border: 1px solid #8886; }
"""


def page_of(result: TrialResult) -> str:
    """Make the page of a trial."""
    title = f"{result.program} on {result.engine} and on armpy"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p><strong>{escape(result.headline)}</strong></p>",
        "<h2>Models</h2>",
        _table(MODEL_COLUMNS, result.model_rows),
        "<p>Times are medians of later runs, of calls whose input shapes an earlier call of the"
        " process had; of first calls if there are no others. Ratio is the engine's time divided by"
        " armpy's: above 1, armpy is faster.</p>",
        "<h2>Program</h2>",
        _table(("figure", f"{result.engine}>", "armpy>"), result.program_rows),
        "<h2>Placement</h2>",
        _list(f"{model.name}: {model.placement or 'not known'}" for model in result.models),
    ]
    remarks = [*result.remarks()]
    if remarks:
        parts += ["<h2>Remarks</h2>", _list(remarks)]
    if result.armpy_error_text:
        parts.append(f'<pre tabindex="0">{escape(result.armpy_error_text)}</pre>')
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that end in ``>`` have numbers."""
    classes = [' class="number"' if column.endswith(">") else "" for column in columns]
    head = "".join(
        f'<th scope="col"{kind}>{escape(column.rstrip(">"))}</th>'
        for kind, column in zip(classes, columns, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(classes, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="scroll" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
