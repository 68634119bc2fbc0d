"""Runs a model on many pictures, one after the other or several together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from armpy.backend import Progress, report_progress
from armpy.cli.pictures.detections import Findings, Frame
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.pictures.ground_truth import Accuracy, Classes, Judgement, Truths, accuracy_of
from armpy.cli.pictures.image_layout import shown_size
from armpy.cli.pictures.images import image_input, open_image
from armpy.cli.pictures.labels import Labels, read_labels
from armpy.cli.pictures.normalization import Normalization, normalization_of
from armpy.cli.placement_table import PlacementReport
from armpy.cli.profile.report import ProfileReport, StepReport
from armpy.cli.run.one_picture import findings_of
from armpy.cli.run.output_reader import OutputReader, ReadOutputs
from armpy.cli.run.picture_result import PictureResult
from armpy.cli.run.results import Array
from armpy.cli.run.run_model import RunRequest, RunTiming, profiled, time_runs
from armpy.errors import InvalidArgumentError, LayerValidationError
from armpy.execution import TensorSpec
from armpy.execution.arrays.conversion import dequantize_array
from armpy.model import Model
from armpy.profiling import Profiler
from armpy.tensor import format_shape
from armpy.types import BackendId

_READ_AHEAD = 4
"""Pictures that are read while the model is busy with others."""


@dataclass(frozen=True, slots=True)
class PicturesReport:
    """Report of a run on many pictures.

    Parameters
    ----------
    pictures : tuple of PictureResult
        In the order in which they were given.
    input : str
        What each picture became.
    placement : str
    duration_s : float
        From the first picture to the last, with reading them.
    accuracy : Accuracy, optional
        Where it is known what pictures show.
    placed : PlacementReport, optional
    timing : RunTiming, optional
        Of runs on the first pictures.
    files : tuple of str
        Paths of written files.
    hints, metadata : tuple of str
        As of `armpy.cli.run.run_model.RunReport`.
    steps : tuple of StepReport
    profile : ProfileReport, optional
    """

    pictures: tuple[PictureResult, ...]
    input: str
    placement: str
    duration_s: float
    accuracy: Accuracy | None = None
    placed: PlacementReport | None = None
    timing: RunTiming | None = None
    files: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    profile: ProfileReport | None = None

    @property
    def num_failed(self) -> int:
        """How many pictures could not be used."""
        return sum(bool(picture.error) for picture in self.pictures)


@dataclass(frozen=True, slots=True)
class Sink:
    """Receivers of each picture's outputs, besides the report.

    Parameters
    ----------
    keep : callable, optional
        Takes a picture's path and its outputs; returns paths of the files that it has written.
    draw : callable, optional
        Takes a picture's path, what was read of its outputs, what was found, and its frame;
        returns the path of what it has drawn.
    """

    keep: Callable[[str, Mapping[str, Array], ReadOutputs], Sequence[str]] | None = None
    draw: Callable[[str, ReadOutputs, Findings | None, Frame], str] | None = None


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture as the model takes it.

    Parameters
    ----------
    file : str
    elements : ndarray or None
        Shape of the input with one row; None if there is an error.
    frame : Frame
        What the model is shown of it.
    hint, error : str
    """

    file: str
    elements: Array | None = None
    frame: Frame = field(default_factory=Frame)
    hint: str = ""
    error: str = ""


