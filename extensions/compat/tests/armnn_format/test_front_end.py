"""The front-end for .armnn files costs models of other formats next to nothing."""

from __future__ import annotations

import subprocess
import sys


def test_registering_the_front_end_imports_no_reader() -> None:
    code = (
        "import sys, armpy_compat.armnn_format.front_end as front_end\n"
        "front_end.armpy_register_front_end()\n"
        "print(*sorted(n for n in sys.modules if n.startswith('armpy_compat.armnn_format.')))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert process.stdout.split() == ["armpy_compat.armnn_format.front_end"]
