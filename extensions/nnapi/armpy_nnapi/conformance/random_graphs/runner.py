"""Compares a backend with CpuRef on models that are made up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.result import CaseResult, Outcome
from armpy_conformance.workers import LostItem, available_cores, judge_in_workers
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.conformance.random_graphs.criteria import compare_closely, compare_exactly
from armpy_nnapi.conformance.random_graphs.generator import RandomModel, random_model
from armpy_nnapi.conformance.random_graphs.shrink import ModelPart, shrink, with_all_outputs
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.conformance.vectors.judge import (
    Variation,
    VectorJudge,
    data_type_of,
    operation_of,
)
from armpy_nnapi.conformance.vectors.runner import Progress, VectorsResult, collect
from armpy_nnapi.conformance.vectors.writer import write_examples
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.devices import Device, DeviceManager
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.model.model import Model

_BATCH = 20
"""Models that a worker takes at a time."""

LEAST_SHARE = 0.01
"""Share of the models in which a layer has to run on the backend: fewer prove little about it."""


class GraphJudge:
    """Makes up models and compares a backend with CpuRef on them.

    Parameters
    ----------
    folder : Path, optional
        Where failures are kept.
    """

    def __init__(
        self, backend_id: BackendId, options: RuntimeOptions | None, folder: Path | None
    ) -> None:
        is_reference = backend_id == REFERENCE_BACKEND_ID
        self._judge = VectorJudge(
            backend_id,
            options,
            compare_elements=compare_exactly if is_reference else compare_closely,
            helper=REFERENCE_BACKEND_ID,
        )
        self._folder = folder
        reference = replace(options or RuntimeOptions(), backends=[REFERENCE_BACKEND_ID])
        self._manager = DeviceManager(reference)
        self._reference = self._manager.get_device_of_backend(REFERENCE_BACKEND_ID)

    def __call__(self, seed: int) -> CaseResult:
        """Judge the model of a seed.

        Returns
        -------
        CaseResult
            FAILED with the smallest part that fails, and the file where it is kept. What
            CpuRef refuses, the backend must refuse, too.
        """
        return self.judge_model(random_model(seed), f"random_{seed}")

    def judge_model(self, model: RandomModel, name: str, *, shrinks: bool = True) -> CaseResult:
        """Judge a random model; with `shrinks`, a failing one by its smallest part.

        Parameters
        ----------
        name : str
            Name for the result, and for the file where a failure is kept.
        """
        result = self._compare(_example(name, model.description, model.inputs))
        if not result.outcome.is_bad or not shrinks:
            return result
        example = self._smallest(model, name)
        kept_note = keep(self._folder, name, example)
        shown = ", ".join(example.operations)
        return replace(result, text=f"{result.text}. Smallest part: {shown}. {kept_note}".rstrip())

    def _compare(self, example: Example) -> CaseResult:
        """Judge an example whose outputs CpuRef says."""
        expected = self._expected(example)
        results = [self._judge(Variation(expected, unknown)) for unknown in (False, True)]
        worst = next((r for r in results if r.outcome.is_bad), results[0])
        return replace(worst, case=_case(example.name))

    def _expected(self, example: Example) -> Example:
        """The example with CpuRef's outputs; a failure is expected where CpuRef fails."""
        try:
            outputs = run_model(self._manager, self._reference, example.model, example.inputs)
        except NnapiError:
            return replace(example, expects_failure=True)
        return replace(example, outputs=tuple(outputs))

    def _smallest(self, model: RandomModel, name: str) -> Example:
        """The smallest part of a failing model that fails, with CpuRef's outputs."""

        def fails(part: ModelPart) -> bool:
            return self._compare(_example(name, part.description, part.inputs)).outcome.is_bad

        whole = self._expected(_example(name, model.description, model.inputs))
        try:
            everything = with_all_outputs(model.description)
            outputs = run_model(self._manager, self._reference, everything, model.inputs)
        except NnapiError:
            return whole
        elements = dict(zip(everything.main.outputs, outputs, strict=True))
        elements.update(zip(everything.main.inputs, model.inputs, strict=True))
        part = shrink(model.description, elements, fails)
        if part is None:
            return whole
        return self._expected(_example(name, part.description, part.inputs))


