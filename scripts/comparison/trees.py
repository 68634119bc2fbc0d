"""Source trees, the processes that run them, and what is remembered of them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .answers import FOREIGN_CODE
from .subjects import Selection

Answers = dict[str, dict[str, Any]]  # Any: as JSON has it

_HERE = Path(__file__).resolve().parent
_PATHS = (".", "backends/numba_acc", "backends/reference")
"""Folders of a tree that have its packages."""
_PACKAGES = ("armpy", "backends/numba_acc/armpy_numba_acc", "backends/reference/armpy_reference")
_CODE = "from comparison.{0} import main; main()"
_FORGOTTEN_S = 2 * 24 * 3600.0
"""What has not been used for so long is deleted."""
_KERNELS_MB = 20_000


class TreeError(Exception):
    """A tree that cannot be run; its text is for the user."""


@dataclass(frozen=True)
class Conditions:
    """How subjects are run.

    Parameters
    ----------
    backend : str
    instruction_set : str
        Of NumbaAcc; the processor's best if empty.
    num_threads : int
    relaxed : bool
        Whether NumbaAcc may round products of float32 to bfloat16.
    """

    backend: str
    instruction_set: str
    num_threads: int
    relaxed: bool

    def __str__(self) -> str:
        isa = f" with {self.instruction_set}" if self.instruction_set else ""
        return f"{self.backend}{isa}{', relaxed' if self.relaxed else ''}"


class Store:
    """A folder of what is remembered between runs: trees, subjects, kernels and answers.

    Parameters
    ----------
    folder : Path
        Made for the user alone, as pickles are read from it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            raise TreeError(f"{folder} belongs to somebody else")
        self._folder = folder

    def path(self, kind: str, name: str) -> Path:
        """Where something is, or is to be; it counts as used now."""
        path = self._folder / kind / name
        path.parent.mkdir(exist_ok=True)
        if path.exists():
            os.utime(path)
        return path

    def forget(self) -> None:
        """Delete what has not been used for days."""
        for path in self._folder.glob("*/*"):
            if time.time() - path.stat().st_mtime > _FORGOTTEN_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Tree:
    """A copy of armpy's source as it was when the comparison began.

    Parameters
    ----------
    name : str
        What the user calls it.
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
            for name in _PACKAGES:
                shutil.copytree(
                    source / name, copy / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            digest = _digest(copy)
            folder = store.path("trees", digest)
            if not folder.exists():
                shutil.copytree(copy, folder.with_suffix(f".{os.getpid()}"))
                folder.with_suffix(f".{os.getpid()}").replace(folder)
        return cls(text, folder, digest, store)

    def make_subjects(self, selection: Selection) -> Path:
        """The file of a selection's subjects, made by this tree unless it is there."""
        key = _key(self.digest, selection.to_json(), _source("subjects.py"))
        path = self.store.path("subjects", f"{key}.pickles")
        if not path.exists():
            unfinished = path.with_suffix(f".{os.getpid()}")
            done = self._start(
                "subjects",
                {"OPENBLAS_NUM_THREADS": "1"},
                {"path": str(unfinished), "selection": selection.to_json()},
            )
            if done.wait():
                unfinished.unlink(missing_ok=True)
                raise TreeError(f"{self.name} cannot make what is to be compared")
            unfinished.replace(path)
        return path

    def answers(self, subjects: Path, names: Sequence[str], how: Conditions, jobs: int) -> Answers:
        """What comes out of all subjects, by name; remembered as long as no source changes.

        Raises
        ------
        TreeError
            If the process cannot be started, or did not run this tree.
        """
        path = self.kept_answers(subjects, how)
        if path.exists():
            return {one["name"]: one for one in map(json.loads, path.open(encoding="utf-8"))}
        found: Answers = {}
        for answer in self._run(subjects, names, range(len(names)), how, jobs):
            found[answer["name"]] = answer
        unfinished = path.with_suffix(f".{os.getpid()}")
        with unfinished.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(answer) + "\n" for answer in found.values())
        unfinished.replace(path)
        return found

    def kept_answers(self, subjects: Path, how: Conditions) -> Path:
        """Where the answers are, or are to be."""
        key = _key(self.digest, subjects.stem, repr(how), _source("answers.py"))
        return self.store.path("answers", f"{key}.jsonl")

    def keep_outputs(
        self,
        subjects: Path,
        names: Sequence[str],
        numbers: Sequence[int],
        how: Conditions,
        to: Path,
    ) -> None:
        """Write the outputs themselves of some subjects to a folder."""
        to.mkdir(parents=True)
        for _ in self._run(subjects, names, numbers, how, 1, to):
            pass

    def _run(
        self,
        subjects: Path,
        names: Sequence[str],
        numbers: Sequence[int],
        how: Conditions,
        jobs: int,
        folder: Path | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Answers of some subjects, in any order; a process that dies is an answer, too."""
        parts = [list(numbers[first::jobs]) for first in range(jobs)]
        with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
            while any(parts):
                running = []
                for index, part in enumerate(parts):
                    answers = Path(scratch, str(index))
                    answers.write_bytes(b"")
                    job = {
                        "tree": str(self.folder),
                        "subjects": str(subjects),
                        "answers": str(answers),
                        "backend": how.backend,
                        "num_threads": how.num_threads,
                        "relaxed": how.relaxed,
                        "numbers": part,
                        "folder": folder and str(folder),
                    }
                    running.append((self._start("answers", self._variables(how), job), answers))
                for index, (process, answers) in enumerate(running):
                    code = process.wait()
                    done = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
                    left = parts[index][len(done) :]
                    if code == FOREIGN_CODE or (code == 1 and left and not done):
                        raise TreeError(f"{self.name} cannot be run")
                    yield from done
                    if left:
                        error = f"the process ended with code {code}"
                        yield {"name": names[left[0]], "error": error}
                    parts[index] = left[1:]

    def _variables(self, how: Conditions) -> dict[str, str]:
        """Environment of a process that answers."""
        found = {
            "ARMPY_CACHE_DIR": str(self.store.path("kernels", self.digest)),
            "ARMPY_NUMBA_CACHE_MB": str(_KERNELS_MB),
            "OPENBLAS_NUM_THREADS": "1",
        }
        return found | ({"ARMPY_NUMBA_ISA": how.instruction_set} if how.instruction_set else {})

    def _start(
        self, module: str, variables: Mapping[str, str], job: object
    ) -> subprocess.Popen[str]:
        """Start a module of this package with the tree's packages first on the path."""
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("ARMPY_", "PYTHON"))
        }
        paths = [str(self.folder / part) for part in _PATHS] + [str(_HERE.parent)]
        environment |= {"PYTHONPATH": os.pathsep.join(paths), **variables}
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(module)],
            env=environment,
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None  # it was asked for
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        return process


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


def _source(name: str) -> str:
    """Contents of a module of this package, which decide on what is remembered."""
    return (_HERE / name).read_text("utf-8")


def _key(*parts: str) -> str:
    """One digest of several texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
