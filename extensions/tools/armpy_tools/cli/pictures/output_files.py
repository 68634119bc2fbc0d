"""Writes results of one run: to a file for results, or each output and mask to a folder."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.cli.files import write_outputs, writing
from armpy.cli.run.results import Mask
from armpy.cli.run.run_model import RunOutputs
from armpy.ops.operation import Array
from armpy_tools.cli.pictures.output_path import is_result_file
from armpy_tools.cli.pictures.picture_result import PictureResult
from armpy_tools.cli.pictures.result_file import write_results
from armpy_tools.pictures.masks import write_mask


def write_run(path: str, outputs: RunOutputs, top: int) -> list[str]:
    """Write the outputs of one run to a file or a folder; paths of the files.

    `top` is the number of classes that a file has columns for.
    """
    if not is_result_file(path):
        return write_outputs_and_masks(path, outputs.results, outputs.read.masks)
    write_results(path, [PictureResult(outputs.origin, outputs.read.reports)], top)
    return [path]


def write_outputs_and_masks(
    folder: str, arrays: Mapping[str, Array], masks: Mapping[str, Mask]
) -> list[str]:
    """Write each output as ``.npy`` and each mask as a coloured ``.png`` besides; their paths."""
    written: list[str] = []
    for name, path in zip(arrays, write_outputs(folder, arrays), strict=True):
        written.append(path)
        if name in masks:
            written.append(f"{path.removesuffix('.npy')}.png")
            with writing(written[-1]):
                write_mask(written[-1], masks[name])
    return written
