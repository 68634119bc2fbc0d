"""The page about options of loading and inputs of commands, from their declarations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence

import click

from armpy.cli.app import app
from armpy.cli.inputs.options import INPUT_OPTIONS
from armpy.model.load_options import OPTIONS, OptionInfo

HEAD = """# Options of loading, and inputs of commands

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

In `armpy benchmark` each repetition of `--backends` is a configuration of its own.

"""

INPUTS_HEAD = """
## Inputs of commands

- `--input [NAME=]VALUE`: an array in `FILE.npy`, lines of text in `FILE.txt`, a number that fills
  the input (`sr=16000`), numbers with commas between them (`ids=101,102`), or text for an
  input of strings. An only input needs no name. With `--quantize-inputs`, real numbers for
  quantised inputs are quantised.
- `--image PICTURE`: a picture for the only input, or for the only one without `--input`.
- `--shape NAME=SIZES`: the shape of an input that the file leaves open.
- `--size HxW`: height and width of images that the file leaves open.
- `--batch N`: the first size of each input that leaves it open.
- `--seed N`: of random inputs; every input that is not given is random.

They may be combined. Open sizes that no option says are those of dimensions with the same name in
the shapes that are given, of arrays too (names of dimensions are in `armpy inspect MODEL`), or 1.
Commands that need shapes and have none name the option in the error.

In the table, a command takes the options with `yes`.

"""


def page() -> str:
    """The page's text."""
    rows = [
        _cells(("option", "command line", "default", "cached", "fast", "meaning")),
        "|---" * 6 + "|",
    ]
    rows += [_row(name, info) for name, info in OPTIONS.items()]
    head = HEAD.format(refused=_names(lambda info: not info.allowed_with_runtime))
    return head + "\n".join(rows) + "\n" + INPUTS_HEAD + "\n".join(_input_lines()) + "\n"


def _names(has: Callable[[OptionInfo], bool]) -> str:
    """The names of options of a kind."""
    return ", ".join(f"`{name}`" for name, info in OPTIONS.items() if has(info))


def _input_lines() -> list[str]:
    """The table of the commands that take inputs."""
    options = [f"`--{name}`" for name in INPUT_OPTIONS]
    lines = [_cells(("command", *options)), "|---" * (1 + len(options)) + "|"]
    for name, command in sorted(_commands(app), key=operator.itemgetter(0)):
        taken = ["yes" * (f"--{option}" in _flags(command)) for option in INPUT_OPTIONS]
        if any(taken[:-1]):  # a seed may be of other random things
            lines.append(_cells((f"`armpy {name}`", *taken)))
    return lines


def _commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Commands by their full names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])  # imports it
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix}{name} ")
        elif command is not None:
            yield f"{prefix}{name}", command


def _flags(command: click.Command) -> frozenset[str]:
    """The flags of a command's options."""
    return frozenset(flag for parameter in command.params for flag in parameter.opts)


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
    commands = [f"`armpy {name}`" for name, found in _commands(app) if flag in _flags(found)]
    return f"`{flag}` ({', '.join(commands)})" if commands else ""


def _cells(texts: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(texts)} |"
