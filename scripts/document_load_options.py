"""Writes docs/reference/load_options.md from the options of loading, or checks it.

Usage::

    python scripts/document_load_options.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import click
from documenting import write_or_check

from armpy.cli.app import app
from armpy.model.load_options import OPTIONS, OptionInfo

HEAD = """# Options of loading, and inputs of commands

Made from `armpy/model/load_options.py` by `scripts/document_load_options.py`; do not edit.

`armpy.load` takes these options by name, and documents their values. Commands that load models take
the options that have a flag; if commands are listed in brackets, only they have it.
`front_end_options` of [ONNX files](onnx.md): `dimensions`, `tie_dimensions`, `structures`,
`external_data`, `fold_quantization`.

- **Refused with `runtime=`**, as they belong to the runtime: {refused}.
- **cached** (in the model cache): *key*: found again only with the same value; *any*: with any
  value; *no*: other values than the default bypass the cache (as does `preference="npu"`).
- **fast** (for a compiled model whose code may be used): *any*: it starts at once; *same*: only
  with the value that it was compiled with; *no*: other values than the default load it as a
  network, which takes longer.

In `armpy benchmark` each repetition of `--backends` is a configuration of its own. In `armpy
report` only `--backends` is this option; `--backend` names a backend to compare, and may be
repeated.

"""

INPUTS_HEAD = """
## Inputs of commands

Made from the commands' options, which have the same names; the reason why others are missing
follows a semicolon. Without inputs, commands take random numbers (`--seed`).

`--shape` says the shape of an input that the file leaves open. Of other inputs, open sizes are
those of dimensions with the same name in the shapes that are given (names of dimensions are in
`armpy inspect MODEL`), or 1. Commands that need shapes and have none name the option in the error.

"""

INPUTS = ("--image", "--input", "--shape", "--size", "--batch", "--seed")

WHY_NOT = {
    "benchmark": "times do not depend on pictures; `--shape` says the size",
    "compile": "runs nothing; `--shape` may be repeated for several sets of shapes",
    "conformance accuracy": "reads samples from `--inputs`",
    "diff": "compares on arrays",
    "export-triton": "runs nothing; `--max-batch` is the server's limit",
    "inspect": "runs nothing",
    "kernels build": "runs nothing",
    "kernels list": "runs nothing",
    "pictures": "reads pictures, whose shape is their size",
    "profile model": "measures one execution at a time: the batch is part of `--shape`",
    "quantize": "calibrates on the data that it is given",
    "report": "measures one execution at a time: the batch is part of `--shape`",
    "run": "runs once: the batch is part of `--shape`",
    "tune": "runs parts of a model on numbers of its own",
}
"""Of each command that takes inputs: why it lacks the other options."""


def main() -> int:
    """Write the page, or compare it."""
    rows = [
        _cells(("option", "command line", "default", "cached", "fast", "meaning")),
        "|---" * 6 + "|",
    ]
    rows += [_row(name, info) for name, info in OPTIONS.items()]
    description = __doc__.splitlines()[0] if __doc__ else ""
    head = HEAD.format(refused=_names(lambda info: not info.allowed_with_runtime))
    page = head + "\n".join(rows) + "\n" + INPUTS_HEAD + "\n".join(_input_lines()) + "\n"
    return write_or_check("load_options.md", page, "document_load_options.py", description)


def _names(has: Callable[[OptionInfo], bool]) -> str:
    """The names of options of a kind."""
    return ", ".join(f"`{name}`" for name, info in OPTIONS.items() if has(info))


def _input_lines() -> list[str]:
    """Return the inputs of each command that takes some; one without a reason is a KeyError."""
    lines = []
    for name, flags in sorted(_commands(app)):
        if flags & set(INPUTS[:-1]):
            taken = [f"`{option}`" for option in INPUTS if option in flags]
            lines.append(f"- `armpy {name}`: {', '.join(taken)}; {WHY_NOT[name]}")
    return lines


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
    values = f" One of {', '.join(f'`{choice}`' for choice in info.choices)}." * bool(info.choices)
    cells = (
        f"`{name}`",
        ", ".join(f"`{flag}`" for flag in info.flags) or _own_flag(name),
        f"`{info.neutral}`" if info.neutral not in (None, "", {}) else "",
        "no" if info.cache == "never" else info.cache,
        "same" if info.is_saved else "no" if info.needs_network else "any",
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
