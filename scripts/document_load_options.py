"""Writes docs/reference/load_options.md from the options of loading, or checks it.

Usage::

    python scripts/document_load_options.py [--check]
"""

from __future__ import annotations

import sys

from documenting import write_or_check

from armpy.model.load_options import OPTIONS, OptionInfo

HEAD = """# Options of loading

Made from `armpy/model/load_options.py` by `scripts/document_load_options.py`; do not edit.

`armpy.load` takes these options by name, and documents their values. Commands that load models take
those that have a name there. With a `runtime` that is given, the options that are the runtime's own
are refused. The last two columns say what becomes of them where a model is not compiled anew:

- **Model cache**: *part of the key* means that a model which was kept is found only with the same
  value; *any value* that it makes no difference; *not kept* that models loaded with the option are
  neither kept nor looked for.
- **Compiled model**: *at once* means that its programs run with any value, if that lets their code
  be used. Otherwise it is loaded as a network, which takes longer, unless the value is the one that
  it was compiled with (*as compiled*), or is left out.

"""

CACHE = {"key": "part of the key", "any": "any value", "never": "not kept"}


def main() -> int:
    """Write the page, or compare it."""
    names = ("option", "command line", "with `runtime`", "model cache", "compiled model", "")
    rows = [_cells(names), "|---|---|---|---|---|---|"]
    rows += [_row(name, info) for name, info in OPTIONS.items()]
    description = __doc__.splitlines()[0] if __doc__ else ""
    page = HEAD + "\n".join(rows) + "\n"
    return write_or_check("load_options.md", page, "document_load_options.py", description)


def _row(name: str, info: OptionInfo) -> str:
    """The row of an option."""
    compiled = "as a network" if info.needs_network else "at once"
    values = f" One of {', '.join(f'`{choice}`' for choice in info.choices)}." * bool(info.choices)
    cells = (
        f"`{name}`",
        ", ".join(f"`{flag}`" for flag in info.flags),
        "yes" if info.beside_runtime else "refused",
        CACHE[info.cache],
        "as compiled" if info.is_saved else compiled,
        info.help + values,
    )
    return _cells(cells)


def _cells(texts: tuple[str, ...]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    sys.exit(main())
