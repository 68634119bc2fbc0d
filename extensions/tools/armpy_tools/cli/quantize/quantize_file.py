"""Quantises a model file with data from files, as the command line says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from armpy import ModelMetadata
from armpy.cli.inputs.complete import said_shapes
from armpy.cli.inputs.request import InputRequest
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.pictures.images import image_input, open_image
from armpy.cli.pictures.normalization import normalization_of
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.registry import find_origin, registry_of
from armpy.cli.runtime import make_runtime
from armpy.cli.values import Shapes
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.graph import Graph
from armpy.model import begins_prepared, choose_shapes, dimension_names_of
from armpy.plugins.hooks.model_file import open_model_file
from armpy_tools.pictures.find import find_pictures
from armpy_tools.quantize import (
    QuantizedModel,
    QuantizeOptions,
    QuantizeReport,
)
from armpy_tools.quantize.data import read_samples
from armpy_tools.quantize.making import quantize

if TYPE_CHECKING:
    from armpy.model import Model, ModelOrigin
    from armpy.ops.operation import Array

_ARRAYS = (".npz", ".npy")
"""Suffixes of files of arrays; another file is taken for a picture."""

_LEAST_SQNR_DB = 10.0
"""Below this ratio, noise is a third of an output's signal or more."""


@dataclass(frozen=True, slots=True)
class QuantizeRequest:
    """Request to quantise a model with given data; fields are the command's options."""

    data: str | None
    output: str
    scheme: str
    method: str
    percentile: float
    keep_float: tuple[str, ...]
    io: str
    per_tensor: bool
    equalize: bool
    no_bias_correction: bool
    limit: int | None
    judge: int
    inputs: InputRequest = field(default_factory=InputRequest)
    picture: PictureOptions = field(default_factory=PictureOptions)

    @property
    def options(self) -> QuantizeOptions:
        """Return the options of the library."""
        return QuantizeOptions(
            self.scheme,
            self.method,
            self.percentile,
            per_channel=not self.per_tensor,
            equalize=self.equalize,
            correct_bias=not self.no_bias_correction,
            keep_float=self.keep_float,
            io=self.io,
        )


