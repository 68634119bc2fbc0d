"""Runs a program written for ONNX Runtime, LiteRT or PyArmNN on armpy.

Usage::

    python -m armpy_compat PROGRAM.py [arguments]
"""

from __future__ import annotations

import os
import sys

import armpy_compat
from armpy.core.units import shell_word
from armpy.errors import suggest_path
from armpy_compat.program import run_program

_USAGE = "usage: python -m armpy_compat PROGRAM.py [arguments]"

_FIRST_BYTES = 1 << 16
"""In which a file that is no text has a zero."""

_WITHOUT_TENSORFLOW = """\
armpy answers for TensorFlow only where no other engine is installed, as programs may look whether
it is there. If this one uses tf.lite alone, begin it with:
    import armpy_compat
    armpy_compat.install_as_tensorflow()"""


def main() -> None:
    """Take the place of every engine, and run the program of the command line."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{_USAGE}\n\n{(__doc__ or '').partition(chr(10))[0]}")
        raise SystemExit(0 if len(sys.argv) > 1 else 2)
    path, arguments = sys.argv[1], sys.argv[2:]
    if not os.path.isfile(path):
        raise SystemExit(f"armpy_compat: there is no file {path}. {suggest_path(path)} {_USAGE}")
    with open(path, "rb") as file:
        is_text = b"\0" not in file.read(_FIRST_BYTES)
    if not is_text:
        command = f"armpy run {shell_word(path)}"
        raise SystemExit(f"armpy_compat: {path} is no Python program. If it is a model: {command}")
    armpy_compat.install()
    try:
        run_program(path, arguments)
    except ModuleNotFoundError as error:
        if error.name == "tensorflow":
            error.add_note(_WITHOUT_TENSORFLOW)
        engine, _, module = str(error.name).partition(".")
        stand_in = getattr(sys.modules.get(engine), "__name__", "")
        if module and stand_in.startswith("armpy_compat."):
            error.add_note(
                f"armpy_compat stands in the place of {engine}, and has no {module}. Run the "
                "program without it for that"
            )
        raise


if __name__ == "__main__":
    main()
