"""Methods that were meant for the contract and are called otherwise there are told by name."""

from __future__ import annotations

import logging

import pytest
from armpy.plugins.proxy.spelling import gathered_remarks, remarks_on

import armpy.backend
from armpy.backend import IBackendInternal
from armpy.cli.backends.listing import list_backends, print_backends
from armpy.cli.doctor.diagnose_backend import examine_backend
from armpy.execution import RuntimeOptions
from armpy.model import Model
from armpy.plugins import BackendRegistry, CandidateStatus
from armpy.testing.backend_under_test import BackendUnderTest
from armpy.testing.contract.case import ViolationError
from armpy.testing.contract.lifecycle import names_are_the_contracts
from tests.support.fake_backends import FakeBackend, FakeFactory, registry_of, runtime_of
from tests.support.networks import chain, floats


def named(name: str, base: type = FakeBackend, *, as_property: bool = False) -> type:
    """A class with one more public method or property."""

    def method(self: object, *_: object) -> None:
        raise AssertionError("nobody calls it")

    return type("Odd", (base,), {name: property(method) if as_property else method})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("optimize_subgraph_view", "optimize_subgraph"),
        ("OptimizeSubgraphView", "optimize_subgraph"),
        ("create_backend_specific_model_context", "create_backend_specific_model_context"),
        ("get_id", "backend_id"),
        ("get_api_version", "api_version"),
        ("get_optimizations", "optimize_subgraph"),
        ("optimise_subgraph", "optimize_subgraph"),
        ("create_memory_manger", "create_memory_manager"),
        ("get_capabilites", "get_capabilities"),
        ("GetLayerSupport", "get_layer_support"),
    ],
)
def test_what_was_meant_for_the_contract_is_named(name: str, meant: str) -> None:
    (remark,) = remarks_on(named(name))
    assert remark == (
        f"Odd.{name} is not part of the contract, so that nobody calls it. Did you mean '{meant}'?"
    )


def test_a_misspelt_property_is_named_too() -> None:
    (remark,) = remarks_on(named("extentions", as_property=True))
    assert remark.endswith("Did you mean 'extensions'?")


@pytest.mark.parametrize("name", ["tune", "kernel_cache", "optimize", "create_context", "queue"])
def test_a_vendors_own_methods_are_nobodys_business(name: str) -> None:
    assert remarks_on(named(name)) == ()
    assert remarks_on(named(name, as_property=True)) == ()


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
    (remark,) = remarks_on(named(name, getattr(armpy.backend, interface)))
    assert remark.endswith(f"Did you mean '{meant}'?")


def test_the_loader_keeps_it_as_a_reason(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = BackendRegistry()
    registry.register("Fake", named("optimise_subgraph"))
    with caplog.at_level(logging.WARNING, "armpy.plugins"):
        assert isinstance(registry.get("Fake"), IBackendInternal)
    (candidate,) = registry.candidates
    assert candidate.status is CandidateStatus.REGISTERED
    assert "Did you mean 'optimize_subgraph'?" in candidate.reason
    assert "Fake: Odd.optimise_subgraph is not part of the contract" in caplog.text
    print_backends(list_backends(registry))
    assert "Odd.optimise_subgraph" in capsys.readouterr().out


def test_what_a_backend_makes_is_looked_at_when_it_makes_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    factory = named("create_workloads", FakeFactory)

    class Making(FakeBackend):
        def create_workload_factory(self, network: object) -> FakeFactory:
            return factory({})  # type: ignore[no-any-return]  # of a class that was just made

    with caplog.at_level(logging.WARNING, "armpy.plugins"), gathered_remarks() as found:
        model = Model(chain(), runtime_of(Making("Making")))
        model(floats(-1, 0, 2, 5))
    assert list(found) == list(remarks_on(factory))
    assert "Making: Odd.create_workloads is not part of the contract" in caplog.text


def test_the_doctor_and_the_kit_say_it() -> None:
    odd = named("optimise_subgraph")("Fake")
    problems = examine_backend(odd)["problems"]
    assert "Did you mean 'optimize_subgraph'?" in str(problems)
    subject = BackendUnderTest("Fake", RuntimeOptions(registry=registry_of(odd)))
    with pytest.raises(ViolationError, match="Did you mean 'optimize_subgraph'"):
        names_are_the_contracts(subject)


def test_armpys_own_backends_have_nothing_of_the_kind() -> None:
    found = BackendRegistry.discover()
    assert {"CpuRef", "NumbaAcc"} <= {one.backend_id for one in found.available()}
    assert not any(candidate.reason for candidate in found.candidates)
