"""Methods that were meant for the contract but misspelled are reported by name."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TypeGuard

import numpy as np
import pytest

import armpy.backend
from armpy.backend import DeviceFigures, ILayerSupport, ReasonCode, Support
from armpy.errors import BackendUnavailableError
from armpy.model import Model
from armpy.plugins import BackendProxy, BackendRegistry, CandidateStatus
from armpy.plugins.proxy.names import is_later, why_misnamed
from armpy_testing.backends.fake_backends import FakeBackend, FakeFactory, runtime_of
from armpy_testing.command_line import Cli, find_backends_in
from armpy_testing.installed import skip_without
from armpy_testing.models.networks import chain, floats, placement_of
from lab import contract_surface


def named(name: str, base: type = FakeBackend, *, as_property: bool = False) -> type:
    """A class with one more public method or property."""

    def method(self: object, *_: object) -> None:
        raise AssertionError("it is never called")

    return type("Odd", (base,), {name: property(method) if as_property else method})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("optimize_subgraph", "optimize_subgraph_view"),
        ("optimise_subgraph_view", "optimize_subgraph_view"),
        ("OptimizeSubgraph", "optimize_subgraph_view"),
        ("create_backend_model_context", "create_backend_specific_model_context"),
        ("backend_id", "get_id"),
        ("api_version", "get_api_version"),
        ("get_optimizations", "optimize_subgraph_view"),
        ("can_use_allocator", "use_custom_memory_allocator"),
        ("save_compiled", "get_programs"),
        ("create_memory_manger", "create_memory_manager"),
        ("get_capabilites", "get_capabilities"),
        ("get_cahces", "get_caches"),
        ("egt_devices", "get_devices"),
        ("get_apiversion", "get_api_version"),
        # A getter for a property, the member without its prefix, British spelling
        ("get_options", "options"),
        ("get_supported_extensions", "supported_extensions"),
        ("get_version", "version"),
        ("capabilities", "get_capabilities"),
        ("memory_manager", "create_memory_manager"),
        ("backend_context", "create_backend_context"),
        ("workload_factory", "create_workload_factory"),
        ("create_context", "create_backend_context"),
        ("create_model_context", "create_backend_specific_model_context"),
        ("optimise_subgraph", "optimize_subgraph_view"),
        # A plural for a singular, and the reverse
        ("layer_supports", "get_layer_support"),
        ("memory_managers", "create_memory_manager"),
        ("get_capability", "get_capabilities"),
        ("get_option", "options"),
    ],
)
def test_what_was_meant_for_the_contract_is_named(name: str, meant: str) -> None:
    remark = why_misnamed(named(name))
    assert remark == (
        f"Odd.{name} is not part of the contract, so it is never called. Did you mean '{meant}'? "
        "Begin it with '_' if it is your own"
    )


def test_a_property_that_stands_for_a_getter_is_named() -> None:
    assert "Did you mean 'get_devices'?" in why_misnamed(named("devices", as_property=True))


def is_interface(exported: object) -> TypeGuard[type]:
    """Whether an exported name is an interface that vendors implement."""
    return isinstance(exported, type) and exported.__name__[:1] == "I"


@pytest.mark.parametrize(
    ("interface", "name"),
    [
        ("IWorkload", "find"),
        ("IWorkload", "binary"),
        ("IBackendContext", "clone"),
        ("IBackendContext", "closed"),
        ("ITensorHandle", "mask"),
        ("ITensorHandle", "mmap"),
        ("IMemoryManager", "released"),
        ("IPrograms", "name"),
        ("ICompletion", "waits"),
    ],
)
def test_words_of_their_own_are_left_alone(interface: str, name: str) -> None:
    base = getattr(armpy.backend, interface)
    assert why_misnamed(named(name, base, as_property=name.endswith("d"))) == ""


@pytest.mark.parametrize(
    ("interface", "name", "meant"),
    [
        ("IWorkloadFactory", "create_workloads", "create_workload"),
        ("IWorkload", "excute", "execute"),
        ("IWorkload", "execute_async", "enqueue"),
        ("ILayerSupport", "is_layer_suported", "is_layer_supported"),
        ("IMemoryManager", "aquire", "acquire"),
        ("IBackendContext", "after_load_netwok", "after_load_network"),
        ("IBackendModelContext", "close_", "close"),
        ("ITensorHandle", "copy_in_form", "copy_in_from"),
        ("ITensorHandleFactory", "get_id", "factory_id"),
        ("ITensorHandleFactory", "create_tensor_handel", "create_tensor_handle"),
        ("ICustomAllocator", "allocat", "allocate"),
        ("IBackendProfilingContext", "take_mesurements", "take_measurements"),
    ],
)
def test_every_class_of_the_contract_is_looked_at(interface: str, name: str, meant: str) -> None:
    remark = why_misnamed(named(name, getattr(armpy.backend, interface)))
    assert f"Did you mean '{meant}'?" in remark


def test_a_backend_with_such_a_name_is_left_out_and_says_why(
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = BackendRegistry()
    registry.register("Fake", named("optimise_subgraph_view"))
    text = "Did you mean 'optimize_subgraph_view'"
    with (
        caplog.at_level(logging.WARNING, "armpy.plugins"),
        pytest.raises(BackendUnavailableError, match=text),
    ):
        registry.get("Fake")
    (candidate,) = registry.candidates
    assert candidate.status is CandidateStatus.REJECTED
    assert "Odd.optimise_subgraph_view is not part of the contract" in caplog.text
    skip_without("click", "pillow")
    find_backends_in(registry, monkeypatch)
    assert "Odd.optimise_subgraph_view" in Cli(capsys).out("backends", "--all")


def test_what_a_backend_makes_is_looked_at_when_it_makes_it() -> None:
    factory = named("create_workloads", FakeFactory)

    class Making(FakeBackend):
        def create_workload_factory(self, network: object) -> FakeFactory:
            return factory({})  # type: ignore[no-any-return]  # of a class that was just made

    model = Model(chain(), runtime_of(Making("Making")))
    np.testing.assert_array_equal(model(floats(-1, 0, 2, 5)), [2, 3, 5, 8])
    assert placement_of(model).layers_by_backend == {"CpuRef": 3}
    reasons = [refusal.text for refusal in placement_of(model).refusals]
    assert all("Did you mean 'create_workload'?" in reason for reason in reasons)


class Earlier(FakeBackend):
    """A backend of contract 2.0, whose own methods are named as later versions name theirs."""

    def get_api_version(self) -> str:
        return "2.0"

    def typical_figures(self) -> None:
        """Nearly `get_typical_figures` of 2.2."""

    def get_typical_figures(self, chip: str, clock: int) -> DeviceFigures:  # type: ignore[override]
        """That of 2.2 has another meaning."""
        raise AssertionError(f"called for {chip}, {clock}")

    def create_workload_factory(self, network: object) -> EarlierFactory:
        return EarlierFactory({})

    def get_layer_support(self, request: object) -> EarlierSupport:
        return EarlierSupport()


class EarlierFactory(FakeFactory):
    """Makes workloads of contract 2.0."""


class EarlierSupport(ILayerSupport):
    """Layer support of contract 2.0."""

    def is_layer_supported(self, *_: object) -> Support:
        return Support.no(ReasonCode.OTHER, "not mine")

    def are_layer_supported(self) -> None:
        """Nearly `are_layers_supported` of 2.4."""


def test_names_of_later_minor_versions_break_no_earlier_backend() -> None:
    model = Model(chain(), runtime_of(Earlier("Early")))
    np.testing.assert_array_equal(model(floats(-1, 0, 2, 5)), [2, 3, 5, 8])
    refusals = placement_of(model).refusals
    assert {refusal.text for refusal in refusals if refusal.backend == "Early"} == {"not mine"}
    registry = BackendRegistry()
    registry.register("Early", lambda: Earlier("Early"))
    proxy = BackendProxy(registry.get("Early"))
    assert proxy.get_typical_figures("") is None


def test_the_versions_that_added_names_are_those_of_the_records() -> None:
    records = contract_surface.records()
    for earlier, later in pairwise(records):
        for name in records[earlier]:
            if not is_interface(getattr(armpy.backend, name, None)):
                continue
            for member in records[later][name].keys() - records[earlier][name]:
                assert is_later(name, member, earlier), f"{name}.{member} of {later}"
                assert not is_later(name, member, later)
