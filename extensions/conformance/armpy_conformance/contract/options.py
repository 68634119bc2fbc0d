"""Rules about the options that a backend declares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from armpy.backend import BackendOption, OptionScope, PreparationRequest
from armpy.compiler import specialize
from armpy.errors import ArmpyError, BackendUnavailableError, InvalidArgumentError
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, ViolationError, check
from armpy_conformance.contract.driven import backend_of_runtime, options_of
from armpy_conformance.contract.networks import sample_bench, samples

_LARGEST_END = 100
"""Larger upper ends of ranges are sizes and numbers of threads that no machine has."""


def _declared(subject: BackendUnderTest) -> tuple[BackendOption, ...]:
    options = tuple(subject.backend.options)
    if not options:
        raise NothingToKeepError("it declares no options")
    return options


def _runtime(subject: BackendUnderTest, values: dict[str, object]) -> Runtime:
    """A runtime with these options for the backend."""
    return Runtime(replace(subject.options, backend_options={subject.backend_id: values}))


def are_described(subject: BackendUnderTest) -> None:
    """Names are unique and in snake case, every option has a help, defaults are allowed."""
    options = _declared(subject)
    names = [option.name for option in options]
    check(len(set(names)) == len(names), f"an option is declared twice: {names}")
    for option in options:
        check(
            option.name.isidentifier() and option.name == option.name.lower(),
            f"the option {option.name!r} is not in snake case",
        )
        check(option.help.strip(), f"the option '{option.name}' has no help")
        option.check(option.default)


def defaults_are_accepted(subject: BackendUnderTest) -> None:
    """Giving every option its default is like giving none."""
    values: dict[str, object] = {option.name: option.default for option in _declared(subject)}
    bench = sample_bench(subject, samples(subject)[0])
    runtime = _runtime(subject, values)
    network_id = runtime.load_network(bench.graph)
    bench.run(runtime, network_id, "with every option at its default")
    runtime.unload_network(network_id)


def choices_are_accepted(subject: BackendUnderTest) -> None:
    """Every choice and every bound of an option works, or is refused as the machine lacks it.

    A backend may also take fewer layers with it, as it then says when it is asked about them.
    Some choice beside the default has to work, unless the machine has no device for the others.
    """
    bench = sample_bench(subject, samples(subject)[0])
    for option in _declared(subject):
        others = [value for value in allowed_values(option) if value != option.default]
        refusals: list[ArmpyError] = []
        for value in allowed_values(option):
            try:
                runtime = _runtime(subject, {option.name: value})
                network_id = runtime.load_network(bench.graph)
            except ArmpyError as error:
                is_named = option.name in str(error) and repr(value) in str(error)
                check(
                    is_named or _refuses_layers(subject, bench.graph, {option.name: value}),
                    f"{option.name} = {value!r} is refused, and not by name: {error}",
                )
                refusals += [error] if is_named else []
                continue
            bench.run(runtime, network_id, f"with {option.name} = {value!r}")
            runtime.unload_network(network_id)
        is_useless = len(refusals) == len(others) > 0
        is_lacking = any(isinstance(error, BackendUnavailableError) for error in refusals)
        check(
            not is_useless or is_lacking,
            f"no value of {option.name} but its default can be used: {refusals[-1:]}",
        )


def _refuses_layers(subject: BackendUnderTest, graph: Graph, values: Mapping[str, object]) -> bool:
    """Return whether the backend refuses a layer of a network with some values of its options."""
    with suppress(ArmpyError):
        backend = backend_of_runtime(subject, values)
        request = PreparationRequest(options_of(subject, OptionScope.MODEL, values))
        support = backend.get_layer_support(request)
        return not all(
            support.is_layer_supported(layer.operation, layer.input_infos, layer.output_infos)
            for layer in specialize(graph).layers
        )
    return False


def allowed_values(option: BackendOption) -> list[object]:
    """Values worth trying, each of which the declaration allows."""
    if option.choices:
        return list(option.choices)
    if isinstance(option.default, bool):
        return [False, True]
    is_small = option.maximum is not None and option.maximum <= _LARGEST_END
    ends = (option.minimum, option.maximum if is_small else None)
    return [type(option.default)(end) for end in ends if end is not None]


def wrong_values_are_refused(subject: BackendUnderTest) -> None:
    """A value of the wrong type, or outside the allowed range, is an error."""
    for option in _declared(subject):
        for value in _forbidden(option):
            try:
                _runtime(subject, {option.name: value})
            except InvalidArgumentError as error:
                check(
                    option.name in str(error),
                    f"the error for {value!r} does not name the option '{option.name}': {error}",
                )
            else:
                raise ViolationError(
                    f"{option.name} = {value!r} is accepted. It allows {option.allowed}"
                )


def _forbidden(option: BackendOption) -> list[object]:
    """Values that the declaration does not allow."""
    wrong: list[object] = [None, ["a list"]]
    if option.minimum is not None:
        wrong.append(type(option.default)(option.minimum - 1))
    if option.maximum is not None:
        wrong.append(type(option.default)(option.maximum + 1))
    if option.choices and isinstance(option.default, str):
        wrong.append("none of these")
    return wrong


def unknown_names_are_refused(subject: BackendUnderTest) -> None:
    """An option that is not declared is an error, which names the nearest one there is."""
    options = tuple(subject.backend.options)
    name = f"{options[0].name}x" if options else "no_such_option"
    try:
        _runtime(subject, {name: 1})
    except InvalidArgumentError as error:
        if options:
            check(
                f"'{options[0].name}'" in str(error),
                f"the error for the option '{name}' does not name '{options[0].name}': {error}",
            )
    else:
        raise ViolationError(f"the option '{name}', which is not declared, is accepted")
