"""Rules about numbers, versions and reasons that a backend declares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from armpy.backend import (
    Capability,
    DeviceFigures,
    MemorySource,
    NetworkResources,
    OptionScope,
    PerformanceFigures,
    PreparationRequest,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.backend.options import default_options
from armpy.graph import Layer
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.support import asked_layers
from armpy_conformance.contract.whole_process import observed
from armpy_conformance.description import describe
from armpy_conformance.processes.declared_facts import facts_of, has_address

_FEATURE_LEVELS = range(27, 31)
"""Android's API levels with the Neural Networks API."""

_PLAUSIBLE = (1e-5, 1e4)
"""Time and power against CpuRef: a hundred thousand times less, ten thousand times more."""

_MOST_MEMORY = 1 << 48
"""Bytes that a processor of today can address."""

_MOST_LINES = 100
"""Of a diagnosis that people read."""

_VERSION = re.compile(r"\w[\w.+!~-]{0,63}")
_API_VERSION = re.compile(r"\d+\.\d+")

_NUM_THREADS = 4


def versions_can_be_compared(subject: BackendUnderTest) -> None:
    """The contract's version has two numbers, and the backend's own is one word."""
    backend = subject.raw_backend
    api_version, version = backend.get_api_version(), backend.version
    check(
        _API_VERSION.fullmatch(api_version),
        f"get_api_version is {api_version!r}. Expected two numbers such as '2.5'",
    )
    check(
        not version or _VERSION.fullmatch(version),
        f"version is {version!r}. Expected a word such as '1.4.2'",
    )


def devices_can_be(subject: BackendUnderTest) -> None:
    """Devices have names of printable characters and feature levels that there are."""
    devices = subject.raw_backend.get_devices()
    for device in devices:
        check(
            device.name == device.name.strip() and device.name.isprintable(),
            f"a device is called {device.name!r}",
        )
        check(device.name or len(devices) == 1, "one of several devices has no name")
        check(
            device.feature_level in _FEATURE_LEVELS,
            f"the device '{device.name}' has the feature level {device.feature_level}. Expected "
            f"{_FEATURE_LEVELS[0]} to {_FEATURE_LEVELS[-1]}",
        )


def figures_are_plausible(subject: BackendUnderTest) -> None:
    """Figures are shares of CpuRef's time and power, above 0 and of plausible size."""
    backend = subject.raw_backend
    has_some = False
    for device in backend.get_devices():
        for source, figures in (
            ("get_devices", device.figures),
            ("get_typical_figures", backend.get_typical_figures(device.name)),
        ):
            if figures is not None:
                has_some = True
                _check_figures(f"{source} of '{device.name}'", figures)
    if not has_some:
        raise NothingToKeepError("it declares no figures")


def _check_figures(where: str, figures: DeviceFigures) -> None:
    """Check the type and the size of each figure."""
    check(isinstance(figures, DeviceFigures), f"{where} are {figures!r}, not DeviceFigures")
    tables = (figures.tensors, figures.scalars, figures.extensions)
    labelled = [(str(key), entry) for table in tables for key, entry in table.items()]
    labelled += [
        (name, entry)
        for name in ("relaxed_tensor", "relaxed_scalar", "if_", "while_")
        if (entry := getattr(figures, name)) is not None
    ]
    low, high = _PLAUSIBLE
    for label, entry in labelled:
        check(
            isinstance(entry, PerformanceFigures),
            f"{where} for {label} is {entry!r}, not PerformanceFigures",
        )
        for name in ("exec_time", "power_usage"):
            number = getattr(entry, name)
            check(
                isinstance(number, float | int) and low <= number <= high,
                f"{where}: {name} for {label} is {number!r}. Expected a share of CpuRef's, from "
                f"{low:g} to {high:g}",
            )


