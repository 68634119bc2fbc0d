"""Runs a program written for ONNX Runtime, LiteRT or PyArmNN on armpy.

Usage::

    python -m armpy_compat PROGRAM.py [arguments]
"""

from __future__ import annotations

import os
import sys

import armpy_compat
from armpy_compat.program import run_program

_USAGE = "usage: python -m armpy_compat PROGRAM.py [arguments]"


def main() -> None:
    """Take the place of every engine, and run the program of the command line."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{_USAGE}\n\n{(__doc__ or '').partition(chr(10))[0]}")
        raise SystemExit(0 if len(sys.argv) > 1 else 2)
    path, arguments = sys.argv[1], sys.argv[2:]
    if not os.path.isfile(path):
        raise SystemExit(f"armpy_compat: there is no file {path}. {_USAGE}")
    armpy_compat.install()
    run_program(path, arguments)


if __name__ == "__main__":
    main()
