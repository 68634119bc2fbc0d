# SPDX-License-Identifier: Apache-2.0
"""Puts the licence's line into Python sources: `python scripts/license_lines.py [FILE ...]`.

``--check`` changes nothing, and fails if a file lacks the line. Without files, all that git knows
are meant. The line is the first one, after a line that names an interpreter.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINE = "# SPDX-License-Identifier: Apache-2.0\n"
SUFFIXES = (".py", ".pyi")
KERNEL_SOURCES = (
    "armpy/core/numerics/",
    "armpy/core/quantization.py",
    "armpy/core/symbolic.py",
    "backends/numba_acc/armpy_numba_acc/kernels/",
    "backends/numba_acc/armpy_numba_acc/llvm/",
    "backends/numba_acc/armpy_numba_acc/machine/",
    "backends/numba_acc/armpy_numba_acc/packing/",
    "backends/numba_acc/armpy_numba_acc/tiles/",
)
"""What kernels are compiled from: a pack keeps the digests of these files, so that a line in one
would make every pack stale. LICENSE and the wheel's metadata state their licence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Add or check lines; 1 if a file lacks it, or lacked it before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    names = [str(Path(name).resolve().relative_to(ROOT)) for name in options.files]
    missing = [*without_line(names or known_files())]
    for name in missing:
        if not options.check:
            path = ROOT / name
            path.write_text(with_line(path.read_text("utf-8")), "utf-8")
    verb = "lack" if options.check else "were given"
    if missing:
        print(*missing, f"{len(missing)} files {verb} the licence's line", sep="\n")
    return 1 if missing else 0


def known_files() -> list[str]:
    """All files that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def without_line(names: Iterable[str]) -> Iterator[str]:
    """Names of the sources among some files that lack the line."""
    for name in names:
        path = ROOT / name
        if name.endswith(SUFFIXES) and not name.startswith(KERNEL_SOURCES) and path.is_file():
            text = path.read_text("utf-8")
            if text and text != with_line(text):
                yield name


def with_line(text: str) -> str:
    """A source's text with the line."""
    shebang, rest = "", text
    if text.startswith("#!"):
        shebang, end, rest = text.partition("\n")
        shebang += end
    return text if rest.startswith(LINE) else f"{shebang}{LINE}{rest}"


if __name__ == "__main__":
    raise SystemExit(main())
