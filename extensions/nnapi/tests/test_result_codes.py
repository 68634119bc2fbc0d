"""What armpy's errors are as result codes."""

from __future__ import annotations

import pickle

import pytest

from armpy import errors
from armpy.errors import ArmpyError
from armpy_nnapi import NnapiError, ResultCode
from armpy_nnapi.results import as_nnapi_error, result_codes

from .nnapi_models import fails


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.LayerValidationError, ResultCode.OP_FAILED),
        (errors.GraphValidationError, ResultCode.OP_FAILED),
        (errors.InvalidArgumentError, ResultCode.OP_FAILED),
        (errors.UnimplementedError, ResultCode.OP_FAILED),
        (errors.BackendError, ResultCode.OP_FAILED),
        (errors.BackendCapabilityError, ResultCode.OP_FAILED),
        (errors.BackendUnavailableError, ResultCode.UNAVAILABLE_DEVICE),
        (errors.ExecutionTimeoutError, ResultCode.MISSED_DEADLINE_TRANSIENT),
        (errors.MemoryLimitError, ResultCode.OUT_OF_MEMORY),
        (errors.MemoryImportError, ResultCode.UNMAPPABLE),
        (errors.MemoryExportError, ResultCode.UNMAPPABLE),
    ],
)
def test_every_error_of_the_core_has_a_code(kind: type[ArmpyError], code: ResultCode) -> None:
    cause = kind("it failed", where="conv", expected="3", actual="4", fix="Try this")
    with (
        pytest.raises(NnapiError, match="here / conv: it failed") as caught,
        result_codes("here"),
    ):
        raise cause
    assert caught.value.code is code
    assert caught.value.__cause__ is cause


def test_memory_that_python_does_not_get_is_out_of_memory() -> None:
    with fails(ResultCode.OUT_OF_MEMORY, "here: there is not enough memory"), result_codes("here"):
        raise MemoryError("3 TiB")


def test_a_result_code_stays_what_it_is() -> None:
    error = NnapiError("it failed", code=ResultCode.BAD_STATE)
    assert as_nnapi_error(error, "here") is error
    with fails(ResultCode.BAD_STATE, "^BAD_STATE: it failed"), result_codes("here"):
        raise error


def test_other_exceptions_are_not_touched() -> None:
    with pytest.raises(KeyError), result_codes("here"):
        raise KeyError


def test_a_code_and_an_answer_survive_pickling() -> None:
    error = NnapiError("it failed", code=ResultCode.OUTPUT_INSUFFICIENT_SIZE, value=(2, 3))
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.value, str(again)) == (error.code, (2, 3), str(error))


def test_codes_are_nnapis() -> None:
    assert [code.value for code in ResultCode] == list(range(15))
    assert ResultCode(8) is ResultCode.OUTPUT_INSUFFICIENT_SIZE
    assert ResultCode(14) is ResultCode.DEAD_OBJECT
