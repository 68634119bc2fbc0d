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
from armpy.cli.run.drawing import draw_picture, save_drawn
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.conversion import dequantize_array
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.cli.run.output_reader import OutputReader, ReadOutputs
    from armpy.cli.run.results import Array
    from armpy.cli.run.run_model import RunRequest
    from armpy.model import Model


def picture_inputs(
    model: Model, request: RunRequest, path: str, metadata: FileMetadata | None
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
    normalization = normalization_of(request.picture)
    if normalization is None and metadata is not None:
        normalization = metadata.normalization(spec)
    array, hint = image_input(
        image,
        spec.name,
        spec.info,
        size=request.picture.size,
        resize=request.picture.resize,
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
    real = [dequantize_array(results[spec.name], spec.info).astype(np.float64) for spec in outputs]
    labels = reader.labels
    if labels is None and reader.metadata is not None:
        labels = reader.metadata.any_labels(outputs)
    return find(real, shown, frame, labels, min_score)


def find_and_draw(
    request: RunRequest,
    reader: OutputReader,
    read: ReadOutputs,
    arrays: Mapping[str, Array],
    results: Mapping[str, Array],
) -> tuple[Findings | None, list[str]]:
    """What was found in the request's picture; paths of what was drawn, if that is asked for."""
    assert request.image is not None
    (elements,) = arrays.values()
    shown = shown_size(elements)
    findings = findings_of(reader, results, shown, Frame(), request.min_score)
    if findings is None and request.save_pictures is None:
        return None, []
    frame = Frame.of(open_image(request.image).size, shown, request.picture.resize)
    findings = findings_of(reader, results, shown, frame, request.min_score)
    if request.save_pictures is None:
        return findings, []
    drawn = draw_picture(request.image, read, findings, frame, min_score=request.min_score)
    (stem,) = file_stems([Path(request.image).stem])
    return findings, [save_drawn(request.save_pictures, stem, request.image, drawn)]
