"""Networks that contract cases run: made of operation cases that the backend passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from armpy.backend import Numerics
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.ops.tolerance import compare
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.cases import sample_cases
from armpy_conformance.contract.case import NotApplicableError, ViolationError
from armpy_conformance.differential_run import (
    allowed_answer,
    as_read,
    is_value,
    other_feeds,
)
from armpy_conformance.judge import examine
from armpy_conformance.result import Outcome

_MOST_SAMPLES = 3

_APART = 0.05
"""Of the largest element: difference of answers that no tolerance covers."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A network with inputs and the right answers."""

    graph: Graph
    feeds: Mapping[str, Array]
    expected: Mapping[str, Array]
    numerics: Numerics = field(default_factory=Numerics)  # the device's declared deviations

    @property
    def operations(self) -> str:
        """Names of the layers' operations."""
        return ", ".join(dict.fromkeys(layer.operation.name for layer in self.graph.layers))

    def check(self, outputs: Mapping[str, Array], when: str) -> None:
        """Raise a `ViolationError` unless these are the right answers."""
        infos = dict(zip(self.graph.output_names, self.graph.outputs, strict=True))
        for name, wanted in self.expected.items():
            actual = allowed_answer(self.numerics, wanted, outputs[name])
            difference = compare(wanted, actual, infos[name].info)
            if difference is not None:
                raise ViolationError(
                    f"{when}, the output '{name}' of {self.operations} is wrong: {difference}"
                )

    def run(self, runtime: Runtime, network_id: int, when: str) -> None:
        """Execute a loaded network and check the answers."""
        feeds = {name: array.copy() for name, array in self.feeds.items()}
        self.check(runtime.enqueue_workload(network_id, feeds), when)


def bench(subject: BackendUnderTest, graph: Graph, feeds: Mapping[str, Array]) -> Bench:
    """A network with CpuRef's answers."""
    numerics = subject.backend.device.numerics
    feeds = as_read(numerics, feeds)
    return Bench(graph, feeds, subject.expected(graph, feeds), numerics)


def samples(subject: BackendUnderTest) -> tuple[Case, ...]:
    """A few cases of different operations that the backend passes.

    Their answers to other inputs differ, where the backend passes such cases: an answer that
    belongs to another execution shows.

    Raises
    ------
    NotApplicableError
        If it passes none: without one layer that works there is nothing to try.
    """
    sample_cases = subject.notes.get("samples")
    if sample_cases is None:
        ways = itertools.product((True, False), (True, False))
        tries = (tuple(_find_samples(subject, shaped, unlike)) for shaped, unlike in ways)
        sample_cases = subject.notes["samples"] = next(filter(None, tries), ())
    if not sample_cases:
        raise NotApplicableError("no operation case passes on this backend")
    return sample_cases


def _find_samples(subject: BackendUnderTest, are_shaped: bool, are_unlike: bool) -> Iterator[Case]:
    """Passing cases, the first of each operation, those that can be chained first.

    Parameters
    ----------
    are_shaped : bool
        Whether the outputs' shapes are known before an execution.
    are_unlike : bool
        Whether other inputs give other answers.
    """
    seen: set[str] = set()
    for chained in (True, False):
        for case in _claimed_cases(subject):
            if len(seen) == _MOST_SAMPLES:
                return
            name = case.operation.name
            if name in seen or (chained and link_of(case) is None):
                continue
            if all(info.is_fully_shaped for info in case.outputs) is not are_shaped:
                continue
            if are_unlike and not depends_on_feeds(subject, case):
                continue
            verdict = examine(subject, case)
            if verdict.result.outcome is Outcome.PASSED:
                seen.add(name)
                yield verdict.case


def _claimed_cases(subject: BackendUnderTest) -> tuple[Case, ...]:
    """Plain cases whose layers the backend says yes to, asked once for all searches."""
    claimed = subject.notes.get("claimed")
    if claimed is None:
        plain = (c for c in sample_cases() if is_plain(c) and not subject.plain_refusal(c))
        claimed = tuple(case for case in plain if subject.takes(specialized(case)))
        subject.notes["claimed"] = claimed
    return claimed


