"""A conformance result as one HTML page without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from armpy.testing.result import CaseResult, ConformanceResult, Outcome

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #c62828; --good: #2e7d32; --dim: #777; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; width: 6rem; }
td.zero { color: var(--dim); } .failed, .crashed, .bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); font-weight: 600; } .dim { color: var(--dim); }
code { font: 13px/1.4 ui-monospace, monospace; }
details { margin-top: 2rem; } summary { cursor: pointer; font-weight: 600; }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(result: ConformanceResult) -> str:
    """The page: verdict, problems, counts by operation and type, every case."""
    version = f" {result.backend_version}" if result.backend_version else ""
    parts = [_verdict(result)]
    if result.problems:
        parts += ["<h2>Problems</h2>", _cases(result.problems)]
    if result.unused_known_failures:
        lines = "".join(
            f"<li><code>{escape(case)}</code></li>" for case in result.unused_known_failures
        )
        parts += ["<h2>Listed as known failures, but did not fail</h2>", f"<ul>{lines}</ul>"]
    parts += ["<h2>By operation</h2>", _counts("operation", result.by_operation)]
    parts += ["<h2>By data type</h2>", _counts("data type", result.by_data_type)]
    parts += [f"<details><summary>Every case</summary>{_cases(result.results)}</details>"]
    title = escape(f"Conformance of {result.backend}{version}")
    return PAGE.format(title=title, style=STYLE, body="\n".join(parts))


def _verdict(result: ConformanceResult) -> str:
    """What the run comes to."""
    counts = ", ".join(f"{count} {name}" for name, count in result.counts.items() if count)
    word, kind = ("passed", "good") if result.is_passed else ("did not pass", "bad")
    return (
        f'<p><span class="{kind}">{word}</span>: {escape(counts or "no cases")} '
        f'<span class="dim">(API {escape(result.api_version)}, '
        f"{result.duration_s:.1f} s)</span></p>"
    )


def _cases(results: Iterable[CaseResult]) -> str:
    """A table of cases."""
    rows = [
        f'<tr><td class="{result.outcome.name.lower()}">{escape(result.outcome.value)}</td>'
        f"<td><code>{escape(result.case)}</code></td><td>{escape(result.text)}</td></tr>"
        for result in results
    ]
    return _table(["<th>outcome</th>", "<th>case</th>", "<th>why</th>"], rows)


def _counts(what: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    """A table of counts by outcome."""
    heads = [f"<th>{what}</th>", *(f'<th class="n">{o.value}</th>' for o in Outcome)]
    rows = [
        f"<tr><td>{escape(key)}</td>" + "".join(_number(by[o.value], o) for o in Outcome) + "</tr>"
        for key, by in counts.items()
    ]
    return _table(heads, rows)


def _number(count: int, outcome: Outcome) -> str:
    """A cell with a number that stands out if it is bad news."""
    kind = "zero" if not count else outcome.name.lower()
    return f'<td class="n {kind}">{count}</td>'


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table."""
    return f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
