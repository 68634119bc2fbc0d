"""Files of single pictures: their outputs in a folder each, and what was found drawn on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from armpy.cli.files import file_stems
from armpy.cli.pictures.detections import Findings, Frame
from armpy.cli.run.drawing import draw_picture, save_drawn
from armpy.cli.run.output_files import write_outputs
from armpy.cli.run.output_path import is_result_file
from armpy.cli.run.output_reader import ReadOutputs
from armpy.cli.run.results import Array


class PictureFiles:
    """Files that each picture has of its own.

    Parameters
    ----------
    output : str, optional
        A folder with a folder of arrays for each; a file for the results of all is none of these.
    drawn : str, optional
        A folder for pictures with what was found in them.
    min_score : float
        Least score of a key point that is drawn.
    """

    def __init__(
        self, output: str | None, drawn: str | None = None, min_score: float = 0.3
    ) -> None:
        self._output = None if is_result_file(output) else output
        self._drawn = drawn
        self._min_score = min_score
        self._names = Names()
        self._drawn_names = Names()

    @property
    def folders(self) -> tuple[str, ...]:
        """Where they are."""
        return tuple(folder for folder in (self._output, self._drawn) if folder is not None)

    def skip(self, picture: str) -> None:
        """Leave a picture's names to files that are there already."""
        self._names.of(picture)
        self._drawn_names.of(picture)

    def keep(self, picture: str, outputs: Mapping[str, Array], read: ReadOutputs) -> Sequence[str]:
        """Write a picture's outputs, if there is a folder for them; paths of the files."""
        if self._output is None:
            return ()
        folder = Path(self._output) / self._names.of(picture)
        return write_outputs(str(folder), outputs, read.masks)

    def draw(
        self, picture: str, read: ReadOutputs, findings: Findings | None, frame: Frame
    ) -> Sequence[str]:
        """Draw what was found in a picture, if there is a folder for that; path of the file."""
        if self._drawn is None:
            return ()
        drawn = draw_picture(picture, read, findings, frame, min_score=self._min_score)
        return [save_drawn(self._drawn, self._drawn_names.of(picture), picture, drawn)]


class Names:
    """Names for pictures' files: those of the pictures, all different."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, picture: str) -> str:
        """A name without suffix; another one for each call."""
        (stem,) = file_stems([Path(picture).stem])
        name, number = stem, self._next.get(stem.lower(), 1)
        while name.lower() in self._used:
            name, number = f"{stem}_{number}", number + 1
        self._next[stem.lower()] = number
        self._used.add(name.lower())
        return name
