"""Cache of verified files, whose checksums need not be computed at every start.

Notes
-----
A record says of a file, by its path, which state of it was read whole and found right. A file that
has been written since has another time of change, which only the system sets. As times have a
resolution, a state counts only if it was some time old when it was verified.

Changes through a memory mapping may leave the time as it is. So a record is good for not looking
for damage again, and for nothing else: which contents a file has is always computed from them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from armpy.core.file_ownership import FileStamp, cache_folder, make_own_folder
from armpy.store.archive.container import Container
from armpy.store.owned_files import UnusableError, is_switched_off, opened, write_whole

FOLDER = "verified"
"""Name of the folder in armpy's cache directory."""

SETTLED_NS = 2_000_000_000
"""Age that a state needs before it is remembered: the resolution of file times is at most two
seconds.
"""


def check_once(
    container: Container,
    always: Sequence[str] = (),  # sections that their readers check every time, such as code
) -> None:
    """Check a file's sections, unless the same state of it has been checked before.

    Raises
    ------
    ParserError
        If a checksum is wrong.
    """
    if container.info is None or container.path is None:
        container.check(always)
        return
    stamp = FileStamp.of(container.info)
    record = json.dumps([*stamp, container.digest.hex()]).encode()
    place = _place(container.path)
    if place is not None:
        # Whatever is wrong with a record, the file itself is checked then.
        with suppress(OSError, UnusableError), opened(place) as handle:
            if os.read(handle, len(record) + 1) == record:
                return
    now = time.time_ns()  # a write during the reading counts as later than this
    container.check(always)
    if place is not None and max(stamp.changed_ns, stamp.status_ns) < now - SETTLED_NS:
        with suppress(OSError):
            make_own_folder(os.path.dirname(place))
            write_whole(place, [record])


def _place(path: str) -> str | None:
    """Return where the record of a file is; None if nothing is kept."""
    if is_switched_off(os.environ):
        return None
    try:
        folder = os.path.join(cache_folder(), FOLDER)
    except RuntimeError:
        return None
    # By the path alone: a changed file replaces its old record.
    name = sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:32]
    return os.path.join(folder, f"{name}.json")