@dataclass(frozen=True, slots=True)
class QuantizeResult:
    """Files and report of a quantised model."""

    model: str  # paths
    output: str
    model_bytes: int  # sizes of the files
    output_bytes: int
    report: QuantizeReport
    hints: tuple[str, ...] = ()  # assumptions
    metadata: tuple[str, ...] = ()  # taken from the model's file

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the quantised model may not be of use, each with the remedy."""
        return tuple(_warnings(self.report))


def _warnings(report: QuantizeReport) -> Iterator[str]:
    """Warn of few samples, and of outputs that are not those of the float model."""
    yield from report.data_warnings()
    bad = [output for output in report.outputs if not output.sqnr_db >= _LEAST_SQNR_DB]
    if bad:
        worst = min(bad, key=lambda output: output.sqnr_db)
        yield (
            f"output '{worst.name}' has a signal to noise ratio of {worst.sqnr_db:.1f} dB. "
            f"Expected {_LEAST_SQNR_DB:.0f} dB or more. Check that --data is typical and prepared "
            "as the model expects, try --scheme int16x8, or leave the least accurate layers as "
            "they are with --keep-float LAYER"
        )


def quantize_file(load_request: CliLoadRequest, request: QuantizeRequest) -> QuantizeResult:
    """Quantise a model's file and write what comes of it.

    Raises
    ------
    InvalidArgumentError
        If the data do not go with the model, or there is nothing to quantise.
    """
    if begins_prepared(load_request.model):
        raise InvalidArgumentError(
            "the file is prepared, and cannot be quantised",
            where=load_request.model,
            fix="Give the file that it was made of",
        )
    if request.data is None and request.options.needs_data:
        raise InvalidArgumentError(
            "ranges of activations need data",
            where=f"--scheme {request.scheme}",
            fix="Give typical inputs with --data FOLDER, or choose --scheme float16 or dynamic",
        )
    registry = registry_of(load_request)
    origin = find_origin(load_request, registry)
    network = origin.parse(open_model_file(load_request.model), load_request.options.signature)
    graph = network if isinstance(network, Graph) else network.build()
    keep_open = origin.front_end.name == "tflite"
    shapes = _shapes(graph, request, origin, load_request.options.signature, keep_open=keep_open)
    metadata = FileMetadata(cast("Model", _FileModel(origin, load_request.options.signature)))
    hints: list[str] = []
    data: object = request.data
    pictures = _pictures(request.data)
    if pictures:
        data = _image_samples(graph, pictures[: request.limit], request, metadata, hints)
    with make_runtime(load_request, registry) as runtime:
        quantized: QuantizedModel = quantize(
            graph,
            data,  # type: ignore[arg-type]  # a path, samples or nothing
            options=request.options,
            runtime=runtime,
            shapes=shapes,
            limit=request.limit,
            judge_limit=request.judge,
            keep_open=keep_open,
        )
        size = quantized.save(request.output, runtime=runtime, like=load_request.model)
    hints += metadata.hints
    return QuantizeResult(
        load_request.model,
        request.output,
        os.path.getsize(load_request.model),
        size,
        quantized.report,
        tuple(dict.fromkeys(hints)),
        tuple(metadata.used),
    )


def _shapes(
    graph: Graph,
    request: QuantizeRequest,
    origin: ModelOrigin,
    signature: str | None,
    *,
    keep_open: bool,
) -> Shapes:
    """Shapes of inputs that the command says, and unless they stay open, of all others.

    Those of arrays are as good as said.
    """
    specs = [TensorSpec(value.name, value.info) for value in graph.inputs]
    shapes = said_shapes(specs, request.inputs)
    if keep_open:
        return shapes
    is_open = not all(value.info.is_fully_shaped for value in graph.inputs)
    if is_open and request.data is not None and not _pictures(request.data):
        (first,) = read_samples(graph, request.data, limit=1, is_quiet=True)
        arrays = zip(specs, first, strict=True)
        shapes = {spec.name: array.shape for spec, array in arrays} | dict(shapes)
    return choose_shapes(
        specs,
        graph.default_shapes,
        shapes,
        lambda: dimension_names_of(origin.metadata(signature)),
    ).by_name


@dataclass(frozen=True, slots=True)
class _FileModel:
    """A model as far as its metadata go: nothing is loaded for these."""

    origin: ModelOrigin
    signature: str | None

    @property
    def metadata(self) -> ModelMetadata:
        """Return the metadata of the file."""
        return self.origin.metadata(self.signature)


def _pictures(data: str | None) -> list[Path]:
    """The picture, or those in a folder, as `armpy run` finds them; none if there are arrays."""
    if data is None:
        return []
    if not os.path.isdir(data):
        return [] if data.endswith(_ARRAYS) else [Path(data)]
    has_arrays = any(Path(data).glob("*.npy"))
    try:
        paths = [Path(path) for path in find_pictures([data])]
    except InvalidArgumentError as error:
        if has_arrays:
            return []
        raise InvalidArgumentError(
            "there are neither pictures nor arrays in the folder",
            where=f"--data {data}",
            expected="pictures such as .png, there or in its folders, or .npy files there",
            fix="Name an .npz file itself",
        ) from error
    if has_arrays:
        raise InvalidArgumentError(
            "there are both pictures and arrays in the folder",
            where=f"--data {data}",
            actual=f"{len(paths)} pictures, and .npy files",
            fix="Put one kind into a folder of its own",
        )
    return paths


def _image_samples(
    graph: Graph,
    files: Sequence[Path],
    request: QuantizeRequest,
    metadata: FileMetadata,
    hints: list[str],
) -> Iterator[dict[str, Array]]:
    """A sample of each picture."""
    if len(graph.inputs) != 1:
        raise InvalidArgumentError(
            "pictures can only be given to a model with one input",
            where="--data",
            actual=f"{len(graph.inputs)}: " + ", ".join(f"'{v.name}'" for v in graph.inputs),
            fix="Give an .npz file with an array for each input",
        )
    name, info = graph.inputs[0].name, graph.inputs[0].info
    normalization = normalization_of(request.picture) or metadata.normalization(
        TensorSpec(name, info)
    )
    for file in files:
        array, hint = image_input(
            open_image(str(file)),
            name,
            info,
            size=request.inputs.size,
            resize=request.picture.resize,
            normalization=normalization,
        )
        if hint:
            hints.append(hint)
        yield {name: array}
