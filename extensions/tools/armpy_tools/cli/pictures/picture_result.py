"""Results of pictures among several, and the report of a run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass

if TYPE_CHECKING:
    from armpy.cli.run.results import OutputReport
    from armpy.cli.run.run_model import RunTiming
    from armpy.compiler import Placement
    from armpy_tools.pictures.detections import Findings


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
    findings : Findings, optional
        Objects or people, where the model looks for such.
    files : tuple of str
        Paths of the files written for this picture.
    """

    file: str
    outputs: tuple[OutputReport, ...] = ()
    error: str = ""
    findings: Findings | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PicturesReport:
    """Report of a run on many pictures.

    Parameters
    ----------
    pictures : tuple of PictureResult
        In the order in which they were given.
    input : str
        What each picture became.
    placement : str
    duration_s : float
        From the first picture to the last, with reading them.
    placed : Placement, optional
    timing : RunTiming, optional
        Of runs on the first pictures.
    files : tuple of str
        Paths of written files.
    hints, metadata : tuple of str
        As of `armpy.cli.run.run_model.RunReport`.
    """

    pictures: tuple[PictureResult, ...]
    input: str
    placement: str
    duration_s: float
    placed: Placement | None = None
    timing: RunTiming | None = None
    files: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """Return how many pictures could not be used."""
        return sum(bool(picture.error) for picture in self.pictures)

    @property
    def pictures_per_s(self) -> float:
        """Return how many pictures were run in a second."""
        return len(self.pictures) / self.duration_s if self.duration_s else 0.0
