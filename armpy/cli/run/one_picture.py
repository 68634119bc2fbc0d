"""One picture as the input of a model, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armpy.cli.files import file_stems
from armpy.cli.pictures.detections import Findings, Frame, find
from armpy.cli.pictures.image_layout import shown_size
from armpy.cli.pictures.images import image_input, open_image
from armpy.cli.pictures.normalization import normalization_of
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.run.drawing import draw_picture, save_drawn
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.conversion import dequantize_array
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.cli.run.output_reader import OutputReader, ReadOutputs
    from armpy.cli.run.results import Array
    from armpy.model import Model


_LEAST_NDIM = 3
"""Of some output in every form that tells of places: most models are told apart without a look at
their elements."""


def picture_inputs(
    model: Model, path: str, options: PictureOptions, metadata: FileMetadata | None
) -> tuple[dict[str, Array], str, list[str]]:
    """A picture as the model's only input, where it is from, and hints.

    Raises
    ------
    InvalidArgumentError
        If the model has several inputs, or the picture does not go with it.
    """
    if len(model.inputs) != 1:
        raise InvalidArgumentError(
            "a picture can only be given to a model with one input",
            where="--image",
            actual=f"{len(model.inputs)}: " + ", ".join(f"'{s.name}'" for s in model.inputs),
            fix="Give each input with --input name=file.npy",
        )
    spec = model.inputs[0]
    image = open_image(path)
    normalization = normalization_of(options)
    if normalization is None and metadata is not None:
        normalization = metadata.normalization(spec)
    array, hint = image_input(
        image,
        spec.name,
        spec.info,
        size=options.size,
        resize=options.resize,
        normalization=normalization,
    )
    origin = f"{path}, {image.width}x{image.height} pixels, as {spec.data_type.name}"
    return {spec.name: array}, origin + format_shape(array.shape), [hint] if hint else []


def findings_of(
    reader: OutputReader,
    results: Mapping[str, Array],
    shown: tuple[int, int],
    frame: Frame,
    min_score: float,
) -> Findings | None:
    """What the outputs tell of places in a picture; see `armpy.cli.pictures.detections.find`.

    Labels are the user's, or those of any output of the file.
    """
    outputs = reader.model.outputs
    if all(results[spec.name].ndim < _LEAST_NDIM for spec in outputs):
        return None
    real = [dequantize_array(results[spec.name], spec.info).astype(np.float64) for spec in outputs]
    labels = reader.labels
    if labels is None and reader.metadata is not None:
        labels = reader.metadata.any_labels(outputs)
    return find(real, shown, frame, labels, min_score)


def find_and_draw(
    path: str,
    resize: str,
    reader: OutputReader,
    read: ReadOutputs,
    arrays: Mapping[str, Array],
    results: Mapping[str, Array],
    *,
    min_score: float,
    folder: str | None,
) -> tuple[Findings | None, list[str]]:
    """What was found in a picture; paths of what was drawn, if there is a folder for that."""
    (elements,) = arrays.values()
    shown = shown_size(elements)
    findings = findings_of(reader, results, shown, Frame(), min_score)
    if findings is None and folder is None:
        return None, []
    frame = Frame.of(open_image(path).size, shown, resize)
    findings = findings_of(reader, results, shown, frame, min_score)
    if folder is None:
        return findings, []
    drawn = draw_picture(path, read, findings, frame, min_score=min_score)
    (stem,) = file_stems([Path(path).stem])
    return findings, [save_drawn(folder, stem, path, drawn)]
