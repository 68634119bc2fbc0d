# SPDX-License-Identifier: Apache-2.0
"""Memory of this process, now and at most."""

from __future__ import annotations

import sys


def resident_bytes() -> tuple[int, int]:
    """Resident memory of the process now, and its peak.

    Linux reports both. Elsewhere both are the peak that `getrusage` reports.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return _kib(fields["VmRSS"]), _kib(fields["VmHWM"])
    except (OSError, KeyError, ValueError):
        try:
            import resource  # noqa: PLC0415 - Windows has none
        except ImportError:
            return 0, 0
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (most, most) if sys.platform == "darwin" else (1024 * most, 1024 * most)


def _kib(text: str) -> int:
    """Bytes of ``1234 kB``."""
    return 1024 * int(text.split(maxsplit=1)[0])
