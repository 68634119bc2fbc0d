"""Rules about layers and runtimes that are alike but for an attribute or an option."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from armpy.compiler import specialize
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import compare
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.contract.attribute_cases import attribute_cases
from armpy_conformance.contract.case import NothingToKeepError, ViolationError
from armpy_conformance.contract.every_operation import one_of_each
from armpy_conformance.contract.networks import Bench, bench, sample_bench, samples
from armpy_conformance.contract.options import allowed_values

_FRACTION = 0.375
"""Added to numbers among attributes: exact in each type of floats, and lost in integers."""


def layers_differ_in_one_attribute(subject: BackendUnderTest) -> None:
    """Layers that read one input and differ in one attribute each have answers of their own."""
    has_any = False
    for case in one_of_each(subject):
        alternatives = [case, *variants(subject, case)]
        if len(alternatives) == 1:
            continue
        has_any = True
        try:
            trial = bench(subject, _on_one_input(alternatives), case.feeds())
        except ArmpyError:  # CpuRef takes some of them with other inputs only
            continue
        network_id = subject.runtime.load_network(trial.graph)
        outputs = subject.runtime.enqueue_workload(network_id, dict(trial.feeds))
        subject.runtime.unload_network(network_id)
        try:
            trial.check(outputs, "beside layers that differ in one attribute")
        except ViolationError:
            # What a device computes badly whatever is beside it is the operation cases' business.
            if _is_mixed_up(trial, outputs) or _are_right_alone(subject, alternatives):
                raise
    if not has_any:
        raise NothingToKeepError("none of its operations has an attribute that it takes two of")


def variants(subject: BackendUnderTest, case: Case) -> list[Case]:
    """A case with one attribute changed, as far as the backend takes it.

    Notes
    -----
    An attribute that excludes another one of the case is changed in a variant without that one.
    """
    accepted: list[Case] = []
    excluded: list[tuple[str, object]] = []
    for name, value in _other_attributes(case.operation):
        variant = _changed(subject, case, name, value)
        if variant is None:
            excluded.append((name, value))
        else:
            accepted.append(variant)
    for name, value in excluded:
        second = (_changed(subject, variant, name, value) for variant in tuple(accepted))
        accepted += islice(filter(None, second), 1)
    return accepted


def _changed(subject: BackendUnderTest, case: Case, name: str, value: object) -> Case | None:
    """A case with an attribute changed; None if the operation or the backend forbids it."""
    with suppress(ArmpyError):  # the operation's rules forbid this value
        change = {name: value}
        operation = case.operation.with_attributes(**change)
        infos = [None if item is None else item.info for item in case.inputs]
        unshaped = [info.with_shape(None) for info in case.outputs]
        outputs = tuple(operation.infer(infos, unshaped))
        variant = case.changed(operation=operation, outputs=outputs)
        if subject.takes(specialize(variant.graph())):
            return variant
    return None


def _other_attributes(operation: Operation) -> Iterator[tuple[str, object]]:
    """Values other than its own for each attribute: those of the kit's cases, and fractions."""
    siblings = [case.operation for case in attribute_cases().get(operation.name, ())]
    for field in dataclasses.fields(operation):  # type: ignore[arg-type]  # subclasses are
        own = getattr(operation, field.name)
        if isinstance(own, float):
            yield field.name, own + _FRACTION
            continue
        others = [getattr(sibling, field.name) for sibling in siblings]
        different = [value for value in others if value != own]
        kinds = different if isinstance(own, enum.Enum) else different[:1]
        yield from ((field.name, value) for value in dict.fromkeys(kinds))


def _on_one_input(variants: list[Case]) -> Graph:
    """A network of layers that read the same values."""
    first = variants[0]
    net = Network(first.operation.name)
    names = iter(first.feeds())
    values = [None if item is None else _add_input(net, item, names) for item in first.inputs]
    for number, variant in enumerate(variants):
        for index, value in enumerate(variant.add_to(net, values, f"layer_{number}")):
            net.output(f"{_attributes(variant, first)}_{number}_{index}", value)
    return net.build()


def _add_input(net: Network, item: CaseInput, names: Iterator[str]) -> Value:
    """An input of a network under the next name, or a constant."""
    info = item.info
    if not item.is_constant:
        return net.input(next(names), info)
    return net.constant(item.data, data_type=info.data_type, quantization=info.quantization)


def _attributes(variant: Case, first: Case) -> str:
    """The attribute in which a case differs from the first, for messages."""
    own, others = variant.operation.attributes(), first.operation.attributes()
    return next((name for name, value in own.items() if value != others[name]), "unchanged")


def _is_mixed_up(trial: Bench, outputs: Mapping[str, Array]) -> bool:
    """Return whether a wrong output has the right answer of another layer."""
    infos = dict(zip(trial.graph.output_names, trial.graph.outputs, strict=True))
    return any(
        compare(trial.expected[name], outputs[name], infos[name].info) is not None
        and any(
            wanted.shape == outputs[name].shape
            and compare(wanted, outputs[name], infos[name].info) is None
            for wanted in trial.expected.values()
        )
        for name in outputs
    )


def _are_right_alone(subject: BackendUnderTest, variants: list[Case]) -> bool:
    """Return whether each layer is right in a network of its own."""
    for variant in variants:
        alone = sample_bench(subject, variant)
        network_id = subject.runtime.load_network(alone.graph)
        try:
            alone.run(subject.runtime, network_id, "alone")
        except ViolationError:
            return False
        finally:
            subject.runtime.unload_network(network_id)
    return True


def runtimes_differ_in_one_option(subject: BackendUnderTest) -> None:
    """Two runtimes with unlike options execute in turn, each with its own."""
    options = tuple(subject.backend.options)
    if not options:
        raise NothingToKeepError("it declares no options")
    benches = [sample_bench(subject, case) for case in samples(subject)]
    for option in options:
        for value in allowed_values(option):
            if value == option.default:
                continue
            backend_options = {subject.backend_id: {option.name: value}}
            changed = replace(subject.options, backend_options=backend_options)
            if _take_turns(subject, changed, benches, f"{option.name} = {value!r}"):
                break  # the others are refused, or add nothing


def _take_turns(
    subject: BackendUnderTest, changed: RuntimeOptions, benches: list[Bench], situation: str
) -> bool:
    """Execute networks on two runtimes, made in both orders; whether both take them."""
    for pair in ((subject.options, changed), (changed, subject.options)):
        with Runtime(pair[0]) as first, Runtime(pair[1]) as second:
            for trial in benches:
                try:
                    loaded = [(r, r.load_network(trial.graph)) for r in (first, second)]
                except ArmpyError:  # refused by name, as another rule checks
                    return False
                for runtime, network_id in loaded * 2:
                    trial.run(
                        runtime, network_id, f"with two runtimes, one of them with {situation}"
                    )
    return True
