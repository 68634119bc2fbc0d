"""Measures how long many installed backends take to be listed, and to be loaded.

Every figure is the best of several processes of their own, over fake distributions that are
written to a folder of their own.

Usage::

    python -m benchmarks.backends [--candidates N] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from armpy_testing.backends.fake_distributions import FakeSite
from benchmarks.common import description

COMMANDS = {
    "armpy backends": ["-m", "armpy", "backends"],
    "import armpy": ["-c", "import armpy"],
    "Runtime()": ["-c", "import armpy; armpy.Runtime()"],
    "armpy backends --load": ["-m", "armpy", "backends", "--load"],
    "armpy doctor": ["-m", "armpy", "doctor"],
}


def main() -> None:
    """Write the distributions, measure, and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = FakeSite(Path(folder))
        for number in range(options.candidates):
            site.install_backend(f"Fake{number:03}")
        for name, arguments in COMMANDS.items():
            times = [_measure(arguments, folder) for _ in range(options.rounds)]
            print(f"{name:24} {min(times):6.2f} s with {options.candidates} candidates")


def _measure(arguments: list[str], site: str) -> float:
    """Duration of one process in seconds; no probe is remembered from another."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": site, "ARMPY_CACHE_DIR": cache}
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True
        )
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
