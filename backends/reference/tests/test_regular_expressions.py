"""CpuRef takes layers with regular expressions where RE2 is installed and takes the pattern."""

from __future__ import annotations

import sys

import pytest
from armpy_reference.backend import ReferenceLayerSupport

from armpy import DataType, TensorInfo, ops
from armpy.backend import ReasonCode, Support
from armpy.ops.operation import Operation

WORDS = TensorInfo((2,), DataType.STRING)


def support(operation: Operation) -> Support:
    """What CpuRef says of an operation on strings."""
    types = operation.infer_types([WORDS])
    outputs = [TensorInfo(None, data_type) for data_type in types]
    return ReferenceLayerSupport().is_layer_supported(operation, [WORDS], outputs)


@pytest.mark.parametrize("operation", [ops.RegexFullMatch("("), ops.Tokenizer((" ", "a**"))])
def test_a_pattern_that_is_none_of_re2_is_refused(operation: Operation) -> None:
    pytest.importorskip("re2", reason="google-re2 is not installed (armpy[re2])")
    answer = support(operation)
    assert answer.code is ReasonCode.ATTRIBUTE
    assert "the pattern is not a regular expression of RE2: " in answer.text
    assert support(ops.RegexFullMatch("a")).is_supported


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    answer = support(ops.Tokenizer((), "[a-z]+"))
    assert answer.code is ReasonCode.ATTRIBUTE
    assert "need the package google-re2. Run: pip install" in answer.text
