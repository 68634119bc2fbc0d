"""Layers with inputs and CpuRef's outputs, many more than the conformance kit has.

They say whether a mutation that the kit let through changes any result at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from armpy_reference.workload import ReferenceWorkload

from armpy.backend import ITensorHandle, WorkloadInfo
from armpy.errors import ArmpyError
from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.comparison.seeded_values import Values
from armpy_conformance.sampling.case_template import CaseTemplate, Scale
from armpy_nnapi.conformance.random_graphs.generator import random_model
from armpy_nnapi.conformance.random_graphs.runner import run_model
from armpy_nnapi.conformance.vectors.example import read_examples
from armpy_nnapi.devices import DeviceManager

_LARGEST_BYTES = 1 << 20
"""Layers with more elements than fit into these are not kept."""


_SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.5, 1.0, -1.0, 1e-40, 1e-20, -1e-20, 88.0, -104.0, 1e20, -3e38)
_UNUSUAL = (float("inf"), float("-inf"), float("nan"))
_SCALES = (1.0, 0.7, 1e-3, 3.3e-6, 37.0, 1e6)


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one layer.

    Parameters
    ----------
    operation : Operation
    info : WorkloadInfo
    inputs : tuple of (ndarray or None)
    outputs : tuple of ndarray
    """

    operation: Operation
    info: WorkloadInfo
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array, ...]


class Corpus:
    """Executions by operation.

    Parameters
    ----------
    most : int
        Executions that are kept of each operation and each source.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._runs: dict[str, list[Run]] = {}
        self._before: Counter[str] = Counter()

    def of(self, operations: Iterable[str]) -> Iterator[Run]:
        """Executions of some operations."""
        for name in sorted(operations):
            yield from self._runs.get(name, ())

    def counts(self) -> Counter[str]:
        """Number of executions by operation."""
        return Counter({name: len(runs) for name, runs in self._runs.items()})

    def add_cases(self, cases: Iterable[Case]) -> None:
        """Run conformance cases."""
        subject = BackendUnderTest(REFERENCE_BACKEND_ID)
        with self._recording():
            for case in cases:
                try:
                    subject.expected(case.graph(), case.feeds())
                except ArmpyError:
                    continue  # elements or scales that the operation refuses

    def add_templates(self, templates: Iterable[CaseTemplate], seeds: range) -> None:
        """Run the kit's templates with other elements, with extreme ones, and other scales."""
        for template in templates:
            for seed in seeds:
                try:
                    self.add_cases(list(_varied(template, seed).cases(seed)))
                except ArmpyError:
                    continue  # as above

    def add_random_models(self, seeds: range) -> None:
        """Run models that are made up."""
        options = RuntimeOptions(backends=[REFERENCE_BACKEND_ID])
        manager = DeviceManager(options)
        device = manager.get_device_of_backend(REFERENCE_BACKEND_ID)
        with self._recording():
            for seed in seeds:
                model = random_model(seed)
                try:
                    run_model(manager, device, model.description, model.inputs)
                except ArmpyError:
                    continue  # models that CpuRef refuses, too

    def add_vectors(self, folder: Path) -> None:
        """Run NNAPI's published examples from a folder of test vectors."""
        manager = DeviceManager(RuntimeOptions(backends=[REFERENCE_BACKEND_ID]))
        device = manager.get_device_of_backend(REFERENCE_BACKEND_ID)
        with self._recording():
            for example in read_examples(folder):
                try:
                    run_model(manager, device, example.model, example.inputs)
                except ArmpyError:
                    continue  # examples that have to be refused

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Keep what CpuRef's workloads are given and give."""
        self._before = self.counts()
        with recording(self._keep):
            yield

    def _keep(self, run: Run) -> None:
        """Keep an execution if it is small and there are not too many of its operation."""
        runs = self._runs.setdefault(run.operation.name, [])
        size_bytes = sum(a.nbytes for a in (*run.inputs, *run.outputs) if a is not None)
        room = self._most + self._before[run.operation.name] - len(runs)
        if room > 0 and size_bytes <= _LARGEST_BYTES:
            runs.append(run)


@contextmanager
def recording(keep: Callable[[Run], None]) -> Iterator[None]:
    """Pass the inputs and outputs of CpuRef's workloads to a function.

    Parameters
    ----------
    keep : callable
        Is given each execution.
    """
    execute = ReferenceWorkload.execute

    def recorded(
        workload: ReferenceWorkload[Operation],
        inputs: Sequence[ITensorHandle | None],
        outputs: Sequence[ITensorHandle],
    ) -> None:
        sources = tuple(None if h is None else _copied(h) for h in inputs)
        execute(workload, inputs, outputs)
        targets = tuple(_copied(handle) for handle in outputs)
        keep(Run(workload.operation, workload.info, sources, targets))

    ReferenceWorkload.execute = recorded  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        ReferenceWorkload.execute = execute  # type: ignore[method-assign]


def _copied(handle: ITensorHandle) -> Array:
    """A copy of a handle's elements."""
    elements = np.array(handle.map())
    handle.unmap()
    return elements


def _extreme(values: Values) -> Values:
    """A third of the elements at the ends of the type's range, or at numbers that are special."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        array = values(rng, info)
        data_type = info.data_type
        if data_type is DataType.BOOLEAN or data_type is DataType.BFLOAT16 or not array.size:
            return array
        if data_type.is_float:
            choices = np.array(_SPECIAL if rng.random() < 0.5 else (*_SPECIAL, *_UNUSUAL))
        else:
            low, high = data_type.integer_range
            middle = info.zero_point if data_type.is_quantized else 0
            choices = np.array([low, low + 1, high - 1, high, middle, middle + 1, middle - 1])
            choices = np.clip(choices, low, high)
        with np.errstate(over="ignore"):
            special = rng.choice(choices, array.shape).astype(array.dtype)
        return np.where(rng.random(array.shape) < 1 / 3, special, array)

    return make


def _varied(template: CaseTemplate, seed: int) -> CaseTemplate:
    """A template with extreme elements, or with other scales, as the seed says."""
    values = tuple(template.values)
    if seed % 4 == 1:
        return template
    if seed % 4 == 2:
        return replace(template, values=(_extreme(values[0]), *(values[1:] or values)))
    rng = np.random.default_rng(seed)
    scales = tuple(_another(rng, scale) for scale in template.scales)
    output = None if template.output is None else _another(rng, template.output)
    if seed % 8 == 7:
        values = (_extreme(values[0]), *(values[1:] or values))
    return replace(template, values=values, scales=scales, output=output)


def _another(rng: np.random.Generator, scale: Scale) -> Scale:
    """Some other scale, as often near the given one as anywhere."""
    step = scale.step * float(rng.uniform(0.3, 3.0))
    if rng.random() < 0.5:
        step = float(rng.choice(_SCALES))
    return Scale(step, float(rng.choice((-1.0, -0.3, 0.0, 0.4, 1.0))))
