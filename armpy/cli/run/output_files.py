"""Writes what came of one run: to a file for results, or each output to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from armpy.cli.files import file_stems
from armpy.cli.pictures.masks import write_mask
from armpy.cli.run.jobs.result_file import ResultFile
from armpy.cli.run.output_path import is_result_file
from armpy.cli.run.output_reader import ReadOutputs
from armpy.cli.run.picture_result import PictureOutcome, PictureResult
from armpy.cli.run.results import Array, Mask
from armpy.execution.arrays.conversion import as_stored


def write_run(
    path: str, results: Mapping[str, Array], read: ReadOutputs, origin: str, top: int
) -> list[str]:
    """Write the outputs of one run to a file or a folder; paths of the files.

    Parameters
    ----------
    path : str
    results : mapping of str to ndarray
    read : ReadOutputs
    origin : str
        What the model was given.
    top : int
        Classes that a file has columns for.
    """
    if not is_result_file(path):
        return write_outputs(path, results, read.masks)
    with ResultFile(path, top, has_truth=False) as output:
        output.store([PictureOutcome(PictureResult(origin, read.reports), results)])
        output.finish()
    return [path]


def write_outputs(folder: str, arrays: Mapping[str, Array], masks: Mapping[str, Mask]) -> list[str]:
    """Write each output as ``.npy`` and each mask as a coloured ``.png`` besides.

    Returns
    -------
    list of str
        Paths of the files.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for (name, array), stem in zip(arrays.items(), file_stems(arrays), strict=True):
        written.append(str(target / f"{stem}.npy"))
        # Files of NumPy's have no small floats: readers get the same bits with any packages.
        # Strings are of NumPy's own type, as objects would have to be pickled.
        stored = array.astype(np.str_) if array.dtype.hasobject else as_stored(array)
        np.save(written[-1], stored, allow_pickle=False)
        if name in masks:
            written.append(str(target / f"{stem}.png"))
            write_mask(written[-1], masks[name])
    return written
