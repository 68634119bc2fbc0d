"""Writes what comes of pictures, while they are run and at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from armpy.cli.files import file_stems
from armpy.cli.pictures.detections import Findings, Frame
from armpy.cli.run.drawing import draw_picture, save_drawn
from armpy.cli.run.output_files import write_outputs
from armpy.cli.run.output_path import is_result_file
from armpy.cli.run.output_reader import ReadOutputs
from armpy.cli.run.picture_result import PictureResult
from armpy.cli.run.result_files import write_results
from armpy.cli.run.results import Array
from armpy.cli.run.run_pictures import Sink


class PictureFiles:
    """Files of a run on pictures.

    Parameters
    ----------
    output : str, optional
        One file for the results of all, or a folder with a folder of arrays for each.
    top : int
        Classes that a table has columns for.
    drawn : str, optional
        A folder for pictures with what was found in them.
    min_score : float
        Least score of a key point that is drawn.
    """

    def __init__(
        self, output: str | None, top: int, drawn: str | None = None, min_score: float = 0.3
    ) -> None:
        self._output = output
        self._top = top
        self._drawn = drawn
        self._min_score = min_score
        self._arrays: list[Mapping[str, Array]] = []
        self._names = Names()
        self._drawn_names = Names()

    @property
    def sink(self) -> Sink:
        """What takes each picture's outputs."""
        return Sink(
            None if self._output is None else self._keep,
            None if self._drawn is None else self._draw,
        )

    def _draw(
        self, picture: str, read: ReadOutputs, findings: Findings | None, frame: Frame
    ) -> str:
        """Draw what was found in a picture; the path of the file."""
        assert self._drawn is not None
        drawn = draw_picture(picture, read, findings, frame, min_score=self._min_score)
        return save_drawn(self._drawn, self._drawn_names.of(picture), picture, drawn)

    def _keep(self, picture: str, outputs: Mapping[str, Array], read: ReadOutputs) -> Sequence[str]:
        """Write a picture's outputs, or keep them for a file of all."""
        assert self._output is not None
        if not is_result_file(self._output):
            folder = Path(self._output) / self._names.of(picture)
            return write_outputs(str(folder), outputs, read.masks)
        if self._output.lower().endswith(".npz"):
            self._arrays.append(outputs)
        return ()

    def finish(self, pictures: Sequence[PictureResult]) -> Sequence[str]:
        """Write the file of all; its path, and those of each picture's files."""
        each = [path for picture in pictures for path in picture.files]
        if self._output is None or not is_result_file(self._output):
            return each
        write_results(self._output, pictures, self._arrays, self._top)
        return [*each, self._output]


class Names:
    """Names for pictures' files: those of the pictures, all different."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, picture: str) -> str:
        """A name without suffix; another one for each call."""
        (stem,) = file_stems([Path(picture).stem])
        name, number = stem, 1
        while name.lower() in self._used:
            name, number = f"{stem}_{number}", number + 1
        self._used.add(name.lower())
        return name
