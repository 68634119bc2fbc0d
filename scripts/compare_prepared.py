"""Runs prepared models in a Python with NumPy alone, and compares with the full one.

Usage::

    python scripts/compare_prepared.py MODEL...

Each model is loaded, run on random inputs and saved by this Python; the compiled model is loaded
and run by a Python without Numba, LLVM and parsers. Outputs have to be equal, bit for bit. The exit
status is 1 if any are not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from comparison.prepared import compare, make_packages

import armpy


def main(paths: list[str]) -> int:
    """Compare, print a line for each model."""
    print(
        f"{'model':44} {'equal':6}{'light':6}{'size':>6} {'load ms':>8} {'again':>6} {'modules':>8}"
    )
    num_failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packages = make_packages(folder / "packages")
        for path in map(Path, paths):
            title = f"{path.parent.name}/{path.stem}"[-44:]
            try:
                o = compare(path, packages, folder)
            except (armpy.ArmpyError, RuntimeError) as error:
                num_failed += isinstance(error, RuntimeError)
                print(f"{title:44} {type(error).__name__}: {str(error)[-400:]}", flush=True)
                continue
            num_failed += not o.is_equal
            equal, light = ("yes" if holds else "NO" for holds in (o.is_equal, o.is_light))
            numbers = f"{o.size_ratio:6.2f} {o.load_ms:8.2f} {o.again_ms:6.2f} {o.num_modules:8}"
            print(f"{title:44} {equal:6}{light:6}{numbers}  {o.reason}", flush=True)
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
