from __future__ import annotations

import pytest
from armpy_reference import ReferenceBackend

from armpy.plugins.checks import check_backend
from armpy.plugins.discovery.candidate import RejectionError
from tests.support.fake_backends import FakeBackend


def with_members(**members: object) -> FakeBackend:
    """A backend of a class that overrides some members."""
    backend: FakeBackend = type("Odd", (FakeBackend,), members)()
    return backend


@pytest.mark.parametrize("backend", [FakeBackend("Fake"), ReferenceBackend()])
def test_sound_backends_pass(backend: FakeBackend) -> None:
    checked = check_backend(backend.get_id(), backend)
    assert checked.backend is backend
    assert checked.api_version == backend.get_api_version()
    assert checked.device_type is backend.get_devices()[0].device_type


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"create_workload_factory": lambda self: None},
            r"its create_workload_factory\(\) cannot be called\. "
            r"Expected create_workload_factory\(network\)",
        ),
        (
            {"get_layer_support": lambda self, options, more: None},
            r"its get_layer_support\(options, more\) cannot be called\. "
            r"Expected get_layer_support\(request\)",
        ),
        (
            {"optimize_subgraph_view": lambda self, *, view: None},
            r"its optimize_subgraph_view\(\*, view\) cannot be called\. "
            r"Expected optimize_subgraph_view\(view, request\)",
        ),
        ({"get_layer_support": None}, "its get_layer_support is None, which cannot be called"),
        ({"create_memory_manager": staticmethod(lambda self: None)}, r"create_memory_manager\(sel"),
        ({"version": lambda self: "1"}, "its version is a method. Expected a property"),
        ({"options": lambda self: ()}, "its options is a method. Expected a property"),
        ({"get_api_version": lambda self: 1.0}, "API version 1.0 is not of the form major.minor"),
        ({"get_api_version": lambda self: (1, 0)}, r"version \(1, 0\) is not of the form"),
        ({"get_api_version": lambda self: "99.0"}, "made for API version 99.0"),
        ({"get_api_version": lambda self: "1.5"}, "1.5, which does not fit 2.2. The page 'A back"),
        ({"get_id": lambda self: "Other"}, "it calls itself 'Other'"),
        ({"get_id": lambda self: None}, "it calls itself None"),
        ({"backend_id": "Fake"}, "backend_id is not part of the contract.*Did you mean 'get_id'"),
        ({"optimise_subgraph_view": lambda self: None}, "Did you mean 'optimize_subgraph_view'"),
    ],
)
def test_what_cannot_be_called_as_the_contract_says_is_rejected(
    members: dict[str, object], reason: str
) -> None:
    with pytest.raises(RejectionError, match=reason):
        check_backend("Fake", with_members(**members))


@pytest.mark.parametrize(
    "members",
    [
        {"create_workload_factory": lambda self, *arguments: None},
        {"create_workload_factory": lambda self, network, more=5: None},
        {"create_workload_factory": staticmethod(lambda network: None)},
        {"create_memory_manager": dict},
        {"get_capabilities": dict.__new__},
        {"get_id": lambda self: "Fake", "options": ()},
        {"_private": lambda self: None, "of_its_own": lambda self, a, b: None},
    ],
)
def test_what_can_be_called_passes_whatever_it_is_like(members: dict[str, object]) -> None:
    check_backend("Fake", with_members(**members))


def test_another_class_is_rejected() -> None:
    with pytest.raises(RejectionError, match="made NoneType, not an IBackendInternal"):
        check_backend("Fake", None)
