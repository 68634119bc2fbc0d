"""Writes the outputs of one run, each to a file of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from armpy.cli.files import file_stems
from armpy.cli.run.results import Array
from armpy.execution.arrays.conversion import as_stored


def write_outputs(folder: str, arrays: Mapping[str, Array]) -> list[str]:
    """Write each output as ``.npy``; paths of the files."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for array, stem in zip(arrays.values(), file_stems(arrays), strict=True):
        written.append(str(target / f"{stem}.npy"))
        # Files of NumPy's have no small floats: readers get the same bits with any packages.
        # Strings are of NumPy's own type, as objects would have to be pickled.
        stored = array.astype(np.str_) if array.dtype.hasobject else as_stored(array)
        np.save(written[-1], stored, allow_pickle=False)
    return written
