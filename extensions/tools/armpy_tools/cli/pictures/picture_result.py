"""Results of pictures among several, and the few of many that are shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import field

from armpy.cli.run.results import OutputReport
from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_tools.pictures.detections import Findings
from armpy_tools.pictures.ground_truth import AnswerCounter, Judgement


@dataclass(frozen=True, slots=True)
class PictureResult:
    """Result of a model for one picture.

    Parameters
    ----------
    file : str
    outputs : tuple of OutputReport
        None if there is an error.
    error : str
        Why the picture could not be used; empty if it could.
    truth : str
        Its label, as a text or a number; empty if it has none.
    is_right : bool, optional
        Whether the best class is that; None if nothing is known, or there is an error.
    findings : Findings, optional
        Objects or people, where the model looks for such.
    files : tuple of str
        Paths of the files written for this picture.
    """

    file: str
    outputs: tuple[OutputReport, ...] = ()
    error: str = ""
    truth: str = ""
    is_right: bool | None = None
    findings: Findings | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PictureOutcome:
    """Outcome of one picture: its result, and the parts of the result.

    Parameters
    ----------
    result : PictureResult
    outputs : mapping of str to ndarray, optional
        As the model gives them; None if there is an error.
    judgement : Judgement, optional
        None if the picture has no label, or there is an error.
    """

    result: PictureResult
    outputs: Mapping[str, Array] | None = None
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """Part of a job that another process has done.

    Parameters
    ----------
    done : int
        Pictures.
    answers : AnswerCounter
        Theirs.
    """

    done: int = 0
    answers: AnswerCounter = field(default_factory=AnswerCounter)


class ShownResults:
    """The first and the last of many results: what a table shows, and all that is kept.

    Parameters
    ----------
    most : int
        How many of the first, and how many of the last.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.first: list[PictureResult] = []
        self.last: deque[PictureResult] = deque(maxlen=most)
        self.unusable: list[PictureResult] = []
        """The first ones with an error of those that are among neither."""

        self.count = 0

    def add(self, result: PictureResult) -> None:
        """Take in the next result."""
        self.count += 1
        if len(self.first) < self._most:
            self.first.append(result)
            return
        if len(self.last) == self._most and len(self.unusable) < self._most:
            pushed_out = self.last[0]
            if pushed_out.error:
                self.unusable.append(pushed_out)
        self.last.append(result)
