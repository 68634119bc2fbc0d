"""Builds the kernel packs that come with NumbaAcc: common networks start without a compiler.

Usage::

    python lab/build_kernels.py [--targets NAME,...]
    python lab/build_kernels.py --add MODEL... [--targets NAME,...]

The table beside the packs has a line for each kernel: a mark for each target whose pack has it, in
the order of `TARGETS`, then module and parameters, with tabs between them. With ``--add`` the table
first gets the kernels that models need on any machine of the targets, and other pairings of their
parameters (`completed`); `lab.benchmarks.operators` and
`lab.benchmarks.keras_models` write such models. Compiled kernels are kept in the cache as usual, so
that what has not changed is not compiled again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, product

from armpy_numba_acc import ahead
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Call
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import named_target
from armpy_numba_acc.store.packs import OWN_PACKS

import armpy
from armpy.errors import ArmpyError
from armpy.graph import SubgraphView
from armpy.model.save import compiled_views
from armpy.store.archive.kernel_packs import SUFFIX, write_pack

TARGETS = (
    "x86-64-v3",
    "skylake-avx512",
    "icelake-server",
    "znver4",
    "sapphirerapids",
    "cortex-a72",
    "neoverse-n1",
    "neoverse-v1",
)
"""Processors with AVX2, AVX-512, its VNNI without and with bfloat16, and AMX; and Arm's."""

TABLE = "kernels.txt"
"""File name of the table, in the folder of the packs."""

_HAS, _LACKS = "x-"

_TILE = ("tile_rows", "tile_vectors", "half_vectors", "product_rows", "vectors")
_FLAGS = ("has_", "is_")
"""Parameters that say a kernel's tile, and beginnings of those that say what its weights need."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the packs; 1 if a model could not be loaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs="+", metavar="MODEL", default=[])
    parser.add_argument("--targets", metavar="NAME,...", default=",".join(TARGETS))
    options = parser.parse_args(arguments)
    targets: list[str] = options.targets.split(",")
    is_whole = not options.add or add_needed(options.add, targets)
    table = read_table()
    for target in targets:
        path = OWN_PACKS / f"{target}{SUFFIX}"
        kernels = table[target]
        saved = ahead.saved_kernels(kernels, named_target(target))
        size = write_pack(path, "NumbaAcc", saved.about, saved.kernels)
        print(f"{path.name}: {len(kernels)} kernels, {size:,} bytes", flush=True)
    return 0 if is_whole else 1


def read_table() -> dict[str, list[Kernel]]:
    """The kernels of each target, in the order of the table."""
    table: dict[str, list[Kernel]] = {target: [] for target in TARGETS}
    for line in (OWN_PACKS / TABLE).read_text("utf-8").splitlines():
        marks, *words = line.split("\t")
        kernel = _parsed(*words)
        for target, mark in zip(TARGETS, marks, strict=True):
            if mark == _HAS:
                table[target].append(kernel)
    return table


def write_table(table: Mapping[str, Collection[Kernel]]) -> None:
    """Write the kernels of each target, sorted by their text."""
    lines = [
        (
            "\t".join([kernel.name, *map(str, kernel.parameters)]),
            "".join(_HAS if kernel in table[target] else _LACKS for target in TARGETS),
        )
        for kernel in set().union(*table.values())
    ]
    text = "".join(f"{marks}\t{words}\n" for words, marks in sorted(lines))
    (OWN_PACKS / TABLE).write_text(text, "utf-8")


def _parsed(name: str, *parameters: str) -> Kernel:
    """A kernel of the words of a line."""
    return Kernel(name, tuple(int(w) if w.lstrip("-").isdecimal() else w for w in parameters))


def add_needed(models: Iterable[str], targets: Sequence[str]) -> bool:
    """Add what models need to the table; return whether all models could be loaded."""
    table = read_table()
    failures = 0
    for path in models:
        try:
            views = views_of(path)
        except ArmpyError as error:
            print(f"{path} is left out: {error}")
            failures += 1
            continue
        for target in targets:
            table[target] += ahead.choices_for(views, named_target(target))
        print(f"{path}: {len(views)} regions", flush=True)
    write_table({**table, **{target: completed(table[target]) for target in targets}})
    return not failures


def completed(kernels: Iterable[Kernel]) -> set[Kernel]:
    """Kernels, and those that pair their tiles, their flags and other parameters otherwise.

    Another network needs another pairing: of a tile that fits its sizes and what its weights need.
    """
    families: dict[tuple[str, int], list[Kernel]] = {}
    for kernel in kernels:
        families.setdefault((kernel.name, len(kernel.parameters)), []).append(kernel)
    result: set[Kernel] = set()
    for (name, count), members in families.items():
        places = _places(name, count)
        seen = [{tuple(one.parameters[at] for at in group) for one in members} for group in places]
        for parts in product(*seen):
            by_place = dict(zip(chain(*places), chain(*parts), strict=True))
            result.add(Kernel(name, tuple(by_place[at] for at in range(len(by_place)))))
    return result


def _places(kernel: str, count: int) -> list[list[int]]:
    """Places of so many parameters of a kernel: those that say its tile, its flags, and others."""
    known = [getattr(calls, name) for name in dir(calls)]
    records = [
        one
        for one in known
        if isinstance(one, type)
        and issubclass(one, Call)
        and len(one.parameters) == count
        and kernel.replace("_", "").startswith(one.__name__.lower())
    ]
    # Kernels of one record have its name and perhaps a word more.
    names = max(records, key=lambda one: len(one.__name__)).parameters if records else ("",) * count
    tile = [place for place, name in enumerate(names) if name in _TILE]
    flags = [place for place, name in enumerate(names) if name.startswith(_FLAGS)]
    others = [place for place in range(count) if place not in (*tile, *flags)]
    return [tile, flags, others]


def views_of(path: str) -> list[SubgraphView]:
    """The regions of a model that NumbaAcc compiles."""
    # The graphs stay mapped when it is closed, and its programs are not needed.
    with armpy.load(path, backends=["NumbaAcc", "CpuRef"]) as model:
        return [view for _, view in compiled_views(model.handle.loaded)]


if __name__ == "__main__":
    sys.exit(main())
