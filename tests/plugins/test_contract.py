"""Plugins against the contract: options, imports, loading."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION, DeviceInfo
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, PluginOptions
from armpy_testing.backends.fake_backends import FakeBackend


def with_members(**members: object) -> FakeBackend:
    """A backend of a class that overrides some members."""
    backend: FakeBackend = type("Odd", (FakeBackend,), members)()
    return backend


def registry_with(factory: Callable[[], object], backend_id: str = "Fake") -> BackendRegistry:
    """A registry with one backend that is not loaded yet."""
    registry = BackendRegistry()
    registry.register(backend_id, factory)  # type: ignore[arg-type]  # it may make anything
    return registry


def left_out(factory: Callable[[], object]) -> Candidate:
    """The candidate of a backend that was tried and is not used."""
    registry = registry_with(factory)
    assert registry.available() == []
    (candidate,) = registry.candidates
    return candidate


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
        (
            {"create_workload_factory": lambda self, memory_manager=None: None},
            r"create_workload_factory\(memory_manager=None\) would be given 'network' as "
            r"'memory_manager'. Expected .*\(network\), and use network.memory_manager",
        ),
        (
            {"get_layer_support": lambda self, model_options: None},
            "use request.model_options",
        ),
        ({"get_layer_support": None}, "its get_layer_support is None, which cannot be called"),
        ({"create_memory_manager": staticmethod(lambda self: None)}, r"create_memory_manager\(sel"),
        ({"version": lambda self: "1"}, "its version is a method. Expected a property"),
        ({"options": lambda self: ()}, "its options is a method. Expected a property"),
        ({"get_api_version": lambda self: 1.0}, "API version 1.0 is not of the form major.minor"),
        ({"get_api_version": lambda self: (1, 0)}, r"version \(1, 0\) is not of the form"),
        ({"get_api_version": lambda self: "99.0"}, "made for API version 99.0"),
        (
            {"get_api_version": lambda self: "1.5"},
            rf"1.5, which does not fit {BACKEND_API_VERSION}. The page 'A back",
        ),
        ({"get_id": lambda self: "Other"}, "it calls itself 'Other'"),
        (
            {"get_devices": lambda self: (DeviceInfo(device_type="NPU"),)},  # type: ignore[arg-type]
            "its device type 'NPU' is not a DeviceType",
        ),
        ({"get_id": lambda self: None}, "it calls itself None"),
        ({"backend_id": "Fake"}, "backend_id is not part of the contract.*Did you mean 'get_id'"),
        ({"optimise_subgraph_view": lambda self: None}, "Did you mean 'optimize_subgraph_view'"),
    ],
)
def test_what_cannot_be_called_as_the_contract_says_is_rejected(
    members: dict[str, object], reason: str
) -> None:
    candidate = left_out(lambda: with_members(**members))
    assert candidate.status is CandidateStatus.REJECTED
    assert re.search(reason, candidate.reason)


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
    backend = with_members(**members)
    assert registry_with(lambda: backend).get("Fake") is backend


def test_another_class_is_rejected() -> None:
    candidate = left_out(lambda: None)
    assert candidate.status is CandidateStatus.REJECTED
    assert "made NoneType, not an IBackendInternal" in candidate.reason


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"/bytes"


@pytest.mark.parametrize(
    ("given", "directories"),
    [
        ((), ()),
        ("", ()),
        ("/a", ("/a",)),
        ("/a:/b", ("/a:/b",)),
        (Path("/a"), (os.path.normpath("/a"),)),
        (["/a", Path("/b")], ("/a", os.path.normpath("/b"))),
        ([""], ("",)),
    ],
)
def test_one_path_or_several_may_be_given(given: object, directories: tuple[str, ...]) -> None:
    options = PluginOptions(given)  # type: ignore[arg-type]  # of every allowed kind
    assert options.directories == directories


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("dynamic_backends_path", 5, "a path or a sequence of paths"),
        ("dynamic_backends_path", b"/a", "a path or a sequence of paths"),
        ("dynamic_backends_path", [5], "a path or a sequence of paths"),
        ("dynamic_backends_path", BytesPath(), "a path or a sequence of paths"),
        ("trust_file", 5, "a path"),
        ("trust_insecure_paths", "yes", "true or false"),
        ("probe", 1, "true or false"),
        ("probe_timeout_s", 0, "more than 0 seconds"),
        ("probe_timeout_s", float("nan"), "more than 0 seconds"),
        ("probe_timeout_s", float("inf"), "more than 0 seconds"),
        ("probe_timeout_s", "10", "a number of seconds"),
        ("probe_timeout_s", True, "a number of seconds"),
    ],
)
def test_options_of_the_wrong_type_or_range_are_an_error(
    option: str, value: object, expected: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{option}: .* Expected {expected}"):
        PluginOptions(**{option: value})  # type: ignore[arg-type]  # wrong on purpose


class MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


def failed(error: BaseException) -> Candidate:
    """The candidate of a backend whose factory raises an error."""

    def factory() -> object:
        raise error

    candidate = left_out(factory)
    assert candidate.status is CandidateStatus.FAILED
    return candidate


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("no device"), "OSError: no device"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError(), "ValueError"),
        (BackendUnavailableError("no device", where="npu"), "npu: no device."),
        (MuteError(), "MuteError, whose text cannot be read: SystemExit"),
    ],
)
def test_the_reason_is_the_exceptions_kind_and_text(error: BaseException, reason: str) -> None:
    candidate = failed(error)
    assert candidate.reason == reason
    assert type(error).__name__ in candidate.traceback


def test_a_missing_library_is_named() -> None:
    candidate = left_out(lambda: ctypes.CDLL("libno_such_library.so.3"))
    assert candidate.missing_library == "libno_such_library.so.3"
    assert failed(OSError("no device")).missing_library == ""


def test_causes_that_go_round_in_a_circle_come_to_an_end() -> None:
    first, second = OSError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    assert failed(first).reason == "OSError: first"
