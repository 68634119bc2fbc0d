"""Result of one picture among several."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.cli.pictures.detections import Findings
from armpy.cli.run.results import OutputReport


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
        What it shows, in words or a number; empty if nothing is known of it.
    is_right : bool, optional
        Whether the best class is that; None if nothing is known, or there is an error.
    findings : Findings, optional
        Objects or people, where the model looks for such.
    files : tuple of str
        Paths of what was written for this picture.
    """

    file: str
    outputs: tuple[OutputReport, ...] = ()
    error: str = ""
    truth: str = ""
    is_right: bool | None = None
    findings: Findings | None = None
    files: tuple[str, ...] = ()
