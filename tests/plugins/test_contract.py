from __future__ import annotations

import pytest
from armpy_reference import ReferenceBackend

from armpy.plugins.checks import check_backend
from armpy.plugins.discovery.candidate import RejectionError
from armpy.types import DeviceType
from tests.support.fake_backends import FakeBackend


def with_members(**members: object) -> FakeBackend:
    """A backend of a class that overrides some members."""
    backend: FakeBackend = type("Odd", (FakeBackend,), members)()
    return backend


@pytest.mark.parametrize("backend", [FakeBackend("Fake"), ReferenceBackend()])
def test_sound_backends_pass(backend: FakeBackend) -> None:
    checked = check_backend(backend.backend_id, backend)
    assert checked.backend is backend
    assert checked.api_version == backend.api_version
    assert checked.device_type is backend.device_type


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"create_workload_factory": lambda self: None},
            r"its create_workload_factory\(\) cannot be called\. "
            r"Expected create_workload_factory\(memory_manager\)",
        ),
        (
            {"get_layer_support": lambda self, options: None},
            r"its get_layer_support\(options\) cannot be called\. Expected get_layer_support\(\)",
        ),
        (
            {"optimize_subgraph": lambda self, *, view: None},
            r"its optimize_subgraph\(\*, view\) cannot be called\. "
            r"Expected optimize_subgraph\(view\)",
        ),
        ({"get_layer_support": None}, "its get_layer_support is None, which cannot be called"),
        ({"create_memory_manager": staticmethod(lambda self: None)}, r"create_memory_manager\(sel"),
        ({"backend_id": lambda self: "Fake"}, "its backend_id is a method. Expected a property"),
        ({"device_type": lambda self: 1}, "its device_type is a method. Expected a property"),
        ({"device_type": 3}, "its device type 3 is not a DeviceType"),
        ({"api_version": 1.0}, "its API version 1.0 is not of the form major.minor"),
        ({"api_version": (1, 0)}, r"its API version \(1, 0\) is not of the form major.minor"),
        ({"api_version": "99.0"}, "made for API version 99.0"),
        ({"backend_id": "Other"}, "it calls itself 'Other'"),
        ({"backend_id": None}, "it calls itself None"),
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
        {"create_workload_factory": lambda self, manager, more=5: None},
        {"create_workload_factory": staticmethod(lambda manager: None)},
        {"create_memory_manager": dict},
        {"get_capabilities": dict.__new__},
        {"device_type": DeviceType.GPU, "backend_id": "Fake", "options": ()},
        {"_private": lambda self: None, "of_its_own": lambda self, a, b: None},
    ],
)
def test_what_can_be_called_passes_whatever_it_is_like(members: dict[str, object]) -> None:
    check_backend("Fake", with_members(**members))


def test_another_class_is_rejected() -> None:
    with pytest.raises(RejectionError, match="made NoneType, not an IBackendInternal"):
        check_backend("Fake", None)
