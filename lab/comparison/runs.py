"""Processes that make subjects and answer them, and stored answers."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .answers import FOREIGN_CODE, read_subjects
from .subjects import Selection
from .trees import Tree, TreeError

Answers = dict[str, dict[str, Any]]  # Any: as JSON has it


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


@dataclass(frozen=True)
class Docket:
    """The subjects of a selection.

    Parameters
    ----------
    path : Path
        Where they are.
    names : tuple of str
        In their order.
    """

    path: Path
    names: tuple[str, ...]

    @classmethod
    def made_by(cls, tree: Tree, selection: Selection) -> Docket:
        """What a tree makes of a selection, unless it is remembered."""
        key = _key(tree.digest, selection.to_json(), _source("subjects.py"))
        path = tree.store.path("subjects", f"{key}.pickles")
        if not path.exists():
            unfinished = path.with_suffix(f".{os.getpid()}")
            job = {"path": str(unfinished), "selection": selection.to_json()}
            if _start("subjects", tree, job).wait():
                unfinished.unlink(missing_ok=True)
                raise TreeError(f"{tree.name} cannot make the subjects to compare")
            unfinished.replace(path)
        return cls(path, tuple(subject.name for subject in read_subjects(path)))


def answers_of(tree: Tree, docket: Docket, how: Conditions, jobs: int = 1) -> Answers:
    """What comes out of all subjects, by name; remembered as long as no source changes.

    Raises
    ------
    TreeError
        If the process cannot be started, or did not run this tree.
    """
    path = kept_answers(tree, docket, how)
    if path.exists():
        with path.open(encoding="utf-8") as file:
            return {answer["name"]: answer for answer in map(json.loads, file)}
    answers = {
        answer["name"]: answer for answer in _run(tree, docket, range(len(docket.names)), how, jobs)
    }
    unfinished = path.with_suffix(f".{os.getpid()}")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(answer) + "\n" for answer in answers.values())
    unfinished.replace(path)
    return answers


def kept_answers(tree: Tree, docket: Docket, how: Conditions) -> Path:
    """Where the answers are, or are to be."""
    key = _key(tree.digest, docket.path.stem, repr(how), _source("answers.py"))
    return tree.store.path("answers", f"{key}.jsonl")


def keep_outputs(
    tree: Tree, docket: Docket, numbers: Sequence[int], how: Conditions, folder: Path
) -> None:
    """Write the outputs themselves of some subjects to a folder."""
    folder.mkdir(parents=True)
    for _ in _run(tree, docket, numbers, how, 1, folder):
        pass


def _run(
    tree: Tree,
    docket: Docket,
    numbers: Sequence[int],
    how: Conditions,
    jobs: int,
    folder: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Answers of some subjects, in any order; a process that dies is an answer, too."""
    isa = {"ARMPY_NUMBA_ISA": how.instruction_set} if how.instruction_set else {}
    parts = [list(numbers[first::jobs]) for first in range(jobs)]
    with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
        while any(parts):
            running = []
            for index, part in enumerate(parts):
                written = Path(scratch, str(index))
                written.write_bytes(b"")
                job = {
                    "tree": str(tree.folder),
                    "subjects": str(docket.path),
                    "answers": str(written),
                    "backend": how.backend,
                    "num_threads": how.num_threads,
                    "relaxed": how.relaxed,
                    "numbers": part,
                    "folder": folder and str(folder),
                }
                running.append((_start("answers", tree, job, isa), written))
            for index, (process, written) in enumerate(running):
                code = process.wait()
                done = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
                left = parts[index][len(done) :]
                if code == FOREIGN_CODE or (code == 1 and left and not done):
                    raise TreeError(f"{tree.name} cannot be run")
                yield from done
                if left:
                    error = f"the process ended with code {code}"
                    yield {"name": docket.names[left[0]], "error": error}
                parts[index] = left[1:]


def _start(
    module: str, tree: Tree, job: object, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a module of this package in a tree, and send it its job."""
    process = tree.start(module, variables)
    assert process.stdin is not None  # it was asked for
    process.stdin.write(json.dumps(job))
    process.stdin.close()
    return process


def _source(name: str) -> str:
    """Contents of a module of this package, on which stored results depend."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _key(*parts: str) -> str:
    """One digest of several texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
