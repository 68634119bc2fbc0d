from __future__ import annotations

import ctypes
import importlib

import pytest

from armpy.errors import BackendUnavailableError
from armpy.plugins.loading import describe_failure


class MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


def raised_by(code: str) -> BaseException:
    """What some code raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any is wanted
        exec(code)
    return caught.value


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
    failure = describe_failure(error)
    assert failure.reason == reason
    assert type(error).__name__ in failure.traceback


def test_a_missing_module_is_named() -> None:
    failure = describe_failure(raised_by("import no_such_module.part"))
    assert failure.missing_module == "no_such_module"
    code = "try:\n import no_such_module\nexcept ImportError as e:\n raise OSError('x') from e"
    assert describe_failure(raised_by(code)).missing_module == "no_such_module"


def test_a_missing_library_is_named() -> None:
    with pytest.raises(OSError, match="libno_such_library") as caught:
        ctypes.CDLL("libno_such_library.so.3")
    assert describe_failure(caught.value).missing_library == "libno_such_library.so.3"
    assert describe_failure(OSError("no device")).missing_library == ""


def test_a_private_name_is_not_shown() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("_armpy_dynamic_x")
    failure = describe_failure(caught.value, "_armpy_dynamic_x", "Arm_Npu_backend")
    assert failure.reason == "ModuleNotFoundError: No module named 'Arm_Npu_backend'"
    assert failure.missing_module == "Arm_Npu_backend"
    assert "_armpy_dynamic_x" not in failure.traceback


def test_causes_that_go_round_in_a_circle_come_to_an_end() -> None:
    first, second = OSError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    assert describe_failure(first).reason == "OSError: first"
