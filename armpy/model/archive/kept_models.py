"""Stores loaded models as compiled models in armpy's cache directory, and lists the entries."""

from __future__ import annotations

import logging
import os
import stat
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from armpy.backend import GroupedCacheEntry
from armpy.core.file_digest import content_digest
from armpy.core.file_ownership import (
    cache_directory,
    cache_folder,
    make_own_folder,
    trusted_owners,
    why_exposed,
)
from armpy.core.shell import shell_word
from armpy.errors import ArmpyError
from armpy.model.archive.model_cache import (
    FOLDER,
    LIMIT_BYTES,
    SENT_SUFFIX,
    SUFFIX,
    cached_path,
    is_on,
    shapes_path,
)
from armpy.model.load_request import LoadRequest
from armpy.model.model import Model
from armpy.model.save import (
    can_be_light,
    contents_of,
    save_interface,
    save_model,
    save_shapes,
    takes_many_shapes,
)
from armpy.store.archive.container import open_container
from armpy.store.entries import warn_not_kept
from armpy.store.folder_cache import FoundFile, IFolderCache, files_in
from armpy.store.owned_files import UNFINISHED_SUFFIX

if TYPE_CHECKING:
    from armpy.execution.programs.program import BoundProgram

MOST_SHAPES = 8
"""Sets of input shapes that programs of one model are kept for."""

_NOT_KEPT = "whole models are not kept"

_log = logging.getLogger("armpy.execution")


def keep_model(
    path: str,
    model: Model,
    request: LoadRequest,  # what it was loaded for
) -> None:
    """Keep a model that was loaded, if that can be done.

    `path` names the file's contents before it was loaded. Another may have taken its place until it
    was read, or it was written to while it was: nothing is kept then.
    """
    # Elements in other files have contents of their own, which name nothing.
    if not model.provenance.is_one_file:
        return
    contents = contents_of(model)
    network = contents.network
    if can_be_light(network, network.latest):
        _write(path, path, request, partial(save_model, contents, shares=False))
        keep_shapes(path, model, request)
    elif takes_many_shapes(network):
        # What may be there could not be used, or the model would have been started from it.
        keeper = ShapesKeeper(path, model, request.with_absolute_path(), replaces=True)
        network.program_cache.keeper = keeper


def keep_shapes(path: str, model: Model, request: LoadRequest) -> None:
    """Keep what a model is prepared for from now on, if it takes several shapes."""
    network = model.handle.loaded
    if takes_many_shapes(network):
        keeper = ShapesKeeper(path, model, request.with_absolute_path())
        network.program_cache.keeper = keeper


class ShapesKeeper:
    """Keeps what an open model is prepared for, its programs and what calls see of it."""

    def __init__(
        self, path: str, model: Model, request: LoadRequest, *, replaces: bool = False
    ) -> None:
        self._path = path  # of the model's own file
        self._replaces = replaces  # whether the file takes the place of one that is there
        # Weak, as the model's network has the keeper.
        self._model = weakref.ref(model)
        self._network = weakref.ref(model.handle.loaded)
        self._request = request  # its purpose
        # A process that comes upon ever new shapes is not to write for ever.
        self._left = MOST_SHAPES

    def __call__(self, prepared: BoundProgram) -> None:
        """Keep what the network was prepared for, if running it takes compiled parts alone."""
        network = self._network()
        if network is None or not self._left or not can_be_light(network, prepared):
            return
        self._left -= 1
        if (self._replaces or not os.path.exists(self._path)) and not self._keep_interface():
            return
        place = shapes_path(self._path, prepared.shapes)
        most_bytes = LIMIT_BYTES // 4
        self._write(place, partial(save_shapes, network, prepared, most_bytes=most_bytes))
        _drop_shapes(self._path)

    def _keep_interface(self) -> bool:
        """Keep what calls see of the model; whether that can be done."""
        model = self._model()
        try:
            if model is None or model.signatures:
                return False
        except ArmpyError as error:  # the file is gone by now
            _log.info("%s is not kept: %s", self._path, error)
            return False
        self._write(self._path, partial(save_interface, contents_of(model)))
        self._replaces = False
        return True

    def _write(self, path: str, save: Callable[..., int]) -> None:
        """Write a file beside the model's own, or that one."""
        _write(path, self._path, self._request, save)


