"""Rules about networks that differ in their contents alone, and executions in a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from armpy.compiler import specialize
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.contract.alike import variants
from armpy_conformance.contract.case import NothingToKeepError
from armpy_conformance.contract.demanding import enlarged, enlarged_bytes
from armpy_conformance.contract.driven import Driven, backend_of_runtime
from armpy_conformance.contract.every_operation import one_of_each, unlike_benches
from armpy_conformance.contract.networks import (
    Bench,
    bench,
    is_apart,
    sample_bench,
    samples,
    with_constants,
)
from armpy_conformance.differential_run import is_value, other_feeds

_MOST = 8
"""Networks that are varied; each variant is loaded several times."""

_EXECUTIONS = 30
"""Executions of one network, of which the third and the last are the ones that caches change."""


def networks_differ_in_one_element(subject: BackendUnderTest) -> None:
    """Networks that differ in one element, scale or attribute have answers of their own.

    Notes
    -----
    They have the same names and shapes: what a backend keeps has to be found by all that it
    depends on.
    """
    has_any = False
    constants = [case for case, _ in with_constants(subject)]
    for case in itertools.islice(dict.fromkeys((*constants, *one_of_each(subject))), _MOST):
        trials = list(_unlike(subject, [case, *_alike(subject, case)]))
        if len(trials) > 1:
            has_any = True
            _in_every_order(subject, trials)
    if not has_any:
        raise NothingToKeepError("none of its networks can be changed in one place")


def _alike(subject: BackendUnderTest, case: Case) -> Iterator[Case]:
    """The case with one element of a constant, one scale, or one attribute changed."""
    candidates = [*_other_elements(case), *_other_scales(case)]
    for candidate in candidates:
        with suppress(ArmpyError):  # the operation's rules forbid it
            if subject.takes(specialize(candidate.graph())):
                yield candidate
    yield from variants(subject, case)[1:4]


def _other_elements(case: Case) -> Iterator[Case]:
    """The case with one element of each constant changed, in each of a few places."""
    for index, item in enumerate(case.inputs):
        if item is None or not item.is_constant or not is_value(item.info.data_type):
            continue
        for place in _places(item.data):
            yield _with_input(case, index, replace(item, elements=_changed(item.data, place)))


def _places(elements: Array) -> list[int]:
    """The first, the middle and the last element: a cache may look at some of them alone.

    Of many elements also two that lie on no even steps, as a cache may look at a sample.
    """
    size = elements.size
    places = {0, size // 2, size - 1} if size else set()
    if size > _MANY:
        places |= {size * 5 // 13 | 1, size * 11 // 17 | 1}
    return sorted(places)


def _changed(elements: Array, place: int) -> Array:
    """A copy of a tensor's elements with another one in one place."""
    data = elements.copy()
    if data.dtype == np.bool_:
        data.flat[place] = not data.flat[place]
    elif data.dtype.kind == "f":
        data.flat[place] += np.asarray(3, data.dtype)
    else:
        data.flat[place] = -64 if data.flat[place] > 0 and data.dtype.kind == "i" else 63
    return data


def _with_input(case: Case, index: int, item: CaseInput) -> Case:
    inputs = (*case.inputs[:index], item, *case.inputs[index + 1 :])
    return case.changed(inputs=inputs)


def _other_scales(case: Case) -> Iterator[Case]:
    """The case with another scale of its output, and of its first input."""
    outputs = tuple(_rescaled(info) for info in case.outputs)
    if outputs != case.outputs:
        yield case.changed(outputs=outputs)
    first = case.inputs[0] if case.inputs else None
    if first is not None and _rescaled(first.info) != first.info:
        yield _with_input(case, 0, replace(first, info=_rescaled(first.info)))


def _rescaled(info: TensorInfo) -> TensorInfo:
    """The same tensor with twice the scale; unchanged if it has not one scale."""
    quantization = info.quantization
    if quantization is None or len(quantization.scales) != 1 or not info.data_type.is_quantized:
        return info
    twice = Quantization.per_tensor(2 * info.scale, info.zero_point)
    return TensorInfo(info.shape, info.data_type, twice)


def _unlike(subject: BackendUnderTest, cases: Sequence[Case]) -> Iterator[Bench]:
    """Networks of the cases whose answers differ from those of the first one."""
    first: Bench | None = None
    for case in cases:
        try:
            trial = sample_bench(subject, case)
        except ArmpyError:  # CpuRef takes it with other inputs only
            continue
        if first is None:
            first = trial
            yield trial
        elif _differ(first, trial):
            yield trial


def _differ(first: Bench, other: Bench) -> bool:
    """Return whether the answers of two networks differ by more than any tolerance."""
    pairs = zip(first.expected.values(), other.expected.values(), strict=True)
    return any(a.shape != b.shape or is_apart(a, b) for a, b in pairs)


def _in_every_order(subject: BackendUnderTest, trials: Sequence[Bench]) -> None:
    """Load networks in both orders, execute them in turn, and unload the first one first."""
    runtime = subject.runtime
    for order in (trials, trials[::-1]):
        loaded = list(_loaded(subject, order))
        when = f"beside networks that differ from this {trials[0].operations} in one place"
        for trial, network_id in (*loaded, *loaded[::-1]):
            trial.run(runtime, network_id, when)
        for number, (_, network_id) in enumerate(loaded):
            runtime.unload_network(network_id)
            for trial, other_id in loaded[number + 1 : number + 2]:
                trial.run(runtime, other_id, f"{when}, one of which was unloaded")


def _loaded(subject: BackendUnderTest, trials: Sequence[Bench]) -> Iterator[tuple[Bench, int]]:
    """The networks that the backend does not give back, with their ids."""
    for trial in trials:
        with suppress(BackendCapabilityError):  # judged with the operation's cases
            yield trial, subject.runtime.load_network(trial.graph)