def _case(name: str) -> str:
    """Id of a model's result."""
    return f"random/{name}/compared with {REFERENCE_BACKEND_ID}"


def _example(name: str, description: ModelDescription, inputs: tuple[Array | None, ...]) -> Example:
    """An example whose outputs are not known yet."""
    outputs = (None,) * len(description.main.outputs)
    return Example(name, "random", description, inputs, outputs)


def run_model(
    manager: DeviceManager,
    device: Device,
    description: ModelDescription,
    inputs: tuple[Array | None, ...],
) -> list[Array]:
    """Run a model once on one device; outputs of any dimensions.

    Raises
    ------
    NnapiError
        If the model is refused or fails.
    """
    model = Model.from_description(description, manager)
    compilation = Compilation.create_for_devices(model, [device])
    compilation.finish()
    return list(compilation(*inputs))


def keep(folder: Path | None, name: str, example: Example) -> str:
    """Write an example to a file, and say where; nothing without a folder."""
    if folder is None:
        return ""
    path = folder / f"{name}.json.gz"
    write_examples(path, [example])
    # Without a colon and a blank: the text after the last one distinguishes kinds of failures.
    return f"Kept in {path}; 'armpy conformance nnapi-vectors' runs it again"


def run_random_graphs(
    backend_id: BackendId,
    count: int,
    *,
    seed: int = 0,
    runtime_options: RuntimeOptions | None = None,
    jobs: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> VectorsResult:
    """Compare a backend with CpuRef on models that are made up.

    Parameters
    ----------
    count : int
        Number of models.
    seed : int
        Seed of the first model; the others have the numbers after it.
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options; `backends` and `registry` do not count.
    jobs : int, optional
        Processes at a time; as many as there are cores if left out.
    folder : path, optional
        Where the smallest failing part of each failure is kept as test vectors.
    progress : callable, optional
        Is given each `CaseResult` as it comes.

    Raises
    ------
    BackendUnavailableError
        If the backend cannot be used.
    """
    options = replace(runtime_options or RuntimeOptions(), registry=None, backends=None)
    subject = BackendUnderTest(backend_id, options)
    where = None if folder is None else Path(folder)
    seeds = range(seed, seed + count)
    make_judge = partial(GraphJudge, backend_id, options, where)
    results = _judge_all(seeds, make_judge, jobs or available_cores(), where)
    cases = [_case(f"random_{number}") for number in seeds]
    return collect(subject, results, cases, progress, least_share=LEAST_SHARE)


def _judge_all(
    seeds: range, make_judge: Callable[[], GraphJudge], jobs: int, folder: Path | None
) -> Iterator[CaseResult]:
    """Results of all models as they come."""
    batches = [seeds[i : i + _BATCH] for i in range(0, len(seeds), _BATCH)]
    for result in judge_in_workers(batches, make_judge, CaseResult, jobs=jobs):
        yield _crashed(result, folder) if isinstance(result, LostItem) else result


def _crashed(lost: LostItem[int], folder: Path | None) -> CaseResult:
    """The result of a model that took its process with it; it is kept as it is."""
    return crashed(random_model(lost.item), f"random_{lost.item}", lost.reason, folder)


def crashed(model: RandomModel, name: str, reason: str, folder: Path | None) -> CaseResult:
    """The result of a model that took its process with it; it is kept as it is."""
    example = _example(name, model.description, model.inputs)
    text = f"{reason}. {keep(folder, name, example)}".rstrip()
    return CaseResult(
        _case(name), operation_of(example), data_type_of(example), Outcome.CRASHED, text
    )