def free_memory_is_plausible(subject: BackendUnderTest) -> None:
    """The free memory of each device is a number of bytes that can be, again and again."""
    backend = subject.raw_backend
    has_some = False
    for device in backend.get_devices():
        first, second = (backend.get_free_memory(device.name) for _ in range(2))
        check(
            (first is None) == (second is None),
            f"get_free_memory of '{device.name}' is {first}, then {second}",
        )
        for free in (first, second):
            if free is None:
                continue
            has_some = True
            check(
                isinstance(free, int) and not isinstance(free, bool) and 0 <= free < _MOST_MEMORY,
                f"get_free_memory of '{device.name}' is {free!r}. Expected bytes, from 0 on",
            )
    if not has_some:
        raise NothingToKeepError("it says of no device how much memory is free")


def diagnosis_is_lines(subject: BackendUnderTest) -> None:
    """What it finds on the machine is a few lines of text, which `armpy doctor` shows."""
    lines = subject.raw_backend.get_diagnosis()
    check(
        isinstance(lines, Sequence) and not isinstance(lines, str),
        f"get_diagnosis is {lines!r}. Expected a list of lines",
    )
    check(len(lines) <= _MOST_LINES, f"get_diagnosis has {len(lines)} lines")
    for line in lines:
        check(
            isinstance(line, str) and line.strip() and len(line.splitlines()) == 1,
            f"get_diagnosis has {line!r}. Expected one line of text",
        )
    if not lines:
        raise NothingToKeepError("it says nothing of what it finds on the machine")


def capabilities_are_of_their_types(subject: BackendUnderTest) -> None:
    """Capabilities that the core asks about are True or False, and others plain values."""
    known = {capability.value for capability in Capability}
    spellings = {name.lower(): name for name in known}
    for name, value in subject.raw_backend.get_capabilities().items():
        check(isinstance(name, str) and name, f"a capability is called {name!r}")
        kinds = (bool,) if str(name) in known else (bool, int, float, str)
        check(
            type(value) in kinds,
            f"the capability {name} is {value!r}. Expected "
            f"{' or '.join(kind.__name__ for kind in kinds)}",
        )
        right = spellings.get(str(name).lower().replace("_", ""), str(name))
        check(right == str(name), f"the capability {str(name)!r} is to be written {right!r}")


def preferences_can_be_met(subject: BackendUnderTest) -> None:
    """Each preferred factory of tensors is registered for some network."""
    backend, every = subject.raw_backend, ~MemorySource.UNDEFINED
    registries: list[TensorHandleFactoryRegistry] = []
    for resources in (
        NetworkResources(),
        NetworkResources(input_sources=every, output_sources=every),
    ):
        registries.append(TensorHandleFactoryRegistry())
        backend.register_tensor_handle_factories(registries[-1], resources)
    for factory_id in backend.get_handle_factory_preferences():
        check(
            any(registry.get_factory(factory_id) for registry in registries),
            f"get_handle_factory_preferences has '{factory_id}', which no factory is called",
        )


def threads_get_the_same_facts(subject: BackendUnderTest) -> None:
    """Members that describe the backend are the same in several threads at once."""
    first = facts_of(subject.raw_backend)
    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        futures = [pool.submit(facts_of, subject.raw_backend) for _ in range(_NUM_THREADS)]
        for future in futures:
            _check_facts(first, future.result(), "in another thread")


def processes_get_the_same_facts(subject: BackendUnderTest) -> None:
    """Members that describe the backend are the same in another process, without addresses."""
    other = observed(subject).facts
    first = facts_of(subject.raw_backend)
    for name, text in first.items():
        check(not has_address(text), f"{name} has an object's address in it: {text[:200]}")
    _check_facts(first, other, "in another process")


def _check_facts(first: Mapping[str, str], other: Mapping[str, object], where: str) -> None:
    """Raise a `ViolationError` unless both are the same."""
    for name, text in first.items():
        check(
            other.get(name) == text,
            f"{where} {name} is {str(other.get(name))[:200]}, here {text[:200]}",
        )


