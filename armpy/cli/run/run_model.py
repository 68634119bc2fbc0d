"""Runs a model on what the command line gives it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armpy.cli.pictures.labels import read_labels
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.placement_table import PlacementReport
from armpy.cli.run.output_reader import OutputReader, ReadOutputs
from armpy.cli.run.results import Array, OutputReport
from armpy.errors import InvalidArgumentError, LayerValidationError
from armpy.tensor import TensorInfo
from armpy.types import DataType

if TYPE_CHECKING:
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.cli.profile_report import ProfileReport, StepReport
    from armpy.compiler import Alternative
    from armpy.model import Model
    from armpy.profiling import Profiler

# A run on random numbers is as quick as its network: what reads pictures, arrays and metadata,
# or writes files, is imported where it is asked for.
# ruff: noqa: PLC0415


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request to run a model: inputs, and what to tell about the run.

    Parameters
    ----------
    image : str, optional
        Path of a picture.
    inputs : tuple of str
        Each ``name=file.npy``.
    labels : str, optional
        Path of a label file; the labels in the model's file if left out.
    top : int
        How many classes to list.
    output : str, optional
        Folder for the outputs.
    repeat : int, optional
        How many executions to time.
    picture : PictureOptions
        How pictures become an input.
    seed : int
        For random inputs.
    trace : str, optional
        File for a trace, where the model was loaded with profiling; none if it is empty.
    softmax : bool
        Whether scores of classes become probabilities.
    """

    image: str | None = None
    inputs: tuple[str, ...] = ()
    labels: str | None = None
    top: int = 5
    output: str | None = None
    repeat: int | None = None
    picture: PictureOptions = field(default_factory=PictureOptions)
    seed: int = 0
    trace: str | None = None
    softmax: bool = False

    def __post_init__(self) -> None:
        if self.image is not None and self.inputs:
            raise InvalidArgumentError("--image and --input do not go together")
        if self.inputs and self.picture.size:
            raise InvalidArgumentError("--size does not go with --input")
        if self.image is None and self.picture.is_normalizing:
            raise InvalidArgumentError("--range, --mean and --std need --image")


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Duration of executions after a first one that does not count.

    Parameters
    ----------
    runs : int
    min_ms, median_ms, mean_ms : float
    """

    runs: int
    min_ms: float
    median_ms: float
    mean_ms: float


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a run.

    Parameters
    ----------
    inputs : str
        What the model was given.
    placement : str
        Which backend took how many layers.
    layers_by_backend : dict of str to int
    outputs : tuple of OutputReport
    timing : RunTiming, optional
    files : tuple of str
        Paths of written files.
    hints : tuple of str
        What was assumed without knowing.
    steps : tuple of StepReport
        The slowest first; empty without profiling.
    profile : ProfileReport, optional
        Where all of the time went; None without profiling.
    alternatives : tuple of Alternative
        Placements that were weighed, the cheapest first; empty if the backends' order decides.
    metadata : tuple of str
        What was taken from the metadata of the model's file.
    placed : PlacementReport, optional
        The placement as data; None if it is not known.
    """

    inputs: str
    placement: str
    layers_by_backend: dict[str, int]
    outputs: tuple[OutputReport, ...]
    timing: RunTiming | None = None
    files: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    profile: ProfileReport | None = None
    alternatives: tuple[Alternative, ...] = ()
    metadata: tuple[str, ...] = ()
    placed: PlacementReport | None = None


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """Inputs and outputs of a run, read and unread."""

    origin: str
    """What the model was given."""

    inputs: Mapping[str, Array]
    results: Mapping[str, Array]
    reader: OutputReader
    read: ReadOutputs


def run_model(
    model: Model,
    request: RunRequest,
    write: Callable[[RunOutputs], Sequence[str]] | None = None,
) -> RunReport:
    """Run a model and describe what comes out.

    Parameters
    ----------
    model : Model
    request : RunRequest
    write : callable, optional
        Writes the outputs instead of `request.output`, and returns the paths of the files.

    Raises
    ------
    InvalidArgumentError
        If what the request names does not go with the model.
    """
    labels = None if request.labels is None else read_labels(request.labels)
    metadata = _metadata(model, request)
    arrays, origin, hints = prepare_inputs(model, request, metadata)
    results = _run(model, arrays, request)
    profiler = None
    if request.trace is not None:
        profiler = model.runtime.get_profiler(model.network_id)
    timing = None
    if request.repeat is not None:
        if profiler is not None:
            profiler.clear()  # the first execution does not count
        timing = time_runs(model, arrays, request.repeat)
    reader = OutputReader(model, labels, metadata, request.top, request.softmax)
    read = reader.read(results, _batch(arrays))
    files: list[str] = []
    if write is not None:
        files += write(RunOutputs(origin, arrays, results, reader, read))
    elif request.output is not None:
        from armpy.cli.run.output_files import write_outputs

        files += write_outputs(request.output, results)
    if profiler is not None and request.trace:
        Path(request.trace).write_text(profiler.to_chrome_trace(), "utf-8")
        files.append(request.trace)
    placement = model.placement
    return RunReport(
        origin,
        str(placement) if placement is not None else "not known",
        dict(placement.layers_by_backend) if placement is not None else {},
        read.reports,
        timing,
        tuple(files),
        (*hints, *reader.hints, *(metadata.hints if metadata else ())),
        *profiled(profiler),
        () if placement is None else placement.alternatives,
        tuple(metadata.used) if metadata else (),
        None if placement is None else PlacementReport.of(placement),
    )