def depends_on_feeds(subject: BackendUnderTest, case: Case) -> bool:
    """Return whether a case's answers change with its inputs, in the first and in the last row."""
    if not subject.takes(specialized(case)):
        return False  # its answers are of no use
    graph, feeds = case.graph(), case.feeds()
    try:
        both = [feeds, other_feeds(graph, feeds)]
        first, other = subject.expected_each(graph, both, specialized(case))
    except ArmpyError:  # other inputs mean nothing to the operation
        return False
    return all(
        wanted.ndim > 0
        and wanted.shape == other[name].shape
        and wanted.size > 0
        and all(is_apart(wanted[row], other[name][row]) for row in (0, -1))
        for name, wanted in first.items()
    )


def is_apart(one: Array, other: Array) -> bool:
    """Return whether two arrays differ by more than any tolerance."""
    with np.errstate(all="ignore"):
        away = np.abs(one.astype(np.complex128) - other.astype(np.complex128))
        return bool((away > _APART * np.abs(one).max(initial=0)).any())


_MOST_WITH_CONSTANTS = 2


def with_constants(subject: BackendUnderTest) -> tuple[tuple[Case, Case], ...]:
    """Pairs of cases that the backend passes, and that differ in their constants alone."""
    pairs = subject.notes.get("with constants")
    if pairs is None:
        pairs = tuple(_find_with_constants(subject))
        subject.notes["with constants"] = pairs
    return tuple((case, _with_other_constants(case)) for case in pairs)


def _find_with_constants(subject: BackendUnderTest) -> Iterator[Case]:
    """Passing cases with constants that are computed with, of different operations."""
    seen: set[str] = set()
    for case in _claimed_cases(subject):
        if len(seen) == _MOST_WITH_CONSTANTS:
            return
        name = case.operation.name
        if name in seen or _with_other_constants(case) is case:
            continue
        verdict = examine(subject, case)
        if verdict.result.outcome is Outcome.PASSED:
            seen.add(name)
            yield verdict.case


def _with_other_constants(case: Case) -> Case:
    """A case with its constants' elements in reverse; the case itself if it has none to turn."""
    turned = tuple(
        replace(item, elements=item.data.reshape(-1)[::-1].reshape(item.data.shape).copy())
        if item is not None and item.is_constant and is_value(item.info.data_type)
        else item
        for item in case.inputs
    )
    pairs = zip(case.inputs, turned, strict=True)
    if all(a is b or (a and b and np.array_equal(a.data, b.data)) for a, b in pairs):
        return case
    return case.changed(inputs=turned)


def is_plain(case: Case) -> bool:
    """Return whether a case has several elements and some input at run time."""
    infos = [item.info for item in case.inputs if item is not None and not item.is_constant]
    return bool(infos) and all(info.num_elements > 1 for info in infos)


def link_of(case: Case) -> int | None:
    """Number of the input that the layer's output can be given to; None if there is none."""
    if len(case.outputs) != 1:
        return None
    output = case.outputs[0]
    for index, item in enumerate(case.inputs):
        if item is not None and not item.is_constant and _same(item.info, output):
            return index
    return None


def _same(left: TensorInfo, other: TensorInfo) -> bool:
    """Return whether two tensors hold the same kind of elements."""
    return (left.shape, left.data_type, left.quantization) == (
        other.shape,
        other.data_type,
        other.quantization,
    )


def sample_bench(subject: BackendUnderTest, case: Case) -> Bench:
    """The network of one case."""
    return bench(subject, case.graph(), case.feeds())


class ChainBuilder:
    """Builds a network in which one layer reads what another one wrote.

    Parameters
    ----------
    case : Case
        All layers are like this one's.
    link : int
        Number of the input that a layer's output is given to.

    Attributes
    ----------
    source : Value
        The input that a chain begins with.
    """

    def __init__(self, case: Case, link: int) -> None:
        self.net = Network("chain")
        self._case = case
        self._link = link
        self._num_layers = 0
        self._values = [
            None if item is None else self._add_input(number, item)
            for number, item in enumerate(case.inputs)
        ]
        source = self._values[link]
        if source is None:
            raise NotApplicableError("the input that a chain needs is left out")
        self.source: Value = source

    def _add_input(self, number: int, item: CaseInput) -> Value:
        name, info = f"in_{number}", item.info
        if not item.is_constant:
            return self.net.input(name, info)
        return self.net.constant(
            item.data, name=name, data_type=info.data_type, quantization=info.quantization
        )

    def layer(self, value: Value) -> Value:
        """Add a layer that reads a value, and return its output."""
        inputs = list(self._values)
        inputs[self._link] = value
        self._num_layers += 1
        return self._case.add_to(self.net, inputs, f"layer_{self._num_layers}")[0]

    @staticmethod
    def feeds(case: Case) -> dict[str, Array]:
        """Return the inputs of a case."""
        return {
            f"in_{number}": item.data
            for number, item in enumerate(case.inputs)
            if item is not None and not item.is_constant
        }

    def bench(self, subject: BackendUnderTest) -> Bench:
        """The network with CpuRef's answers."""
        return bench(subject, self.net.build(), self.feeds(self._case))


