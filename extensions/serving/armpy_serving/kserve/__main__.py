"""Serve models: ``python -m armpy_serving.kserve --model_dir DIR``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from armpy.plugins import missing_extension


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server's program, or say how to install what it needs."""
    try:
        program = import_module("armpy_serving.kserve.program")
    except ModuleNotFoundError as error:
        missing = missing_extension(error, "armpy-serving[kserve]", "KServe's server")
        print(f"Error: {missing}", file=sys.stderr)
        return 1
    code: int = program.main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