def _batch(arrays: Mapping[str, Array]) -> int:
    """How many things a model is given together: the first dimension that all inputs share."""
    sizes = {array.shape[0] if array.ndim else 1 for array in arrays.values()}
    return sizes.pop() if len(sizes) == 1 else 1


def _metadata(model: Model, request: RunRequest) -> FileMetadata | None:
    """The file's metadata; None for random numbers, which are read without."""
    if request.image is None and not request.inputs:
        return None
    from armpy.cli.pictures.file_metadata import FileMetadata

    return FileMetadata(model)


def profiled(
    profiler: Profiler | None,
) -> tuple[tuple[StepReport, ...], ProfileReport | None]:
    """What a profiler has seen: the slowest steps, and where all of the time went."""
    if profiler is None:
        return (), None
    from armpy.cli.profile_report import profile_report, steps_of

    return tuple(steps_of(profiler)), profile_report(profiler)


def _run(model: Model, arrays: dict[str, Array], request: RunRequest) -> dict[str, Array]:
    """Run once; an error tells of ``--size`` where a size was guessed."""
    try:
        return model.run(arrays)
    except LayerValidationError as error:
        is_guessed = not (request.image or request.inputs or request.picture.size)
        if is_guessed and any(not spec.info.is_fully_shaped for spec in model.inputs):
            error.fix = error.fix or "The model takes several sizes; choose one with --size HxW"
        raise


def prepare_inputs(
    model: Model, request: RunRequest, metadata: FileMetadata | None = None
) -> tuple[dict[str, Array], str, list[str]]:
    """The model's inputs, where they are from, and hints.

    Raises
    ------
    InvalidArgumentError
        If a picture or an array does not go with the model.
    """
    if request.image is not None:
        from armpy.cli.pictures.images import picture_inputs

        return picture_inputs(model, request.image, request.picture, metadata)
    if request.inputs:
        from armpy.cli.files import read_inputs

        arrays = read_inputs(request.inputs, [spec.name for spec in model.inputs])
        _refuse_real_numbers(model, arrays)
        return arrays, ", ".join(request.inputs), []
    arrays = random_inputs(model, request.seed, request.picture.size)
    return arrays, f"random numbers, seed {request.seed}", []


def _refuse_real_numbers(model: Model, arrays: Mapping[str, Array]) -> None:
    """Refuse floats for a quantised input, as the model would, in the command's own words."""
    for spec in model.inputs:
        array = arrays.get(spec.name)
        is_real = array is not None and array.dtype.kind == "f"
        if is_real and spec.data_type.is_quantized and not model.quantize_inputs:
            raise InvalidArgumentError(
                "the array holds real numbers, the input is quantised",
                where=f"input '{spec.name}'",
                expected=str(spec.data_type.dtype),
                fix="Quantise them with --quantize-inputs",
            )


def random_inputs(model: Model, seed: int, size: tuple[int, int] | None = None) -> dict[str, Array]:
    """Random numbers for every input.

    Parameters
    ----------
    model : Model
    seed : int
    size : tuple of int, optional
        Height and width of images whose size is open. Other open dimensions get the
        model's default, or 1.
    """
    generator = np.random.default_rng(seed)
    shapes = _random_shapes(model, size)
    return {
        spec.name: _random(generator, spec.info, shape)
        for spec, shape in zip(model.inputs, shapes, strict=True)
    }


def _random_shapes(model: Model, size: tuple[int, int] | None) -> list[tuple[int, ...]]:
    """Shapes of random inputs."""
    if size is None and all(spec.info.is_fully_shaped for spec in model.inputs):
        return [tuple(dim or 0 for dim in spec.shape or ()) for spec in model.inputs]
    sized = {}
    if size is not None:
        from armpy.cli.pictures.image_layout import sized_shapes

        sized = sized_shapes(model.inputs, size)
    return [
        sized.get(spec.name)
        or default
        or tuple(1 if dim is None else dim for dim in spec.shape or ())
        for spec, default in zip(model.inputs, model.default_shapes, strict=True)
    ]


def _random(generator: np.random.Generator, info: TensorInfo, shape: Sequence[int]) -> Array:
    """Random elements that any model can take.

    Integers that are no quantised numbers are 0 or 1: they may be indexes. Strings are empty.
    """
    data_type = info.data_type
    if data_type.is_string:
        return data_type.zeros(shape)
    if data_type.is_float and not data_type.is_bit_pattern:
        return generator.uniform(-1.0, 1.0, shape).astype(data_type.dtype)
    if data_type.is_quantized or data_type in (DataType.UNSIGNED8, DataType.SIGNED8):
        low, high = data_type.integer_range
        return generator.integers(low, high, shape, endpoint=True).astype(data_type.dtype)
    return generator.integers(0, 2, shape).astype(data_type.dtype)


def time_runs(model: Model, arrays: dict[str, Array], repeat: int) -> RunTiming:
    """Time executions one by one; the model has been executed before."""
    durations_ms = []
    for _ in range(repeat):
        begin = time.perf_counter()
        model.run(arrays)
        durations_ms.append(1000 * (time.perf_counter() - begin))
    return RunTiming(
        repeat, min(durations_ms), float(np.median(durations_ms)), float(np.mean(durations_ms))
    )
