"""Output of a job: results that are on disk as soon as they are there."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Literal, Self

from armpy.cli.pictures.ground_truth import AnswerCounter, Judgement
from armpy.cli.run.jobs.array_spool import SpoolEncoder, write_archive
from armpy.cli.run.jobs.encoders import Encoder, LinesEncoder, TableEncoder
from armpy.cli.run.jobs.journal import (
    Checkpoint,
    Journal,
    begin_journal,
    check_same_job,
    find_remnant,
    read_journal,
)
from armpy.cli.run.output_path import is_result_file
from armpy.cli.run.picture_result import EarlierPart
from armpy.errors import InvalidArgumentError
from armpy.store.locks import locked

if TYPE_CHECKING:
    from armpy.cli.run.picture_result import PictureOutcome

_JOURNAL = ".job"
"""What is behind the output's name in that of its journal."""

_LOCK = ".job.lock"
_SPOOL = ".part"
"""Arrays of an ``.npz`` that is not finished."""

_ARCHIVE = ".part.npz"


class JobOutput:
    """Output of a job, written picture by picture.

    Parameters
    ----------
    path : str
        A file of results, or a folder; what is in the folder others write.
    top : int
        Classes that a table has columns for.
    has_truth : bool
        Whether it is known of some pictures what they show.
    facts : mapping of str to str
        All that the results depend on: a job is taken up with the same alone.

    Notes
    -----
    Used as a context. No results are touched before the first new ones are there. Behind each batch
    comes a checkpoint in the journal, a file beside the output that goes when all is done. What is
    no ordinary file, such as a pipe, has none. Memory does not grow with the pictures.
    """

    def __init__(self, path: str, top: int, *, has_truth: bool, facts: Mapping[str, str]) -> None:
        # Where a link leads to: a link stays one.
        self._target = Path(os.path.realpath(path))
        self._suffix = self._target.suffix.lower() if is_result_file(path) else ""
        self._results = self._target if self._suffix else None
        if self._suffix == ".npz":
            self._results = _beside(self._target, _SPOOL)
        self._has_journal = not self._target.exists() or (
            self._target.is_file() if self._suffix else self._target.is_dir()
        )
        self._top = top
        self._has_truth = has_truth
        self._facts = facts
        self._last = Checkpoint()
        self._waiting: list[PictureOutcome] = []
        self._encoder: Encoder | None = None
        self._file: BinaryIO | None = None
        self._journal: Journal | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Keep other processes off.

        Raises
        ------
        InvalidArgumentError
            If one is at work on the same output.
        """
        if self._has_journal:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            lock = _beside(self._target, _LOCK)
            held = self._stack.enter_context(locked(lock, time.perf_counter()))
            if not held and lock.exists():
                self._stack.close()
                raise InvalidArgumentError(
                    "another process is writing it", where=f"--output {self._target}"
                )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the files; what was written stays."""
        for file in (self._file, self._journal):
            if file is not None:
                file.close()
        self._stack.close()

    @property
    def journal_path(self) -> Path:
        """The file beside the output that tells how far the job has come."""
        return _beside(self._target, _JOURNAL)

    @property
    def num_kept(self) -> int:
        """Pictures from behind which this job can be taken up; 0 if it cannot."""
        return self._last.done if self._has_journal else 0

    def check_new(self) -> None:
        """Check that a new job takes no other one's place.

        Raises
        ------
        InvalidArgumentError
            If the results of one that has stopped would be lost.
        """
        if not self._has_journal or not self.journal_path.exists():
            return
        remnant = find_remnant(self.journal_path, self._results)
        if remnant.written:
            raise InvalidArgumentError(
                f"a job has stopped here behind {remnant.written:,} pictures",
                where=f"--output {self._target}",
                fix=f"Go on with --resume, or delete {self.journal_path} to begin anew",
            )

    def resume(self) -> EarlierPart:
        """Take up the job that has stopped here; nothing is done of one that has not begun.

        Raises
        ------
        InvalidArgumentError
            If it was another job.
        """
        if not self._has_journal or not self.journal_path.exists():
            return EarlierPart()
        before, _ = read_journal(self.journal_path)
        check_same_job(self.journal_path, before, self._facts)
        remnant = find_remnant(self.journal_path, self._results)
        os.truncate(self.journal_path, remnant.journal_end)
        answers = AnswerCounter()
        unusable: set[int] = set()
        _, checkpoints = read_journal(self.journal_path)
        for _, checkpoint in checkpoints:
            unusable.update(checkpoint.failed)
            for judged in checkpoint.judged if self._has_truth else ():
                answers.add(None if judged is None else Judgement(*judged))
        self._last = remnant.last
        if self._last.done:
            self._open("r+b")
        return EarlierPart(self._last.done, frozenset(unusable), answers)

    def store(self, outcomes: Sequence[PictureOutcome]) -> None:
        """Write the results of pictures that the model was given together."""
        if self._encoder is None:
            if self._has_journal:
                begin_journal(self.journal_path, self._facts)
            self._open("wb")
        assert self._encoder is not None
        crc, size = self._write(b"".join(map(self._encoder.encode, outcomes)))
        self._waiting += outcomes
        if self._journal is None or self._encoder.is_holding:
            return  # what is held is told of with what it waits for
        waiting, first = self._waiting, self._last.done
        used = [outcome for outcome in waiting if not outcome.result.error]
        checkpoint = Checkpoint(
            first + len(waiting),
            self._last.end + size,
            crc,
            tuple(first + i for i, outcome in enumerate(waiting) if outcome.result.error),
            len(used),
            tuple(
                None if outcome.judgement is None else astuple(outcome.judgement)
                for outcome in (used if self._has_truth else ())
            ),
            tuple((path, os.stat(path).st_size) for one in used for path in one.result.files),
            self._encoder.layout,
        )
        self._journal.append(checkpoint)
        self._last = checkpoint
        self._waiting.clear()

    def finish(self) -> None:
        """Make the results whole, and take the journal away."""
        if self._encoder is None:
            return
        self._write(self._encoder.rest())
        if isinstance(self._encoder, SpoolEncoder):
            self._write_archive(self._encoder)
        elif self._file is not None and self._has_journal:
            # The journal goes for good: what it tells of must not be in memory alone.
            os.fsync(self._file.fileno())
        if self._journal is not None:
            self._journal.close()
            self.journal_path.unlink()
        if self._suffix == ".npz":
            _beside(self._target, _SPOOL).unlink()

    def _open(self, mode: Literal["wb", "r+b"]) -> None:
        """Open the file of results, behind what is there already, and the journal."""
        if self._suffix == ".npz":
            self._encoder = SpoolEncoder()
        elif self._suffix == ".csv":
            has_truth, layout = self._has_truth, self._last.layout
            self._encoder = TableEncoder(self._top, has_truth=has_truth, layout=layout)
        else:
            self._encoder = LinesEncoder()
        if self._results is not None:
            self._file = self._opened(self._results, mode)
        if self._file is not None and mode == "r+b":
            self._file.truncate(self._last.end)
            self._file.seek(self._last.end)
        if self._has_journal:
            self._journal = Journal(self.journal_path)

    def _opened(self, path: Path, mode: Literal["wb", "r+b"]) -> BinaryIO:
        """Open a file; one beside the output is this job's own, and never what a link leads to."""
        if path == self._target:
            return path.open(mode)
        if mode == "wb":
            path.unlink(missing_ok=True)
            return path.open("xb")
        return open(path, mode, opener=_without_links)

    def _write(self, data: bytes) -> tuple[int, int]:
        """Write results; the checksum of the file with them, and their size."""
        if self._file is None:
            return 0, 0
        self._file.write(data)
        self._file.flush()
        return zlib.crc32(data, self._last.crc), len(data)

    def _write_archive(self, encoder: SpoolEncoder) -> None:
        """Make the archive of all arrays, which takes its place in one step."""
        assert self._results is not None
        made = _beside(self._target, _ARCHIVE) if self._has_journal else self._target
        with self._results.open("rb") as spool, self._opened(made, "wb") as file:
            write_archive(spool, encoder.types, file)
            file.flush()
            if self._has_journal:
                os.fsync(file.fileno())
        if made != self._target:
            os.replace(made, self._target)


def _without_links(path: str, flags: int) -> int:
    """Open a file that is no symbolic link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _beside(path: Path, suffix: str) -> Path:
    """A file beside another one."""
    return path.with_name(path.name + suffix)
