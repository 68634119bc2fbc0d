"""Runs a model on many pictures, side by side or several together."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from armpy.backend import Progress, report_progress
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.pictures.labels import read_labels
from armpy.cli.pictures.normalization import normalization_of
from armpy.cli.run.results import OutputReader
from armpy.cli.run.run_model import time_runs
from armpy.core.units import type_name
from armpy.errors import InvalidArgumentError, LayerValidationError
from armpy.execution import TensorSpec
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.tensor import format_shape
from armpy.types import BackendId
from armpy_tools.cli.pictures.one_picture import PictureRequest, findings_of
from armpy_tools.cli.pictures.picture_files import PictureFiles
from armpy_tools.cli.pictures.picture_result import PictureResult, PicturesReport
from armpy_tools.pictures.picture_reader import (
    InputPicture,
    in_order,
    input_of_one,
    num_readers,
    read_picture,
    shown_size,
)

_READ_AHEAD = 4
"""Pictures that wait at least for those before them, beside the ones that threads are busy with."""

_REPORTED_EVERY_S = 0.1
"""A bar is drawn no more often: it takes as long as a small network."""


class PictureRun:
    """A model at work on pictures.

    Parameters
    ----------
    model : Model
        Just loaded.
    request : PictureRequest
        With the first picture as its image.
    batch : int
        How many pictures the model gets together, where it leaves that open.
    files : PictureFiles, optional
        Files that each picture has of its own.
    num_threads : int, optional
        As the user limits them.

    Raises
    ------
    InvalidArgumentError
        If the model takes no pictures, or not so many together, or the request has other inputs.

    Notes
    -----
    A picture that goes in alone is run by the thread that has read it, so that all processors are
    busy however much of the time is the model's. A model with variables, or one that is profiled,
    is run by one thread, and so is one whose user limits threads to one.
    """

    def __init__(
        self,
        model: Model,
        request: PictureRequest,
        *,
        batch: int | None = None,
        files: PictureFiles | None = None,
        num_threads: int | None = None,
    ) -> None:
        if len(model.inputs) != 1:
            raise InvalidArgumentError(
                "pictures can only be given to a model with one input",
                where="--image",
                actual=f"{len(model.inputs)}: " + ", ".join(f"'{s.name}'" for s in model.inputs),
            )
        for option, value in {
            "--input": request.inputs.arrays,
            "--shape": request.inputs.shape_sets,
        }.items():
            if value:
                raise InvalidArgumentError(
                    f"{option} does not go with several pictures",
                    where="armpy pictures",
                    expected="--size and --batch for the model's only input",
                    fix=f"Leave {option} out, or give one picture",
                )
        self._model = model
        self._request = request
        self._spec: TensorSpec = model.inputs[0]
        self._batch = _batch_of(self._spec, batch)
        self._files = files
        self._metadata = FileMetadata(model)
        self._normalization = normalization_of(request.picture) or self._metadata.normalization(
            input_of_one(self._spec)
        )
        labels = None if request.labels is None else read_labels(request.labels)
        self._reader = OutputReader(model, labels, self._metadata, request.top)
        self._has_state = not model.is_light and bool(model.handle.loaded.graph.variables)
        self._num_readers = num_readers(num_threads)
        self._runs_when_read = self._batch == 1 and self._num_readers > 1 and not self._has_state
        self._hints: list[str] = []
        self._input = ""
        self._first: dict[str, Array] | None = None

    def run(self, pictures: Sequence[str]) -> PicturesReport:
        """Run on pictures.

        Raises
        ------
        InvalidArgumentError
            If the request does not fit the model, whatever the picture.
        """
        results: list[PictureResult] = []
        begin = reported = time.perf_counter()
        with closing(self._batches(pictures)) as batches:
            for batch in batches:
                results += self._run_batch(batch)
                now = time.perf_counter()
                if now - reported >= _REPORTED_EVERY_S or len(results) == len(pictures):
                    reported = now
                    report_progress(
                        Progress(BackendId("armpy"), "pictures", len(results), len(pictures))
                    )
        return self._report(tuple(results), time.perf_counter() - begin)

    def _batches(self, pictures: Sequence[str]) -> Generator[list[InputPicture], None, None]:
        """Pictures that the model gets together, in their order; one that is damaged is alone."""
        waiting: list[InputPicture] = []
        ahead = self._num_readers + max(_READ_AHEAD, self._batch)
        with closing(in_order(self._picture, pictures, self._num_readers, ahead)) as pictures_read:
            for picture in pictures_read:
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

    def _picture(self, path: str) -> InputPicture:
        """A picture, run where each is run alone; on one of several threads."""
        size, resize = self._request.inputs.size, self._request.picture.resize
        picture = read_picture(path, self._spec, size, resize, self._normalization)
        if picture.elements is None or not self._runs_when_read:
            return picture
        try:
            return replace(picture, outputs=self._outputs(picture.elements))
        except LayerValidationError as error:
            return replace(picture, error=self._shape_error(error))

    def _outputs(self, elements: Array) -> dict[str, Array]:
        """Return the model's outputs; nothing is left of the run before."""
        if self._has_state:
            self._model.reset_state()
        return self._model.run({self._spec.name: elements})

    def _shape_error(self, error: LayerValidationError) -> str:
        """Describe the fault of a picture that a model of open shapes does not take."""
        if self._spec.info.is_fully_shaped:
            raise error
        return str(error)

    def _run_batch(self, batch: Sequence[InputPicture]) -> list[PictureResult]:
        """Run on pictures of one shape, or report the error of each."""
        rows = [picture.elements for picture in batch if picture.elements is not None]
        if not rows:
            return _unusable(batch, batch[0].error)
        for picture in batch:
            if picture.hint and picture.hint not in self._hints:
                self._hints.append(picture.hint)
        # Always as many together: each other number would be prepared anew.
        rows += rows[-1:] * (self._batch - len(rows))
        elements = rows[0] if len(rows) == 1 else np.concatenate(rows)
        if self._first is None:
            self._first = {self._spec.name: elements}
            self._input = f"{type_name(self._spec.data_type.name)} {format_shape(elements.shape)}"
        results, error = batch[0].outputs, batch[0].error
        if results is None and not error:
            try:
                results = self._outputs(elements)
            except LayerValidationError as refusal:
                error = self._shape_error(refusal)
        if results is None:
            return _unusable(batch, error)
        return [
            self._result(picture, self._row(results, number, len(rows)))
            for number, picture in enumerate(batch)
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

    def _result(self, picture: InputPicture, results: Mapping[str, Array]) -> PictureResult:
        """Return the result of a picture by the outputs, and write its files."""
        read = self._reader.read(results)
        assert picture.elements is not None
        shown = shown_size(picture.elements)
        min_score = self._request.min_score
        findings = findings_of(self._reader, results, shown, picture.frame, min_score)
        files: list[str] = []
        if self._files is not None:
            files += self._files.keep(picture.file, results, read)
            files += self._files.draw(picture.file, read, findings, picture.frame)
        return PictureResult(picture.file, read.reports, "", findings, tuple(files))

    def _report(self, pictures: tuple[PictureResult, ...], duration_s: float) -> PicturesReport:
        """Report the observed model."""
        request, model = self._request, self._model
        timing = None
        if request.repeat is not None and self._first is not None:
            timing = time_runs(model, self._first, request.repeat)
        placement = model.placement
        return PicturesReport(
            pictures,
            self._input,
            str(placement) if placement is not None else "not known",
            duration_s,
            placed=placement,
            timing=timing,
            hints=(
                *self._hints,
                *self._metadata.hints,
            ),
            metadata=tuple(self._metadata.used),
        )


def _unusable(batch: Sequence[InputPicture], error: str) -> list[PictureResult]:
    """Results of pictures that could not be used."""
    return [PictureResult(picture.file, error=error) for picture in batch]


def _batch_of(spec: TensorSpec, wanted: int | None) -> int:
    """Return how many pictures a model gets together."""
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
