"""Marks of tests that need what only some systems have, each with the reason of the skip.

A file of tests that imports such a system's modules calls ``pytest.importorskip`` with a reason.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from armpy.core.file_ownership import HAS_OWNERS

_LACKS = "this system has no "


def _makes_links() -> bool:
    """Windows makes symbolic links for some users alone, and Wine makes none without saying so."""
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, "link")
        try:
            link.symlink_to("target")
        except (OSError, NotImplementedError):
            return False
        return link.is_symlink()


NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason=f"{_LACKS}fork")
NEEDS_KEEPER = pytest.mark.skipif(
    sys.platform == "win32", reason="this system ends a worker's processes without a keeper"
)
NEEDS_LINKS = pytest.mark.skipif(not _makes_links(), reason=f"{_LACKS}symbolic links for this user")
NEEDS_NAMED_PIPES = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason=f"{_LACKS}named pipes in folders"
)
NEEDS_OWNERS = pytest.mark.skipif(
    not HAS_OWNERS, reason=f"{_LACKS}owners and permission bits of files"
)
NEEDS_REPLACEABLE_FILES = pytest.mark.skipif(
    sys.platform == "win32", reason="this system neither replaces nor shortens what is in use"
)
NEEDS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
NEEDS_SHARED_MEMORY = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason=f"{_LACKS}anonymous shared memory"
)
NEEDS_SO_LIBRARIES = pytest.mark.skipif(
    sys.platform == "win32", reason="this system loads no libraries whose names end in .so"
)
NEEDS_TRACE_FILES = pytest.mark.skipif(
    sys.platform == "win32", reason=f"{_LACKS}files for marks and names of a trace"
)


def make_file(folder: Path, name: str) -> None:
    """Make an empty file; skips the test where the system gives no file such a name."""
    with suppress(OSError):
        (folder / name).touch()
    if name not in os.listdir(folder):
        pytest.skip(f"this system gives no file the name {name!r}")
