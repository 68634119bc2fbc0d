"""Writes docs/reference/load_options.md from the options of loading, or checks it.

Usage::

    python scripts/document_load_options.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from documenting import write_or_check

from armpy.cli.app import app
from armpy.model.load_options import OPTIONS, OptionInfo

HEAD = """# Options of loading, and inputs of commands

Made from `armpy/model/load_options.py` by `scripts/document_load_options.py`; do not edit.

`armpy.load` takes these options by name, and documents their values. Commands that load models take
the options that have a name on the command line; a name followed by commands exists only there. An
empty default is explained in the last column. With `runtime=`, the options that belong to the
runtime are refused. Two columns say how an option acts where a model is not compiled anew:

- **Model cache**: *part of the key* means that a model which was kept is found only with the same
  value; *any value* that it makes no difference; *not kept* that models loaded with the option are
  neither kept nor looked for.
- **Compiled model**: *at once* means that its programs run with any value, if that lets their code
  be used. Otherwise it is loaded as a network, which takes longer, unless the value is the one that
  it was compiled with (*as compiled*), or is left out.

In `armpy benchmark` each repetition of `--backends` is a configuration of its own. In `armpy
report` only `--backends` is this option; `--backend` names a backend to compare, and may be
repeated.

"""

INPUTS_HEAD = """
## Inputs of commands

Made from the commands' options. Each command takes inputs by the same names; where an option is
missing, the last column says why. Without inputs, commands take random numbers (`--seed`).

"""

INPUTS = ("--image", "--input", "--shape", "--size", "--batch", "--seed")

WHY_NOT = {
    "benchmark": "times do not depend on pictures; `--shape` says the size",
    "compile": "runs nothing; `--shape` may be repeated for several sets of shapes",
    "diff": "compares on arrays; shapes are the model's or those of the arrays",
    "export-triton": "runs nothing; `--max-batch` is the server's limit",
    "inspect": "runs nothing",
    "pictures": "reads pictures, whose shape is their size",
    "profile model": "measures one execution at a time: the batch is part of `--shape`",
    "quantize": "calibrates on the data that it is given",
    "report": "measures one execution at a time; open shapes come from `--size` or `--input`",
    "run": "runs once: the batch is part of `--shape`",
}
"""Of each command that takes inputs: why it lacks the other options."""

RESTRICTED = {("report", "--shape"): "with `--svg`"}
"""Inputs that a command takes only together with another option."""

CACHE = {"key": "part of the key", "any": "any value", "never": "not kept"}


def main() -> int:
    """Write the page, or compare it."""
    names = ("option", "command line", "default", "with `runtime`", "model cache")
    rows = [_cells((*names, "compiled model", "meaning")), "|---" * 7 + "|"]
    rows += [_row(name, info) for name, info in OPTIONS.items()]
    description = __doc__.splitlines()[0] if __doc__ else ""
    page = HEAD + "\n".join(rows) + "\n" + INPUTS_HEAD + "\n".join(_input_rows()) + "\n"
    return write_or_check("load_options.md", page, "document_load_options.py", description)


def _input_rows() -> list[str]:
    """Return the table of commands that take inputs; a command without a reason is a KeyError."""
    rows = [_cells(("command", *(f"`{option}`" for option in INPUTS), "without the others, as it"))]
    rows.append("|---" * (len(INPUTS) + 2) + "|")
    for name, flags in sorted(_commands(app)):
        if flags & set(INPUTS[:-1]):
            marks = [RESTRICTED.get((name, o), "yes") if o in flags else "" for o in INPUTS]
            rows.append(_cells((f"`armpy {name}`", *marks, WHY_NOT[name])))
    return rows


def _commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Return the full names of commands, with the flags of their options."""
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])  # imports it
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix}{name} ")
        elif command is not None:
            options = (flag for parameter in command.params for flag in parameter.opts)
            yield f"{prefix}{name}", frozenset(options)


def _row(name: str, info: OptionInfo) -> str:
    """The row of an option."""
    compiled = "as a network" if info.needs_network else "at once"
    values = f" One of {', '.join(f'`{choice}`' for choice in info.choices)}." * bool(info.choices)
    cells = (
        f"`{name}`",
        ", ".join(f"`{flag}`" for flag in info.flags) or _own_flag(name),
        f"`{info.neutral}`" if info.neutral not in (None, "", {}) else "",
        "yes" if info.allowed_with_runtime else "refused",
        CACHE[info.cache],
        "as compiled" if info.is_saved else compiled,
        info.help + values,
    )
    return _cells(cells)


def _own_flag(name: str) -> str:
    """The flag that single commands have for an option, with these commands; empty if none has."""
    flag = f"--{name.replace('_', '-')}"
    commands = [f"`armpy {command}`" for command, flags in _commands(app) if flag in flags]
    return f"`{flag}` ({', '.join(commands)})" if commands else ""


def _cells(texts: tuple[str, ...]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(texts)} |"


if __name__ == "__main__":
    sys.exit(main())
