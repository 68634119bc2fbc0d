"""Identity of this machine, for measurements on it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from functools import cache

_PROCESSORS = "/proc/cpuinfo"
_MODEL = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
)
"""Fields that say which processor it is, and what the kernel lets processes use of it."""


@cache
def machine_identity() -> str:
    """Digest of what decides how fast this machine is: 32 hexadecimal digits.

    Made of the processor, as the kernel describes it, the number of processors that the system
    has, and the system's name. Two machines that are alike have one identity: measurements on
    one hold on the other, and a container that is made anew keeps it. How many processors this
    process may use is not part of it.
    """
    text = json.dumps(
        [platform.system(), platform.machine(), os.cpu_count(), sorted(_processor().items())]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe_machine() -> str:
    """The machine for people: ``AMD EPYC 7B13, 8 processors, Linux x86_64``."""
    name = _processor().get("model name") or platform.processor() or platform.machine()
    count = os.cpu_count() or 1
    processors = "1 processor" if count == 1 else f"{count} processors"
    return f"{name}, {processors}, {platform.system()} {platform.machine()}"


@cache
def _processor() -> dict[str, str]:
    """Return how the kernel describes the first processor."""
    try:
        with open(_PROCESSORS, encoding="utf-8", errors="replace") as file:
            # Up to the first empty line: the processors that follow are alike and may be hundreds.
            lines = [*iter(lambda: file.readline().rstrip("\n"), "")]
    except OSError:
        # Only Linux has the file.
        return {"model name": platform.processor()}
    fields = (line.split(":", 1) for line in lines if ":" in line)
    return {name.strip(): value.strip() for name, value in fields if name.strip() in _MODEL}