def executions_are_right_each_time(subject: BackendUnderTest) -> None:
    """Thirty executions with changing inputs are right, also after ones that were refused."""
    runtime = subject.runtime
    for case in samples(subject):
        both = unlike_benches(subject, case) or (sample_bench(subject, case),) * 2
        network_id = runtime.load_network(both[0].graph)
        for number in range(_EXECUTIONS):
            # Pairs of equal inputs beside pairs of unlike ones.
            trial = both[number // 2 % 2 if number > _EXECUTIONS // 2 else number % 2]
            trial.run(runtime, network_id, f"in execution {number + 1}")
            if number % 7 == 2:
                _refused(subject, network_id, trial)
        runtime.unload_network(network_id)


def executions_that_differ_in_one_element(subject: BackendUnderTest) -> None:
    """Executions in a row whose inputs differ in one element each have their own answers.

    Notes
    -----
    The inputs take turns, each after the ones that it differs from in one element alone: what a
    backend keeps of an execution has to be found by all that it depends on. Some inputs are large,
    as engines compare those by a sample of their elements.
    """
    has_any = False
    for case in dict.fromkeys((*samples(subject), *_with_long_inputs(subject))):
        trials = [sample_bench(subject, case)]
        for feeds in _changed_feeds(trials[0]):
            with suppress(ArmpyError):  # other inputs mean nothing to the operation
                trial = bench(subject, trials[0].graph, feeds)
                if _differ(trials[0], trial):
                    trials.append(trial)
        has_any = has_any or len(trials) > 1
        network_id = subject.runtime.load_network(trials[0].graph)
        size = max((array.nbytes for array in trials[0].feeds.values()), default=0)
        when = f"after inputs of up to {size:,} bytes that differ in one element"
        # The caller's own arrays, which change in place, as an engine may know inputs by them.
        arrays = {name: array.copy() for name, array in trials[0].feeds.items()}
        turns = itertools.chain.from_iterable((trial, trials[0]) for trial in trials[1:])
        for trial in (trials[0], *turns):
            for name, array in trial.feeds.items():
                arrays[name][...] = array
            trial.check(subject.runtime.enqueue_workload(network_id, arrays), when)
        subject.runtime.unload_network(network_id)
    if not has_any:
        raise NothingToKeepError("no answer of its networks depends on one element")


_LONG_BYTES = (1 << 8, 1 << 18)
"""Inputs longer than the beginning that some caches look at, and so long that an engine may keep
them on its device and compare a sample."""

_MANY = 1 << 10
"""Elements of which some caches look at a sample."""

_MOST_BYTES = 1 << 26
"""Of a case's inputs and outputs together."""


def _with_long_inputs(subject: BackendUnderTest) -> Iterator[Case]:
    """The samples with inputs of at least so many bytes, where their operations take these."""
    for least, case in itertools.product(_LONG_BYTES, samples(subject)):
        smallest = min((array.nbytes for array in case.feeds().values()), default=0)
        if not smallest:
            continue
        times = math.ceil(least / smallest)
        if not 0 < enlarged_bytes(case, times) <= _MOST_BYTES:
            continue
        with suppress(ArmpyError):
            longer = enlarged(case, times)
            if subject.takes(specialize(longer.graph())):
                yield longer


def _changed_feeds(trial: Bench) -> Iterator[Mapping[str, Array]]:
    """Inputs of which one differs in one element."""
    infos = {value.name: value.info for value in trial.graph.inputs}
    for name, array in trial.feeds.items():
        if is_value(infos[name].data_type):
            for place in _places(array):
                yield {**trial.feeds, name: _changed(array, place)}


def _refused(subject: BackendUnderTest, network_id: int, trial: Bench) -> None:
    """Try an execution with an input that does not fit."""
    feeds = {name: array[np.newaxis, np.newaxis] for name, array in trial.feeds.items()}
    with suppress(ArmpyError):
        subject.runtime.enqueue_workload(network_id, feeds)


def functions_for_arrays_are_like_executions(subject: BackendUnderTest) -> None:
    """What `IWorkload.for_arrays` gives computes what `execute` does, in turn with it."""
    backend = backend_of_runtime(subject)
    has_any = False
    with_several_outputs = [case for case in one_of_each(subject) if len(case.outputs) > 1]
    for case in (*samples(subject), *with_several_outputs[:1]):
        driven = Driven(backend, sample_bench(subject, case))
        if len(driven.steps) != 1:
            continue
        (step,) = driven.steps
        function = step.workload.for_arrays()
        if function is None or any(value is None for value in step.inputs):
            continue
        has_any = True
        first = driven.bench.feeds
        memory = driven.memory()
        for feeds in (first, other_feeds(driven.bench.graph, first), first):
            trial = bench(subject, driven.bench.graph, feeds)
            with driven.held():
                memory.feed(feeds)
                memory.execute()
                trial.check(memory.read(), "before its function for arrays was called")
            outputs = [
                np.full(v.info.known_shape, 0x55, v.info.data_type.dtype) for v in step.outputs
            ]
            by_value = {value: feeds[name].copy() for name, value in driven.sources.items()}
            inputs = [
                by_value[value] if value.data is None else value.data
                for value in step.inputs
                if value is not None
            ]
            function([*inputs, *outputs])
            answers = dict(zip(step.outputs, outputs, strict=True))
            named = {name: answers[value] for name, value in driven.results.items()}
            trial.check(named, "from its function for arrays")
        memory.release()
    if not has_any:
        raise NothingToKeepError("it has no functions for arrays")
