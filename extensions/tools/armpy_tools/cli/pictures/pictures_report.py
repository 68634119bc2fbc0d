"""Reports of runs on many pictures, and what goes into and out of such a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass

if TYPE_CHECKING:
    from armpy.cli.profile_report import ProfileReport, StepReport
    from armpy.cli.run.run_model import RunTiming
    from armpy.compiler import Placement
    from armpy_tools.cli.pictures.picture_files import PictureFiles
    from armpy_tools.cli.pictures.picture_result import PictureOutcome, PictureResult
    from armpy_tools.pictures.ground_truth import Accuracy


@dataclass(frozen=True, slots=True)
class PicturesReport:
    """Report of a run on many pictures.

    Parameters
    ----------
    pictures : tuple of PictureResult
        In the order in which they were given: all that this process has run, or the first and the
        last of them where they are many.
    input : str
        What each picture became.
    placement : str
    duration_s : float
        From the first picture to the last, with reading them.
    total : int
        Pictures of the whole job.
    failed : int
        How many of these could not be used.
    resumed : int
        How many of these another process had done before.
    unusable : tuple of PictureResult
        Some that could not be used, and are not among `pictures`.
    accuracy : Accuracy, optional
        Of the whole job, where it is known what pictures show.
    placed : Placement, optional
    timing : RunTiming, optional
        Of runs on the first pictures.
    files : tuple of str
        Paths of written files.
    hints, metadata : tuple of str
        As of `armpy.cli.run.run_model.RunReport`.
    steps : tuple of StepReport
    profile : ProfileReport, optional
    """

    pictures: tuple[PictureResult, ...]
    input: str
    placement: str
    duration_s: float
    total: int = 0
    failed: int = 0
    resumed: int = 0
    unusable: tuple[PictureResult, ...] = ()
    accuracy: Accuracy | None = None
    placed: Placement | None = None
    timing: RunTiming | None = None
    files: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    profile: ProfileReport | None = None

    @property
    def pictures_per_s(self) -> float:
        """Return how many pictures this process has run in a second."""
        return (self.total - self.resumed) / self.duration_s if self.duration_s else 0.0


@dataclass(frozen=True, slots=True)
class Sink:
    """Receivers of what comes of each picture, besides the report.

    Parameters
    ----------
    files : PictureFiles, optional
        Files that each picture has of its own.
    store : callable, optional
        Takes the outcomes of pictures that the model was given together, as soon as they are there.
    """

    files: PictureFiles | None = None
    store: Callable[[Sequence[PictureOutcome]], None] | None = None
