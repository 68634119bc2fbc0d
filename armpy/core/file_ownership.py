"""Places on disk: what armpy keeps, and whether another user can change a file or path.

Notes
-----
Owners and permission bits of POSIX systems; an access control list that lets another user write
shows as the group's permission to write. Windows has no such bits, so ownership is unknown there.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # slow to import, and needed at every start of a prepared model otherwise
    from pathlib import Path

HAS_OWNERS = sys.platform != "win32"
"""Whether files have owners and permission bits that can be judged."""

_MOST_LINKS = 40
"""Maximum number of links that are followed on one path, as on Linux."""


class FileStamp(NamedTuple):
    """The state of a file, unlike its others; times in nanoseconds since 1970."""

    device: int
    inode: int
    size: int
    changed_ns: int
    status_ns: int

    @classmethod
    def of(cls, info: os.stat_result) -> FileStamp:
        """The stamp of a file that was looked at."""
        return cls(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def trusted_owners() -> frozenset[int]:
    """Ids of the users whose files count as the user's own: the current one, and root."""
    if sys.platform == "win32":
        return frozenset()  # ids are no owners there, see `HAS_OWNERS`
    return frozenset({os.geteuid(), 0})


def why_foreign(info: os.stat_result, what: str, trusted: frozenset[int]) -> str:
    """Why a file, directory or link is not its user's own; empty if it is."""
    if info.st_uid in trusted:
        return ""
    return f"its {what} is owned by another user (id {info.st_uid})"


def why_writable(info: os.stat_result, what: str, spared: int = 0) -> str:
    """Why others can write to a file or directory; empty if they cannot, or a mode is spared."""
    if not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or info.st_mode & spared:
        return ""
    who = "everybody" if info.st_mode & stat.S_IWOTH else "its group"
    return f"its {what} can be written by {who}"


def kind_of(info: os.stat_result) -> str:
    """Return the word for a file, a directory or a link in messages."""
    if stat.S_ISLNK(info.st_mode):
        return "link"
    return "directory" if stat.S_ISDIR(info.st_mode) else "file"


def steps_to(
    path: str,  # of a file or directory; relative to the working directory, if it is not absolute
) -> Iterator[tuple[str, os.stat_result]]:
    """Every directory and link that the system passes on the way to a file, then the file.

    Yields
    ------
    path : str
        Without links before its last part.
    info : os.stat_result
        Of the link itself, where it is one.

    Raises
    ------
    OSError
        If there is no such file, or links lead in a circle.
    """
    whole = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    place, rest = _root_and_names(whole)
    yield place, os.lstat(place)
    num_links = 0
    while rest:
        name = rest.pop()
        if name in ("", os.curdir):
            continue
        if name == os.pardir:  # of where a link has led, not of where it lies
            place = os.path.dirname(place)
            continue
        here = os.path.join(place, name)
        info = os.lstat(here)
        yield here, info
        if not stat.S_ISLNK(info.st_mode):
            place = here
            continue
        num_links += 1
        if num_links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(here)
        # A target that is not a whole path counts from the folder that the link lies in.
        root, names = _root_and_names(target)
        place = root if os.path.isabs(target) else place
        rest += names


def _root_and_names(path: str) -> tuple[str, list[str]]:
    """The root of an absolute path, on Windows with its drive, and its names, last first."""
    drive, names = os.path.splitdrive(path)
    return drive + os.sep, names.replace(os.altsep or os.sep, os.sep).split(os.sep)[::-1]


def links_to(path: str) -> list[str]:
    """The symbolic links that are followed on the way to a file, in order; errors as `steps_to`."""
    return [place for place, info in steps_to(path) if stat.S_ISLNK(info.st_mode)]


def why_not_own(opened: os.stat_result) -> str:
    """Why others can have written a file that was opened, wherever it lies; empty if not."""
    if not HAS_OWNERS:  # pragma: no cover - of Windows
        return ""
    return why_foreign(opened, "file", trusted_owners()) or why_writable(opened, "file")


def is_private_group(gid: int) -> bool:
    """Return whether a group has a single user; its files count as that user's own.

    Many systems make such a group for each user, of his name and without other members, and let
    groups write what is made (a umask of 002). By the same tokens it is recognised here.

    References
    ----------
    Linux-PAM, pam_umask(8), option ``usergroups``.
    """
    if sys.platform == "win32":
        return False
    import grp  # noqa: PLC0415 - few files can be written by a group
    import pwd  # noqa: PLC0415 - likewise

    for owner in trusted_owners():
        try:
            user, group = pwd.getpwuid(owner), grp.getgrgid(gid)
        except KeyError:
            continue
        # Linux gives each user a group of the same name, without other members.
        is_own = user.pw_gid == gid and group.gr_name == user.pw_name
        if is_own and set(group.gr_mem) <= {user.pw_name}:
            return True
    return False


