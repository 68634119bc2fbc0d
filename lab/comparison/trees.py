"""Source trees as they are now, and the folder of their stored results."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO

_HERE = Path(__file__).resolve().parent
_PATHS = (".", "backends/numba_acc", "backends/reference")
"""Folders of a tree that have its packages."""
_PACKAGES = ("armpy", "backends/numba_acc/armpy_numba_acc", "backends/reference/armpy_reference")
_EXTENSIONS = "extensions/*/armpy_*"
"""Packages of the tree's extensions; an older tree takes those that are installed."""
_FORGOTTEN_S = 2 * 24 * 3600.0
"""Results not used for so long are deleted."""
_KERNELS_MB = 20_000


ENTRY_POINTS = """\
[armpy.backends]
CpuRef = armpy_reference:ReferenceBackend
NumbaAcc = armpy_numba_acc:NumbaBackend
[armpy.programs]
NumbaAcc = armpy_numba_acc.files:NumbaPrograms
"""


class TreeError(Exception):
    """A tree that cannot be run; its text is for the user."""


def default_store() -> Path:
    """The default folder of stored results: the user's own, temporary."""
    user = os.getuid() if hasattr(os, "getuid") else ""
    return Path(tempfile.gettempdir(), f"armpy-compare-{user}")


class Store:
    """A folder of results stored between runs: trees, subjects, kernels and answers.

    Parameters
    ----------
    folder : Path
        Made for the user alone, as pickles are read from it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            raise TreeError(f"{folder} belongs to another user")
        self._folder = folder

    def path(self, kind: str, name: str) -> Path:
        """Where something is, or is to be; it counts as used now."""
        path = self._folder / kind / name
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            os.utime(path)
        return path

    def forget(self) -> None:
        """Delete results not used for days."""
        for path in self._folder.glob("*/*"):
            if time.time() - path.stat().st_mtime > _FORGOTTEN_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Tree:
    """A copy of armpy's source as it was when the comparison began.

    Parameters
    ----------
    name : str
        The user's name for it.
    folder : Path
        In the store.
    digest : str
        Of all source that runs, and of the libraries that it uses.
    store : Store
    """

    name: str
    folder: Path
    digest: str
    store: Store

    @classmethod
    def named(cls, text: str, store: Store, repository: Path) -> Tree:
        """The tree in a folder, or that of a revision.

        Raises
        ------
        TreeError
            If it is neither.
        """
        with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
            source = Path(text)
            if not (source / "armpy").is_dir():
                source = _checked_out(text, repository, Path(scratch, "revision"))
            if missing := [name for name in _PACKAGES if not (source / name).is_dir()]:
                raise TreeError(f"{text} has no {', '.join(missing)}")
            copy = Path(scratch, "copy")
            extensions = [str(path.relative_to(source)) for path in source.glob(_EXTENSIONS)]
            for name in (*_PACKAGES, *extensions):
                shutil.copytree(
                    source / name, copy / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            digest = _digest(copy)
            folder = store.path("trees", digest)
            if not folder.exists():
                shutil.copytree(copy, folder.with_suffix(f".{os.getpid()}"))
                folder.with_suffix(f".{os.getpid()}").replace(folder)
        return cls(text, folder, digest, store)

    def start(
        self,
        module: str,
        variables: Mapping[str, str] | None = None,
        *,
        output: IO[str] | int | None = None,
        core: int | None = None,
        python: Sequence[str] = (sys.executable,),
        root: str = "",
    ) -> subprocess.Popen[str]:
        """Start `main` of a module of this package in a process that runs the tree.

        Parameters
        ----------
        module : str
        variables : mapping of str to str, optional
            As of `environment`.
        output : file or int, optional
            Standard output, as `subprocess.Popen` takes it.
        core : int, optional
            The only core that the process may use.
        python : sequence of str
            Command that starts the Python.
        root : str
            As of `environment`.

        Returns
        -------
        Popen
            Its standard input is open.
        """
        keep_to_core = None if core is None else partial(os.sched_setaffinity, 0, {core})
        return subprocess.Popen(
            [*python, "-c", f"from {_HERE.name}.{module} import main; main()"],
            env=self.environment(variables, root),
            stdin=subprocess.PIPE,
            stdout=output,
            text=True,
            preexec_fn=keep_to_core,  # noqa: PLW1509 - there are no threads
        )

    def environment(
        self, variables: Mapping[str, str] | None = None, root: str = ""
    ) -> dict[str, str]:
        """Environment of a process that runs the tree, with its own compiled kernels.

        Parameters
        ----------
        variables : mapping of str to str, optional
            More of it. Variables of armpy and of Python that are set now do not count.
        root : str
            What another system's Python writes ahead of absolute paths. There armpy does not have
            to be installed.
        """
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("ARMPY_", "PYTHON"))
        }
        extensions = sorted(str(path.parent) for path in self.folder.glob(_EXTENSIONS))
        paths = [str(self.folder / part) for part in _PATHS] + extensions + [str(_HERE.parent)]
        kernels = "kernels"
        if root:
            paths.append(str(self._entry_points()))
            kernels = "other kernels"
        return environment | {
            "PYTHONPATH": (";" if root else os.pathsep).join(root + path for path in paths),
            "PYTHONSAFEPATH": "1",
            "ARMPY_CACHE_DIR": root + str(self.store.path(kernels, self.digest)),
            "ARMPY_NUMBA_CACHE_MB": str(_KERNELS_MB),
            "OPENBLAS_NUM_THREADS": "1",
            **(variables or {}),
        }

    def _entry_points(self) -> Path:
        """A folder that has metadata of armpy alone, by which its backends are found."""
        folder = self.store.path("metadata", self.digest)
        about = folder / "armpy-0.dist-info"
        about.mkdir(parents=True, exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: armpy\nVersion: 0\n")
        (about / "entry_points.txt").write_text(ENTRY_POINTS)
        return folder


def _digest(folder: Path) -> str:
    """Of all source of a tree, and of the libraries that it uses."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("numpy", "numba", "llvmlite"):
        digest.update(version(name).encode())
    for path in sorted(folder.rglob("*.py")):
        contents = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(contents)}\0".encode() + contents)
    return digest.hexdigest()[:24]


def _checked_out(revision: str, repository: Path, folder: Path) -> Path:
    """Put the tree of a revision into a folder."""
    git = ["git", "-C", str(repository), "archive", "--", revision]
    done = subprocess.run(git, capture_output=True, check=False)
    if done.returncode:
        raise TreeError(f"{revision} is neither a folder with armpy's source nor a revision")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as file:
        file.extractall(folder, filter="data")
    return folder
