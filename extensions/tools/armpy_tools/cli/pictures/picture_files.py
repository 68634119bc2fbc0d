"""Files of single pictures: their outputs in a folder each, and the findings drawn on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from armpy.cli.files import file_stems, writing
from armpy.cli.run.results import ReadOutputs
from armpy.ops.operation import Array
from armpy_tools.cli.pictures.output_files import write_outputs_and_masks
from armpy_tools.cli.pictures.output_path import is_result_file
from armpy_tools.pictures.detections import Findings, Frame
from armpy_tools.pictures.drawing import draw_picture, save_drawn


class PictureFiles:
    """Files that each picture has of its own.

    Parameters
    ----------
    pictures : sequence of str
        Paths of all.
    output : str, optional
        A folder with a folder of arrays for each; a file for the results of all is none of these.
    drawn : str, optional
        A folder for pictures with the findings drawn on them.
    min_score : float
        Least score of a key point that is drawn.
    """

    def __init__(
        self,
        pictures: Sequence[str],
        output: str | None,
        drawn: str | None = None,
        min_score: float = 0.3,
    ) -> None:
        self._output = None if is_result_file(output) else output
        self._drawn = drawn
        self._min_score = min_score
        self.names = picture_names(pictures)

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders."""
        return tuple(folder for folder in (self._output, self._drawn) if folder is not None)

    def keep(self, picture: str, outputs: Mapping[str, Array], read: ReadOutputs) -> Sequence[str]:
        """Write a picture's outputs, if there is a folder for them; paths of the files."""
        if self._output is None:
            return ()
        folder = Path(self._output) / self.names[picture]
        return write_outputs_and_masks(str(folder), outputs, read.masks)

    def draw(
        self, picture: str, read: ReadOutputs, findings: Findings | None, frame: Frame
    ) -> Sequence[str]:
        """Draw the findings on a picture, if there is a folder for that; return the file's path."""
        if self._drawn is None:
            return ()
        drawn = draw_picture(picture, read, findings, frame, min_score=self._min_score)
        with writing(self._drawn):
            return [save_drawn(self._drawn, self.names[picture], picture, drawn)]


def picture_names(pictures: Iterable[str]) -> dict[str, str]:
    """Names without suffix for pictures' files, by paths: those of the pictures, all different."""
    used: set[str] = set()
    numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    for picture in dict.fromkeys(pictures):
        (stem,) = file_stems([Path(picture).stem])
        name, number = stem, numbers.get(stem.lower(), 1)
        while name.lower() in used:
            name, number = f"{stem}_{number}", number + 1
        numbers[stem.lower()] = number
        used.add(name.lower())
        names[picture] = name
    return names
