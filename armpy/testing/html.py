"""Frame of an HTML page that needs nothing from elsewhere, and its tables."""

from __future__ import annotations

from collections.abc import Sequence

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


def table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table."""
    return f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
