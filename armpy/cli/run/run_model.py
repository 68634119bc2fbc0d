"""Runs a model on the command line's inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from armpy.cli.inputs.complete import complete_inputs
from armpy.cli.inputs.request import InputRequest
from armpy.cli.pictures.labels import read_labels
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.run.results import Array, OutputReader, OutputReport, ReadOutputs
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.profiling.quartiles import quartiles_of

if TYPE_CHECKING:
    from armpy.compiler import Alternative, Placement
    from armpy.model import Model

# A run on random numbers is as quick as its network: what reads pictures, arrays and metadata,
# or writes files, is imported where it is asked for.
# ruff: noqa: PLC0415


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request to run a model: the inputs, and what to report about the run."""

    image: str | None = None  # path of a picture, for the input that `inputs` has no value for
    inputs: InputRequest = field(default_factory=InputRequest)
    labels: str | None = None  # path of a label file; the labels in the model's file if left out
    top: int = 5  # how many classes to list
    output: str | None = None  # folder for the outputs
    repeat: int | None = None  # how many executions to time
    picture: PictureOptions = field(default_factory=PictureOptions)  # how pictures become an input

    @property
    def is_random(self) -> bool:
        """Return whether no input is given."""
        return self.image is None and not self.inputs.arrays

    def __post_init__(self) -> None:
        if self.image is None and self.picture.is_normalizing:
            raise InvalidArgumentError("--range, --mean and --std need --image")


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Duration of executions after a first one that does not count."""

    runs: int
    min_ms: float
    median_ms: float
    mean_ms: float
    low_ms: float  # half of the executions take from this
    high_ms: float  # to this: the first and the third quartile


@dataclass(frozen=True, slots=True)
class RunReport:
    """Report of a run."""

    inputs: str  # the model's inputs
    placement: str  # which backend took how many layers
    layers_by_backend: dict[str, int]
    outputs: tuple[OutputReport, ...]
    timing: RunTiming | None = None
    files: tuple[str, ...] = ()  # paths of written files
    hints: tuple[str, ...] = ()  # assumptions
    # Placements that were weighed, the cheapest first; empty if the backends' order decides.
    alternatives: tuple[Alternative, ...] = ()
    metadata: tuple[str, ...] = ()  # values taken from the metadata of the model's file
    placed: Placement | None = None  # the placement itself; None if it is not known


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """Inputs and outputs of a run, read and unread."""

    origin: str
    """The model's inputs."""

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

    `write` writes the outputs instead of `request.output`, and returns the paths of the files.
    """
    labels = None if request.labels is None else read_labels(request.labels)
    metadata = None
    if not request.is_random:  # random numbers are read without
        from armpy.cli.pictures.file_metadata import FileMetadata

        metadata = FileMetadata(model)
    inputs = complete_inputs(model, request.inputs, request.image, request.picture, metadata)
    arrays = inputs.arrays
    with inputs.shapes.explained():
        results = model.run(arrays)
    timing = None if request.repeat is None else time_runs(model, arrays, request.repeat)
    reader = OutputReader(model, labels, metadata, request.top)
    # How many things the model was given together: the first dimension that all inputs share.
    batches = {array.shape[0] if array.ndim else 1 for array in arrays.values()}
    read = reader.read(results, batches.pop() if len(batches) == 1 else 1)
    files: list[str] = []
    if write is not None:
        files += write(RunOutputs(inputs.origin, arrays, results, reader, read))
    elif request.output is not None:
        from armpy.cli.files import write_outputs

        files += write_outputs(request.output, results)
    placement = model.placement
    return RunReport(
        inputs.origin,
        str(placement) if placement is not None else "not known",
        dict(placement.layers_by_backend) if placement is not None else {},
        read.reports,
        timing,
        tuple(files),
        (*inputs.hints, *(metadata.hints if metadata else ())),
        () if placement is None else placement.alternatives,
        tuple(metadata.used) if metadata else (),
        placement,
    )


def time_runs(model: Model, arrays: dict[str, Array], repeat: int) -> RunTiming:
    """Time executions one by one; the model has been executed before."""
    durations_ms = []
    for _ in range(repeat):
        begin = time.perf_counter()
        model.run(arrays)
        durations_ms.append(1000 * (time.perf_counter() - begin))
    low, median, high = quartiles_of(durations_ms)
    return RunTiming(repeat, min(durations_ms), median, sum(durations_ms) / repeat, low, high)
