"""Utility functions for makers of drivers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from armpy.backend import PerformanceFigures
from armpy.compiler.devices import UNKNOWN_PERFORMANCE
from armpy_nnapi import (
    Capabilities,
    Model,
    ModelBuilder,
    OperandCode,
    ResultCode,
    align_bytes_needed,
    compliant_with,
    convert_to,
    has_unspecified_dimensions,
    is_extension_operand_type,
    is_extension_operation_type,
    is_scalar_type,
    lookup_performance,
    non_extension_operand_performance,
    size_of_data,
    update_performance,
    validate_model,
)

from .nnapi_models import FLOAT_2, fails, floats

C = OperandCode
ONE, TWO, SLOW = (PerformanceFigures(time, time) for time in (1.0, 2.0, 9.0))


def relaxed_model(*, is_relaxed: bool = True, is_new: bool = False) -> Model:
    """ADD of level 27, and ABS of level 29 if it is to be new."""
    builder = ModelBuilder()
    output = builder.add(builder.input(FLOAT_2), floats(1, 1), outputs=[FLOAT_2])
    if is_new:
        output = builder.abs(output, outputs=[FLOAT_2])
    builder.model.relax_computation_float32_to_float16(is_relaxed)
    return builder.finish(output)


@pytest.mark.parametrize(
    ("is_new", "levels"), [(False, [True] * 4), (True, [False, False, True, True])]
)
def test_a_model_is_compliant_with_the_levels_that_have_its_operations(
    is_new: bool, levels: list[bool]
) -> None:
    model = relaxed_model(is_new=is_new)
    assert [compliant_with(model, level) for level in (27, 28, 29, 30)] == levels
    assert [compliant_with(model.description, level) for level in (27, 28, 29, 30)] == levels


@pytest.mark.parametrize(("level", "is_lost"), [(27, True), (28, False), (30, False)])
def test_a_conversion_warns_of_what_it_loses(
    level: int, is_lost: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "armpy_nnapi"):
        converted = convert_to(relaxed_model(), level)
    assert converted.relaxed is not is_lost
    assert validate_model(converted) <= level
    texts = [r.message for r in caplog.records]
    assert texts == [f"convert_to: feature level {level} cannot say that float32 may be "
                     "computed as float16"] * is_lost  # fmt: skip


def test_a_model_that_needs_more_is_not_converted() -> None:
    with fails(ResultCode.OP_FAILED, "of feature level 28; got one that needs 29"):
        convert_to(relaxed_model(is_new=True), 28)


@pytest.mark.parametrize("level", [0, 26, 31])
def test_there_are_four_levels(level: int) -> None:
    for function in (compliant_with, convert_to):
        with fails(ResultCode.BAD_DATA, f"unknown feature level.*got {level}"):
            function(relaxed_model(), level)


def test_other_things_have_no_levels() -> None:
    for function in (compliant_with, convert_to):
        with fails(ResultCode.BAD_DATA, "this is not a model.*or Capabilities"):
            function("model", 27)  # type: ignore[arg-type,call-overload]  # the error under test


def capabilities(**changes: object) -> Capabilities:
    """Of a device that the first level can say all of."""
    table = non_extension_operand_performance(TWO)
    for code in (C.FLOAT32, C.TENSOR_FLOAT32):
        table = update_performance(table, code, ONE)
    old = {code: pair for code, pair in table.items() if code.traits.feature_level == 27}
    old_capabilities = Capabilities(ONE, ONE, old, {}, UNKNOWN_PERFORMANCE, UNKNOWN_PERFORMANCE)
    return replace(old_capabilities, **changes)  # type: ignore[arg-type]  # checked at run time


def with_figures(code: OperandCode, figures: PerformanceFigures) -> Capabilities:
    own = capabilities()
    return replace(own, operand_performance={**own.operand_performance, code: figures})


@pytest.mark.parametrize(
    ("made", "levels"),
    [
        (capabilities(), [True, True, True, True]),
        (capabilities(relaxed_scalar=SLOW), [False, False, True, True]),
        (capabilities(relaxed_scalar=SLOW, relaxed_tensor=SLOW), [True, True, True, True]),
        (capabilities(if_performance=SLOW), [True, True, True, True]),
        (with_figures(C.FLOAT32, SLOW), [False, False, True, True]),
        (with_figures(C.TENSOR_INT32, SLOW), [False, False, True, True]),
        (with_figures(C.OEM_SCALAR, SLOW), [False, False, True, True]),
        (with_figures(C.TENSOR_FLOAT16, SLOW), [True, True, True, True]),
    ],
)
def test_capabilities_are_compliant_if_a_level_can_say_those_of_its_types(
    made: Capabilities, levels: list[bool]
) -> None:
    assert [compliant_with(made, level) for level in (27, 28, 29, 30)] == levels


def test_the_first_levels_have_one_pair_of_figures_for_floats_and_one_for_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = with_figures(C.INT32, SLOW)
    assert convert_to(capabilities(), 28) == capabilities()
    assert not caplog.records
    assert convert_to(changed, 28).operand_performance[C.INT32] == TWO
    assert [r.message for r in caplog.records] == [
        "convert_to: feature level 28 cannot say all of the device's capabilities"
    ]
    assert convert_to(capabilities(relaxed_tensor=SLOW), 28).relaxed_scalar == SLOW
    assert convert_to(capabilities(relaxed_tensor=SLOW), 27).relaxed_tensor == ONE


def test_level_29_drops_what_came_after_it() -> None:
    newest = capabilities(if_performance=ONE, extension_performance={"com.a.b": ONE})
    table = {**newest.operand_performance, C.TENSOR_QUANT8_ASYMM_SIGNED: ONE, C.BOOL: ONE}
    reduced = convert_to(replace(newest, operand_performance=table), 29)
    assert C.TENSOR_QUANT8_ASYMM_SIGNED not in reduced.operand_performance
    assert reduced.operand_performance[C.BOOL] == ONE
    assert reduced.if_performance == UNKNOWN_PERFORMANCE
    assert reduced.extension_performance == {"com.a.b": ONE}


def test_a_table_has_every_type_but_models_and_extensions() -> None:
    table = non_extension_operand_performance(TWO)
    assert set(table) == set(OperandCode) - {C.MODEL}
    assert set(table.values()) == {TWO}


def test_an_update_changes_one_type_and_leaves_the_table_as_it_was() -> None:
    table = non_extension_operand_performance(TWO)
    updated = update_performance(table, C.BOOL, ONE)
    assert [code for code in table if table[code] != updated[code]] == [C.BOOL]
    with fails(ResultCode.BAD_DATA, "the table has no such type.*got 15|MODEL"):
        update_performance(table, C.MODEL, ONE)


def test_a_type_that_is_missing_has_the_figures_of_the_next_one() -> None:
    table = {C.TENSOR_OEM_BYTE: TWO, C.FLOAT32: ONE, C.OEM_SCALAR: SLOW}
    assert lookup_performance(table, C.FLOAT32) == ONE
    assert lookup_performance(table, C.TENSOR_QUANT8_ASYMM) == SLOW
    assert lookup_performance(table, C.TENSOR_OEM_BYTE) == TWO
    assert lookup_performance(table, C.TENSOR_OEM_BYTE + 1) == UNKNOWN_PERFORMANCE
    assert lookup_performance({}, C.FLOAT32) == UNKNOWN_PERFORMANCE


@pytest.mark.parametrize(
    ("code", "is_one"), [(0, False), (0xFFFF, False), (10001, False), (0x10000, True)]
)
def test_codes_above_16_bits_are_extensions(code: int, is_one: bool) -> None:
    assert is_extension_operand_type(code) is is_one
    assert is_extension_operation_type(code) is is_one


SIZES = (4, 4, 4, 4, 4, 1, 1, 2, 2, 1, 2, 1, 2, 1, 1, 0)
SCALARS = (C.FLOAT32, C.INT32, C.UINT32, C.BOOL, C.FLOAT16, C.MODEL, C.OEM_SCALAR)


@pytest.mark.parametrize("code", list(OperandCode))
def test_scalars_have_no_dimensions_and_each_type_its_size(code: OperandCode) -> None:
    assert is_scalar_type(code) is (code in SCALARS)
    if code < len(SIZES):
        dimensions: Sequence[int] = () if code in SCALARS else (3, 5)
        assert size_of_data(code, dimensions) == SIZES[code] * (1 if code in SCALARS else 15)
    assert has_unspecified_dimensions(code, ()) is (code not in SCALARS)
    if code not in SCALARS:
        assert size_of_data(code, ()) == size_of_data(code, (0, 2)) == 0
        assert has_unspecified_dimensions(code, (2, 0))
        assert not has_unspecified_dimensions(code, (2, 1))


def test_a_size_has_32_bits() -> None:
    assert size_of_data(C.TENSOR_QUANT8_ASYMM, (0xFFFFFFFF,)) == 0xFFFFFFFF
    with fails(ResultCode.BAD_DATA, "at most 4294967295 bytes; got 4294967296 bytes"):
        size_of_data(C.TENSOR_FLOAT32, (1 << 15, 1 << 15))


@pytest.mark.parametrize("code", [16, -1, 0x10000])
def test_of_other_types_nothing_is_known(code: int) -> None:
    for function in (is_scalar_type, size_of_data):
        with fails(ResultCode.BAD_DATA, "this is not a type of NNAPI"):
            function(code)


@pytest.mark.parametrize(
    ("index", "length", "needed"),
    [(3, 1, 0), (3, 2, 1), (4, 2, 0), (5, 3, 1), (5, 4, 3), (6, 100, 2), (8, 100, 0)],
)
def test_elements_are_aligned_to_two_or_four_bytes(index: int, length: int, needed: int) -> None:
    assert align_bytes_needed(index, length) == needed
