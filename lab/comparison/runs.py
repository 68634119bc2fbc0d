"""Processes that make subjects and answer them, and stored answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .answers import FOREIGN_CODE, read_subjects
from .sides import Side
from .subjects import Selection
from .trees import Tree, TreeError

Answers = dict[str, dict[str, Any]]  # Any: as JSON has it


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
            if _send(tree.start("subjects"), job).wait():
                unfinished.unlink(missing_ok=True)
                raise TreeError(f"{tree.name} cannot make the subjects to compare")
            unfinished.replace(path)
        return cls(path, tuple(subject.name for subject in read_subjects(path)))


def answers_of(side: Side, docket: Docket, jobs: int = 1) -> Answers:
    """What comes out of all subjects, by name; remembered as long as no source changes.

    Raises
    ------
    TreeError
        If the process cannot be started, or did not run this tree.
    """
    path = kept_answers(side, docket)
    if path.exists():
        with path.open(encoding="utf-8") as file:
            return {answer["name"]: answer for answer in map(json.loads, file)}
    numbers = range(len(docket.names))
    answers = {answer["name"]: answer for answer in _run(side, docket, numbers, jobs)}
    unfinished = path.with_suffix(f".{os.getpid()}")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(answer) + "\n" for answer in answers.values())
    unfinished.replace(path)
    return answers


def kept_answers(side: Side, docket: Docket) -> Path:
    """Where the answers are, or are to be."""
    key = _key(side.tree.digest, docket.path.stem, side.conditions, _source("answers.py"))
    return side.tree.store.path("answers", f"{key}.jsonl")


def answers_with_outputs(
    side: Side, docket: Docket, numbers: Sequence[int], folder: Path, jobs: int = 1
) -> Answers:
    """Answers of some subjects, whose outputs themselves are written to a folder."""
    folder.mkdir(parents=True)
    return {answer["name"]: answer for answer in _run(side, docket, numbers, jobs, folder)}


def _run(
    side: Side, docket: Docket, numbers: Sequence[int], jobs: int, folder: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Answers of some subjects, in any order; a process that dies is an answer, too."""
    isa = {"ARMPY_NUMBA_ISA": side.isa} if side.isa else {}
    parts = [list(numbers[first::jobs]) for first in range(jobs)]
    with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
        while any(parts):
            running = []
            for index, part in enumerate(parts):
                written = Path(scratch, str(index))
                written.write_bytes(b"")
                job = {
                    "tree": f"{side.root}{side.tree.folder}",
                    "subjects": f"{side.root}{docket.path}",
                    "answers": f"{side.root}{written}",
                    "backend": side.backend,
                    "num_threads": side.threads,
                    "relaxed": side.relaxed,
                    "root": side.root,
                    "numbers": part,
                    "folder": folder and f"{side.root}{folder}",
                }
                process = side.tree.start("answers", isa, python=side.python, root=side.root)
                running.append((_send(process, job), written))
            for index, (process, written) in enumerate(running):
                code = process.wait()
                done = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
                left = parts[index][len(done) :]
                if code == FOREIGN_CODE or (code == 1 and left and not done):
                    raise TreeError(f"{side.name} cannot be run")
                yield from done
                if left:
                    error = f"the process ended with code {code}"
                    yield {"name": docket.names[left[0]], "error": error}
                parts[index] = left[1:]


def _send(process: subprocess.Popen[str], job: object) -> subprocess.Popen[str]:
    """Send a process its job."""
    assert process.stdin is not None  # it was asked for
    with contextlib.suppress(BrokenPipeError):  # its exit status says more
        process.stdin.write(json.dumps(job))
        process.stdin.close()
    return process


def _source(name: str) -> str:
    """Contents of a module of this package, on which stored results depend."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _key(*parts: str) -> str:
    """One digest of several texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