def many_answers_are_as_many_and_in_order(subject: BackendUnderTest) -> None:
    """Answers about many layers are as many as these, in their order, and do not depend on others.

    Notes
    -----
    No layer reads what another one writes, so that it does not matter which are asked about at
    once.
    """
    layers = asked_layers()
    options = default_options(subject.backend.options, OptionScope.MODEL)
    support = subject.raw_backend.get_layer_support(PreparationRequest(options))
    taken_alone = {
        layer: bool(
            support.is_layer_supported(layer.operation, layer.input_infos, layer.output_infos)
        )
        for layer in layers
    }
    refused_first = sorted(layers, key=taken_alone.__getitem__)
    first_answers: dict[Layer, bool] = {}
    for question in (layers, refused_first, refused_first[::-1], layers[:1], layers[1:17], []):
        answers = [*support.are_layers_supported(question)]
        check(
            len(answers) == len(question),
            f"are_layers_supported gives {len(answers)} answers about {len(question)} layers",
        )
        for layer, answer in zip(question, answers, strict=True):
            operation = describe(layer.operation)
            check(
                isinstance(answer, Support),
                f"are_layers_supported answers {answer!r} about {operation}",
            )
            check(
                first_answers.setdefault(layer, bool(answer)) == bool(answer),
                f"the answer about {operation} changes with the other layers that "
                "are_layers_supported is asked about at once, or with their order",
            )
    for layer, is_taken in first_answers.items():
        check(
            is_taken or not taken_alone[layer],
            f"are_layers_supported refuses {describe(layer.operation)}, and is_layer_supported "
            "takes it",
        )


def codes_fit_their_refusals(subject: BackendUnderTest) -> None:
    """The code of a no names what differs from layers that the backend takes.

    An operation that is taken in another form is not refused with OPERATION, one that is taken with
    the same types not with DATA_TYPE, one of the same types and ranks not with RANK. QUANTIZATION
    is about quantised tensors, EXTENSION about extensions, ATTRIBUTE about operations that have
    attributes, and nothing was prepared or executed yet.
    """
    answers = {layer: subject.raw_support(layer) for layer in asked_layers()}
    taken: dict[Operation, list[Layer]] = defaultdict(list)
    for layer, answer in answers.items():
        if answer:
            taken[layer.operation].append(layer)
    for layer, answer in answers.items():
        if isinstance(answer, Support) and not answer:
            problem = _misfit(layer, answer, taken[layer.operation])
            check(
                not problem,
                f"{describe(layer.operation)} is refused with {answer.code} ({answer.text}), but "
                f"{problem}",
            )
            check(
                not has_address(answer.text),
                f"the reason has an object's address in it: {answer.text}",
            )


def _misfit(layer: Layer, answer: Support, taken: Sequence[Layer]) -> str:
    """Why a refusal's code cannot be right, as other layers of the same operation are taken."""
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    code = answer.code
    if code is ReasonCode.OPERATION and taken:
        return "the same operation is taken with other tensors"
    if code is ReasonCode.DATA_TYPE and any(_types(x) == _types(layer) for x in taken):
        return "the same operation is taken with tensors of the same types"
    if code is ReasonCode.RANK and any(_forms(x) == _forms(layer) for x in taken):
        return "the same operation is taken with the same types and ranks"
    if code is ReasonCode.QUANTIZATION and all(info.quantization is None for info in infos):
        return "no tensor is quantised"
    if code is ReasonCode.ATTRIBUTE and not layer.operation.attributes():
        return "the operation has no attributes"
    if code is ReasonCode.EXTENSION:
        return "it is of no extension"
    if code in (ReasonCode.PREPARATION, ReasonCode.EXECUTION):
        return "nothing was prepared or executed yet"
    return ""


def _types(layer: Layer) -> tuple[tuple[object, ...], ...]:
    """Types of a layer's tensors, and how each is quantised."""
    infos = (*layer.input_infos, *layer.output_infos)
    return tuple(() if info is None else (info.data_type, _axis(info)) for info in infos)


def _axis(info: TensorInfo) -> object:
    """The axis along which a tensor is quantised, in a tuple; None if it is not quantised."""
    return None if info.quantization is None else (info.quantization.axis,)


def _forms(layer: Layer) -> tuple[tuple[object, ...], ...]:
    """Types and ranks of a layer's tensors."""
    infos = (*layer.input_infos, *layer.output_infos)
    return tuple(() if info is None else (info.data_type, info.rank) for info in infos)
