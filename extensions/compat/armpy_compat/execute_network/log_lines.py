"""Lines of Arm NN's log, which programs read from the standard output."""

from __future__ import annotations

import sys
from typing import TextIO


def log(severity: str, text: str, stream: TextIO | None = None) -> None:
    """Print one line: ``Info: ...``, ``Warning: ...``, ``Error: ...`` or ``Fatal: ...``."""
    print(f"{severity}: {text}", file=stream or sys.stdout, flush=True)