def _write(
    path: str,
    key: str,
    request: LoadRequest,
    # Called with a path and the entry's name; returns the size of the file in bytes, 0 if none was
    # written.
    save: Callable[..., int],
) -> None:
    """Write a file of the cache, if that can be done."""
    place = Path(path)
    # Named after process and chance: two that keep the same model do not write to one file.
    unfinished = Path(f"{path}.{os.getpid()}.{os.urandom(4).hex()}{UNFINISHED_SUFFIX}")
    try:
        make_own_folder(place.parent)
        if exposed := _why_not_used(os.fspath(place.parent)):
            warn_not_kept(*exposed, what=_NOT_KEPT)
            return
        try:
            size = save(path=unfinished, entry=place.name)
            # A quarter: one model is not to drive out all others.
            if 0 < size <= LIMIT_BYTES // 4 and cached_path(request) == key:
                unfinished.chmod(0o600)  # code that others can write is not used
                unfinished.replace(place)
        finally:
            unfinished.unlink(missing_ok=True)
        # The least recently used entries go where the limit is exceeded.
        left = LIMIT_BYTES
        for file, info in _files(place.parent):
            left -= info.st_size
            if left < 0:
                file.unlink(missing_ok=True)
    except (ArmpyError, OSError) as error:
        _log.info("%s is not kept: %s", path, error)


def exposed_cache() -> str:
    """Why whole models are not kept where they could be, with the fix; empty if they are."""
    if not is_on():
        return ""
    with suppress(OSError, RuntimeError):  # there is no such folder
        folder = ModelCache().location
        if exposed := _why_not_used(folder if os.path.isdir(folder) else cache_folder()):
            return f"{_NOT_KEPT}: {exposed[0]}; {exposed[1]}"
    return ""


def _why_not_used(folder: str) -> tuple[str, str] | None:
    """Why models in a folder of the cache are not used, and the fix; None if they are."""
    reason = why_exposed(folder, os.stat(folder))
    if not reason:
        return None
    root = cache_folder()
    for info in map(os.stat, (folder, root)):
        if info.st_uid in trusted_owners() and info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return reason, f"run: chmod -R go-w {shell_word(root)}"
    return reason, "set ARMPY_CACHE_DIR to a folder to which you alone can write, as to those above"


def _drop_shapes(path: str) -> None:
    """Drop the least recently used of a model's shapes, if they are too many or too large."""
    place = Path(path)
    left = LIMIT_BYTES // 4
    own = [pair for pair in _files(place.parent) if pair[0].name.startswith(f"{place.stem}-")]
    for number, (file, info) in enumerate(own):
        left -= info.st_size
        if left < 0 or number >= MOST_SHAPES:
            file.unlink(missing_ok=True)


def _files(folder: Path) -> list[FoundFile]:
    """Models, prepared or as they were sent, the last used first."""
    files = files_in(folder, SUFFIX, SENT_SUFFIX, UNFINISHED_SUFFIX)
    # To set a time would look like a change of the file.
    return sorted(files, key=lambda pair: (-max(pair[1].st_atime_ns, pair[1].st_mtime_ns), pair[0]))


class ModelCache(IFolderCache):
    """Models that are kept, for people."""

    def __init__(self, folder: str = FOLDER, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder  # of armpy's cache directory
        self._limit_bytes = limit_bytes  # of all of them together

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._folder

    @property
    def location(self) -> str:
        """The folder."""
        return os.fspath(cache_directory() / self._folder)

    @property
    def limit_bytes(self) -> int:
        """Limit of all of them together."""
        return self._limit_bytes

    def clear(self) -> int:
        """Delete every file."""
        files = _files(Path(self.location))
        for path, _ in files:
            path.unlink(missing_ok=True)
        return len([path for path, _ in files if path.suffix != UNFINISHED_SUFFIX])

    def entry_files(self) -> Sequence[FoundFile]:
        """The files that are whole, the last used first."""
        files = _files(Path(self.location))
        return [file for file in files if file[0].suffix != UNFINISHED_SUFFIX]

    def describe(self, file: FoundFile, *, verify: bool) -> GroupedCacheEntry | None:
        """A model as its file says itself."""
        path, info = file
        title = problem = ""
        if path.suffix == SENT_SUFFIX:
            about = "model as it was sent"
            try:
                is_sound = not verify or content_digest(os.fspath(path)) == path.stem
            except OSError:
                is_sound = False
            problem = "" if is_sound else "contents have changed"
        else:
            try:
                container = open_container(path)
                title = str(container.manifest.get("title", ""))
                if verify:
                    container.check()
                    problem = why_exposed(os.fspath(path), info)
            except ArmpyError as error:
                # The row has the name, and entries are made again by loading, not by a command.
                error.where = error.fix = ""
                problem = str(error)
            about = f"prepared model {title}".strip()
        return GroupedCacheEntry(path.name, info.st_size, info.st_mtime, about, problem, title)