class PictureRun:
    """A model at work on pictures.

    Parameters
    ----------
    model : Model
        Just loaded.
    request : RunRequest
        With the first picture as its image.
    batch : int
        How many pictures the model gets together, where it leaves that open.
    truths : Truths, optional
    sink : Sink

    Raises
    ------
    InvalidArgumentError
        If the model takes no pictures, or not so many together.
    """

    def __init__(
        self,
        model: Model,
        request: RunRequest,
        *,
        batch: int | None = None,
        truths: Truths | None = None,
        sink: Sink | None = None,
    ) -> None:
        if len(model.inputs) != 1:
            raise InvalidArgumentError(
                "pictures can only be given to a model with one input",
                where="--image",
                actual=f"{len(model.inputs)}: " + ", ".join(f"'{s.name}'" for s in model.inputs),
            )
        self._model = model
        self._request = request
        self._spec: TensorSpec = model.inputs[0]
        self._batch = _batch_of(self._spec, batch)
        self._truths = truths
        self._sink = Sink() if sink is None else sink
        self._metadata = FileMetadata(model)
        self._normalization: Normalization | None = normalization_of(
            request.picture
        ) or self._metadata.normalization(_one(self._spec))
        labels = None if request.labels is None else read_labels(request.labels)
        self._reader = OutputReader(
            model, labels, self._metadata, request.top, softmax=request.softmax
        )
        self._classes: Classes | None = None
        self._hints: list[str] = []
        self._input = ""
        self._first: dict[str, Array] | None = None
        self._judged: list[Judgement | None] = []

    def run(self, pictures: Sequence[str]) -> PicturesReport:
        """Run on all pictures.

        Raises
        ------
        InvalidArgumentError
            If what is asked for does not go with the model, whatever the picture.
        """
        truths = self._truths.labels_of(pictures) if self._truths else [""] * len(pictures)
        begin = time.perf_counter()
        found: list[PictureResult] = []
        for batch in self._batches(pictures):
            found += self._run_batch(batch, truths[len(found) : len(found) + len(batch)])
            report_progress(Progress(BackendId("armpy"), "pictures", len(found), len(pictures)))
        return self._report(tuple(found), time.perf_counter() - begin)

    def _batches(self, pictures: Sequence[str]) -> Iterator[list[_Picture]]:
        """Pictures that the model gets together, in their order; one that is damaged is alone."""
        waiting: list[_Picture] = []
        for picture in self._read(pictures):
            if waiting and (
                picture.elements is None
                or waiting[0].elements is None
                or picture.elements.shape != waiting[0].elements.shape
                or len(waiting) == self._batch
            ):
                yield waiting
                waiting = []
            waiting.append(picture)
        if waiting:
            yield waiting

    def _read(self, pictures: Sequence[str]) -> Iterator[_Picture]:
        """Read pictures, a few of them while the model is busy with others."""
        waiting: deque[Future[_Picture]] = deque()
        # A single thread: Pillow's warnings are held back in a way that only one may use.
        with ThreadPoolExecutor(1, "armpy-pictures") as thread:
            try:
                for path in pictures:
                    waiting.append(thread.submit(self._picture, path))
                    if len(waiting) > max(_READ_AHEAD, self._batch):
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _picture(self, path: str) -> _Picture:
        """A picture as the model takes it; what is wrong with the file is told in it."""
        try:
            image = open_image(path)
        except InvalidArgumentError as error:
            return _Picture(path, error=error.failed)
        info = _one(self._spec).info
        elements, hint = image_input(
            image,
            self._spec.name,
            info,
            size=self._request.picture.size,
            resize=self._request.picture.resize,
            normalization=self._normalization,
        )
        frame = Frame.of(image.size, shown_size(elements), self._request.picture.resize)
        return _Picture(path, elements, frame, hint)

    def _run_batch(self, batch: Sequence[_Picture], truths: Sequence[str]) -> list[PictureResult]:
        """Run on pictures of one shape, or tell what is wrong with one."""
        if any(picture.elements is None for picture in batch):
            return [
                PictureResult(picture.file, error=picture.error, truth=truth)
                for picture, truth in zip(batch, truths, strict=True)
            ]
        for picture in batch:
            if picture.hint and picture.hint not in self._hints:
                self._hints.append(picture.hint)
        rows = [picture.elements for picture in batch if picture.elements is not None]
        # Always as many together: each other number would be prepared anew.
        rows += rows[-1:] * (self._batch - len(rows))
        arrays = {self._spec.name: rows[0] if len(rows) == 1 else np.concatenate(rows)}
        if self._first is None:
            self._first = arrays
            shape = format_shape(arrays[self._spec.name].shape)
            self._input = self._spec.data_type.name + shape
        else:
            self._model.reset_state()
        try:
            results = self._model.run(arrays)
        except LayerValidationError as error:
            if self._spec.info.is_fully_shaped:
                raise
            return [
                PictureResult(picture.file, error=str(error), truth=truth)
                for picture, truth in zip(batch, truths, strict=True)
            ]
        return [
            self._result(picture, self._row(results, number, len(rows)), truth)
            for number, (picture, truth) in enumerate(zip(batch, truths, strict=True))
        ]

    def _row(self, results: Mapping[str, Array], number: int, count: int) -> dict[str, Array]:
        """The outputs of one picture of several."""
        if count == 1:
            return dict(results)
        # A dimension that is always the same is another one, even where it is as large.
        fixed = {
            spec.name for spec in self._model.outputs if spec.shape and spec.shape[0] is not None
        }
        is_open = not self._spec.info.is_fully_shaped
        for name, array in results.items():
            if not array.ndim or len(array) != count or (is_open and name in fixed):
                raise InvalidArgumentError(
                    "the output has no row for each picture",
                    where=f"output '{name}'",
                    expected=f"{count} rows",
                    actual=format_shape(array.shape),
                    fix="Leave --batch out",
                )
        return {name: array[number : number + 1] for name, array in results.items()}

    def _result(self, picture: _Picture, results: Mapping[str, Array], truth: str) -> PictureResult:
        """What the outputs say of a picture."""
        read = self._reader.read(results)
        assert picture.elements is not None
        findings = findings_of(
            self._reader,
            results,
            shown_size(picture.elements),
            picture.frame,
            self._request.min_score,
        )
        is_right = self._judge(results, read, truth) if self._truths else None
        files: list[str] = []
        if self._sink.keep is not None:
            files += self._sink.keep(picture.file, results, read)
        if self._sink.draw is not None:
            files.append(self._sink.draw(picture.file, read, findings, picture.frame))
        return PictureResult(
            picture.file, read.reports, "", truth, is_right, findings, tuple(files)
        )

    def _judge(self, results: Mapping[str, Array], read: ReadOutputs, truth: str) -> bool | None:
        """Whether a picture's best class is what it shows; None if that is not known."""
        report = read.reports[0]
        if len(read.reports) != 1 or not report.classes:
            raise InvalidArgumentError(
                "the model gives no scores of classes, by which to tell whether it is right",
                where="--truth",
                actual=", ".join(f"'{one.name}' {format_shape(one.shape)}" for one in read.reports),
            )
        spec = self._model.outputs[0]
        scores = dequantize_array(results[spec.name], spec.info).reshape(-1).astype(np.float64)
        if self._classes is None:
            self._classes = self._all_classes(read.labels.get(spec.name), scores.size)
        if not truth:
            self._judged.append(None)
            return None
        wanted = self._classes.index(truth)
        order = np.argsort(-scores, kind="stable")
        rank = int(np.flatnonzero(order == wanted)[0])
        self._judged.append(Judgement(wanted, int(order[0]), rank))
        return rank == 0

    def _all_classes(self, labels: Labels | None, num_classes: int) -> Classes:
        """The model's classes; every label of the file of truths is looked up at once."""
        assert self._truths is not None
        classes = Classes(labels, num_classes, self._truths.source)
        for _, label in self._truths.entries:
            classes.index(label)
        return classes

    def _report(self, pictures: tuple[PictureResult, ...], duration_s: float) -> PicturesReport:
        """Everything that was seen."""
        request, model = self._request, self._model
        profiler: Profiler | None = None
        if request.trace is not None:
            profiler = model.runtime.get_profiler(model.network_id)
        timing = None
        if request.repeat is not None and self._first is not None:
            timing = time_runs(model, self._first, request.repeat)
        accuracy = None
        if self._classes is not None:
            accuracy = accuracy_of(self._judged, self._classes)
        files = []
        if profiler is not None and request.trace:
            Path(request.trace).write_text(profiler.to_chrome_trace(), "utf-8")
            files.append(request.trace)
        placement = model.placement
        steps, profile = profiled(profiler)
        return PicturesReport(
            pictures,
            self._input,
            str(placement) if placement is not None else "not known",
            duration_s,
            accuracy,
            None if placement is None else PlacementReport.of(placement),
            timing,
            tuple(files),
            (*self._hints, *self._reader.hints, *self._metadata.hints),
            tuple(self._metadata.used),
            steps,
            profile,
        )


def _batch_of(spec: TensorSpec, wanted: int | None) -> int:
    """How many pictures a model gets together."""
    first = spec.shape[0] if spec.shape else 1
    if first is None:
        return wanted or 1
    if wanted not in (None, first):
        raise InvalidArgumentError(
            "the model does not take so many pictures together",
            where="--batch",
            expected=str(first),
            actual=str(wanted),
        )
    return first


def _one(spec: TensorSpec) -> TensorSpec:
    """An input as it would be for one picture."""
    if not spec.shape or spec.shape[0] is None:
        return spec
    return TensorSpec(spec.name, replace(spec.info, shape=(1, *spec.shape[1:])))