def chain(subject: BackendUnderTest) -> ChainBuilder:
    """Begin a network of layers that the backend runs.

    Raises
    ------
    NotApplicableError
        If no passing case has an output that it could take as an input.
    """
    for case in samples(subject):
        link = link_of(case)
        if link is not None:
            return ChainBuilder(case, link)
    raise NotApplicableError("no working operation has an output of its input's type")


def chain_of(case: Case, link: int, num_layers: int) -> Bench:
    """A chain of so many layers like a case's, with inputs and without answers."""
    builder = ChainBuilder(case, link)
    value = builder.source
    for _ in range(num_layers):
        value = builder.layer(value)
    builder.net.output("y", value)
    return Bench(builder.net.build(), builder.feeds(case), {})


def open_batches(subject: BackendUnderTest) -> tuple[Graph, list[Mapping[str, Array]]]:
    """A network whose first dimension is open, and inputs of two sizes for it.

    Raises
    ------
    NotApplicableError
        If no passing case can be opened, or the backend takes one size only.
    """
    for case in samples(subject):
        opened = _opened(case)
        if opened is not None and _takes_twice(subject, case):
            once = case.feeds()
            return opened.graph(), [once, {k: np.concatenate([v, v]) for k, v in once.items()}]
    raise NotApplicableError(
        "no operation that works has a first dimension to leave open, and is taken in another size"
    )


def _takes_twice(subject: BackendUnderTest, case: Case) -> bool:
    """Return whether the backend takes a case with inputs of twice the first dimension."""
    outputs = tuple(info.with_shape(None) for info in case.outputs)
    items = (item for item in case.inputs if item is not None and not item.is_constant)
    size = next(items).info.known_shape[0]
    twice = replace(case, inputs=_with_first(case, 2 * size), outputs=outputs)
    return subject.takes(specialize(twice.graph()))


def opened_networks(subject: BackendUnderTest) -> Iterator[tuple[Graph, Mapping[str, Array]]]:
    """Networks whose first dimension is open, each with inputs of one size: layers, and chains."""
    pairs = with_constants(subject)
    for case in dict.fromkeys((*samples(subject), *(first for first, _ in pairs))):
        opened = _opened(case)
        if opened is None:
            continue
        yield opened.graph(), case.feeds()
        link = link_of(case)
        if link is not None:
            builder = ChainBuilder(opened, link)
            builder.net.output("y", builder.layer(builder.layer(builder.layer(builder.source))))
            yield builder.net.build(), builder.feeds(case)


def _opened(case: Case) -> Case | None:
    """A case with its inputs' common first dimension open; None if it has none."""
    firsts = {
        item.info.known_shape[:1]
        for item in case.inputs
        if item is not None and not item.is_constant
    }
    if len(firsts) != 1 or firsts == {()}:
        return None
    ((size,),) = firsts
    outputs = tuple(info.with_shape(None) for info in case.outputs)
    try:
        doubled = _with_first(case, 2 * size)
        case.operation.infer([None if x is None else x.info for x in doubled], outputs)
        return replace(case, inputs=_with_first(case, None), outputs=outputs)
    except ArmpyError:
        return None


def _with_first(case: Case, size: int | None) -> tuple[CaseInput | None, ...]:
    """A case's inputs with another first dimension, constants as they are."""
    return tuple(
        item
        if item is None or item.is_constant
        else replace(item, info=item.info.with_shape((size, *item.info.known_shape[1:])))
        for item in case.inputs
    )
