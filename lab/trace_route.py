"""Counts what loads and a call of a model go through: files, functions, classes of the core.

Usage::

    python lab/trace_route.py [MODEL] [--backends ID ...] [--list]

The first load of the process is counted, with the modules of the core that are imported then; after
a call another load, and another call. Bodies of modules and classes are no functions, nor are
comprehensions. A frame is counted once for each function between ``armpy.load`` and the first
backend's ``is_layer_supported``; a class is counted if an instance of it is made.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np

import armpy

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Functions of their own before Python 3.12, parts of the one around them since then."""
ROOT = Path(__file__).parents[1]
CORE = str(ROOT / "armpy")
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


@dataclass(slots=True)
class Route:
    """What ran while a function was traced, each in the order in which it was entered first."""

    files: dict[str, None] = field(default_factory=dict)
    functions: dict[tuple[str, str], None] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)  # with the number of instances
    frames_to_backend: list[str] = field(default_factory=list)

    def trace(self, work: Callable[[], object]) -> None:
        """Run a function, and note the calls of Python functions in it."""
        sys.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call."""
        code = frame.f_code
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:  # a module or a class
            return
        if code.co_name in COMPREHENSIONS:
            return
        if code.co_name == "__init__" and code.co_argcount:
            kind = type(frame.f_locals[code.co_varnames[0]])
            if kind.__module__.startswith("armpy."):
                name = f"{kind.__module__}.{kind.__qualname__}"
                self.classes[name] = self.classes.get(name, 0) + 1
        if code.co_filename.startswith(CORE):
            file = str(Path(code.co_filename).relative_to(ROOT))
            self.files[file] = None
            self.functions[file, code.co_qualname] = None
        elif code.co_name == "is_layer_supported" and not self.frames_to_backend:
            self.frames_to_backend = list(_callers(frame))


def _callers(frame: FrameType) -> Sequence[str]:
    """Functions of the core from ``armpy.load`` to a frame, the outermost first."""
    names: list[str] = []
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_filename.startswith(CORE):
            file = Path(caller.f_code.co_filename).relative_to(ROOT)
            names.append(f"{file}: {caller.f_code.co_qualname}")
        caller = caller.f_back
    return names[::-1]


def imported() -> dict[str, int]:
    """The modules of the core that this process has imported, with their numbers of lines."""
    return {
        name: Path(module.__file__).read_text(encoding="utf-8").count("\n")
        for name, module in sorted(sys.modules.items())
        if name.split(".")[0] == "armpy" and module.__file__ is not None
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts of two loads and of a call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, default=DIGITS)
    parser.add_argument("--backends", nargs="+", default=["CpuRef"])
    parser.add_argument("--list", action="store_true", help="print every name as well")
    options = parser.parse_args(arguments)

    def load() -> armpy.Model:
        return armpy.load(options.model, backends=options.backends)

    loaded: list[armpy.Model] = []
    routes = {"first load": Route()}
    routes["first load"].trace(lambda: loaded.append(load()))
    modules = imported()
    model = loaded[0]
    inputs = [
        np.zeros([size or 1 for size in spec.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    ]
    model(*inputs)
    for name, work in (("load", load), ("call", lambda: model(*inputs))):
        routes[name] = Route()
        routes[name].trace(work)
    print(f"imported: {len(modules)} modules, {sum(modules.values())} lines")
    for name, route in routes.items():
        print(
            f"{name}: {len(route.files)} files, {len(route.functions)} functions, "
            f"{len(route.classes)} classes, {len(route.frames_to_backend)} frames to a backend"
        )
        if options.list:
            lines = [*route.frames_to_backend, *route.files, *map(": ".join, route.functions)]
            class_lines = [f"{count:5} {name}" for name, count in route.classes.items()]
            print(*lines, *class_lines, sep="\n")
    if options.list:
        print("imported:", *(f"{lines:5} {name}" for name, lines in modules.items()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
