"""Builds the kernel packs that come with NumbaAcc: common networks start without a compiler.

Usage::

    python scripts/build_kernels.py [--targets NAME,...]
    python scripts/build_kernels.py --select MODEL... [--targets NAME,...]

Each pack has the kernels that a list beside it names, a line each: module and parameters. With
``--select`` the lists are made first: kernels that the models need on any machine of the target.
Compiled kernels are kept in the cache as usual, so that what has not changed is not compiled again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from armpy_numba_acc import ahead
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the packs; 1 if a model could not be loaded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", nargs="+", metavar="MODEL", default=[])
    parser.add_argument("--targets", metavar="NAME,...", default=",".join(TARGETS))
    options = parser.parse_args(arguments)
    targets: list[str] = options.targets.split(",")
    is_whole = not options.select or select(options.select, targets)
    for target in targets:
        path = OWN_PACKS / f"{target}{SUFFIX}"
        kernels = listed(target)
        saved = ahead.saved_kernels(kernels, named_target(target))
        size = write_pack(path, "NumbaAcc", saved.about, saved.kernels)
        print(f"{path.name}: {len(kernels)} kernels, {size:,} bytes", flush=True)
    return 0 if is_whole else 1


def list_path(target: str) -> Path:
    """Path of the list of a target's kernels."""
    return OWN_PACKS / f"{target}.txt"


def listed(target: str) -> list[Kernel]:
    """The kernels that a target's list names."""
    lines = list_path(target).read_text("utf-8").splitlines()
    return [_parsed(*line.split(" ")) for line in lines]


def _parsed(name: str, *parameters: str) -> Kernel:
    """A kernel of the words of a line."""
    return Kernel(name, tuple(int(w) if w.lstrip("-").isdecimal() else w for w in parameters))


def select(models: Iterable[str], targets: Sequence[str]) -> bool:
    """Write the lists; return whether all models could be loaded."""
    kernels: dict[str, set[Kernel]] = {target: set() for target in targets}
    failures = 0
    for path in models:
        try:
            views = views_of(path)
        except ArmpyError as error:
            print(f"{path} is left out: {error}")
            failures += 1
            continue
        for target, chosen in kernels.items():
            chosen.update(ahead.choices_for(views, named_target(target)))
        print(f"{path}: {len(views)} regions", flush=True)
    for target, chosen in kernels.items():
        lines = sorted(" ".join([name, *map(str, parameters)]) for name, parameters in chosen)
        list_path(target).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return not failures


def views_of(path: str) -> list[SubgraphView]:
    """The regions of a model that NumbaAcc compiles."""
    # The graphs stay mapped when it is closed, and its programs are not needed.
    with armpy.load(path, backends=["NumbaAcc", "CpuRef"]) as model:
        return [view for _, view in compiled_views(model.handle.loaded)]


if __name__ == "__main__":
    sys.exit(main())
