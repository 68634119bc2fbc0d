"""Compiles ``Example_Compiled_backend.c`` for the Python that runs this.

Usage::

    python build.py DIRECTORY
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

MODULE = "Example_Compiled_backend"


def build(directory: Path) -> Path:
    """Write the module's shared library into a directory; returns its path.

    Raises
    ------
    OSError
        If there is no C compiler.
    subprocess.CalledProcessError
        If it cannot compile the module, for lack of ``Python.h`` for example.
    """
    library = directory / f"{MODULE}{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    flags = ["-shared", "-fPIC", "-O2", f"-I{include}"]
    source = Path(__file__).with_name(f"{MODULE}.c")
    subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
    return library


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