def why_exposed(
    path: str,  # by which it was opened
    # Of its descriptor: the opened file counts, whatever the path leads to by now.
    opened: os.stat_result,
) -> str:
    """Why others can change a file that was opened, or have put it there; empty if they cannot.

    The file, every directory above it and every link on the way have to belong to the current
    user or root, and neither file nor directories may be written by others; the user's private
    group does not count. In a directory with a sticky bit only an entry's owner can put another in
    its place, so that such ones may be. The path has to lead to the opened file.
    """
    if not HAS_OWNERS:  # pragma: no cover - of Windows
        return ""
    trusted = trusted_owners()
    try:
        for place, info in steps_to(path):
            subject = f"{kind_of(info)} {place}"
            if reason := why_foreign(info, subject, trusted):
                return reason
            if not stat.S_ISLNK(info.st_mode) and (reason := _why_shared(info, subject)):
                return reason
    except OSError as error:
        return f"the way to it cannot be followed: {error.strerror}"
    if not os.path.samestat(info, opened):
        return "another file has taken its place since it was opened"
    # It may have been another's, and given away, since its descriptor was asked.
    subject = f"file {path}"
    return why_foreign(opened, subject, trusted) or _why_shared(opened, subject)


def _why_shared(info: os.stat_result, subject: str) -> str:
    # In a directory with this bit, as /tmp, others add files and cannot replace any.
    spared = stat.S_ISVTX if stat.S_ISDIR(info.st_mode) else 0
    reason = why_writable(info, subject, spared)
    if reason and not info.st_mode & stat.S_IWOTH and is_private_group(info.st_gid):
        return ""
    return reason


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of armpy's and its backends' caches.

    Parameters
    ----------
    environment : mapping of str to str, optional
        The process's own if left out.

    Raises
    ------
    RuntimeError
        If nothing is said and the user has no home.

    Notes
    -----
    ``ARMPY_CACHE_DIR``, else ``armpy`` in ``XDG_CACHE_HOME``, else in the platform's folder for
    the user's caches: ``~/.cache``, ``~/Library/Caches`` on macOS, ``LOCALAPPDATA`` on Windows.
    It need not exist.
    """
    from pathlib import Path  # noqa: PLC0415 - see above

    return Path(cache_folder(environment))


def cache_folder(environment: Mapping[str, str] | None = None) -> str:
    """`cache_directory` as a text."""
    variables = os.environ if environment is None else environment
    if own := variables.get("ARMPY_CACHE_DIR"):
        return os.path.expanduser(own)  # shells leave a "~" in quotes as it is
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA" if sys.platform == "win32" else ""):
        # The convention says that a relative path there does not count.
        if os.path.isabs(shared := variables.get(name, "")):
            return os.path.join(shared, "armpy")
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = os.path.expanduser(home)
    if folder == home:
        raise RuntimeError("the user has no home directory")
    return os.path.join(folder, "armpy")


def make_own_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, and those above it that are missing, for the user alone.

    `os.makedirs` makes those above as the process's umask says: for everybody, where it is 0, who
    could then put other folders in the place of their contents.

    Raises
    ------
    OSError
        If it cannot be made, or is not a folder.
    """
    missing = [os.fspath(path)]
    # Part by part of the path as it is: what `..` leads out of has to be there, too.
    while (above := os.path.dirname(missing[-1])) not in ("", missing[-1]):
        if os.path.isdir(above):
            break
        missing.append(above)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except OSError:  # another process may have made it
            if not os.path.isdir(folder):
                raise


def file_in_place_of(folder: str | os.PathLike[str]) -> str:
    """Return the file on the way to a folder, or in its place; empty if there is none."""
    place = os.fspath(folder)
    while not os.path.lexists(place) and os.path.dirname(place) not in ("", place):
        place = os.path.dirname(place)
    return place if os.path.lexists(place) and not os.path.isdir(place) else ""


_CHOICES = "choices"
"""A file of the cache directory that is made anew when measurements have been made."""


def choices_state() -> object:
    """Return a value that changes with each measurement that decides how models are prepared."""
    try:
        info = os.stat(os.path.join(cache_folder(), _CHOICES))
    except (OSError, RuntimeError):
        return None
    return info.st_ino, info.st_mtime_ns


def mark_choices() -> None:
    """Have models that were kept prepared anew, as measurements decide otherwise now."""
    with suppress(OSError, RuntimeError):
        mark = cache_directory() / _CHOICES
        make_own_folder(mark.parent)
        # Not only touched: a new file differs also where the clock has not gone on.
        mark.unlink(missing_ok=True)
        mark.touch(mode=0o600)
