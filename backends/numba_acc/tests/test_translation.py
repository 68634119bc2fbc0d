"""How kernels are translated: by a target of NumbaAcc's own, which compiles nothing."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest
from armpy_numba_acc import native
from armpy_numba_acc.llvm import build, steps
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.llvm.compiler import Function, compile_kernel
from armpy_numba_acc.llvm.pointers import load_f32, load_i64, store_f32, store_i64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.values import F32, Code
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.host import known_isas
from numba.core.bytecode import ByteCode, FunctionIdentity

_NONE = float("nan")

_ALONE = """
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.host import known_isas
from numba.core.registry import cpu_target
build_kernel(Kernel("pad_image"), known_isas()[0])
assert not cpu_target.typing_context._functions, "Numba's own target was set up"
"""


def _run(function: Function, name: str, numbers: np.ndarray) -> None:
    """Compile a function and run it on some numbers."""
    code = compile_kernel(function, name, known_isas()[0])
    address = native.load_objects({name: code})[name]
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    run(numbers.ctypes.data, 0, 1)


def _extremes_of_integers(args: int, shares: int, num_shares: int) -> None:
    first, second, third = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
    store_i64(args, 3, min(first, second, third))
    store_i64(args, 4, max(first, second, third))


def _extremes_of_floats(args: int, shares: int, num_shares: int) -> None:
    first, second = load_f32(args, 0), load_f32(args, 1)
    store_f32(args, 2, min(first, second))
    store_f32(args, 3, max(first, second))


@inlined
def _sign(number: int) -> int:
    if number < 0:
        return -1
    return 1 if number else 0


@inlined
def _rounded(number: int, by: int, is_up: bool) -> tuple[int, int]:
    """A multiple of `by`, and how often a step of 1 was taken to it."""
    steps = 0
    while number % by != 0:
        number += _sign(1 if is_up else -1)
        steps += 1
    return number, steps * _sign(by)


def _multiples(args: int, shares: int, num_shares: int) -> None:
    number = load_i64(args, 0)
    lower, down = _rounded(number, 10, is_up=False)
    upper, up = _rounded(by=10, is_up=True, number=number)
    store_i64(args, 1, lower)
    store_i64(args, 2, upper)
    store_i64(args, 3, _sign(number) * 100 + 10 * down + up)


def _text_of_a_number(args: int, shares: int, num_shares: int) -> None:
    store_i64(args, 0, len(str(shares)))


@pytest.mark.parametrize("given", [(1, 2, 3), (3, -2, 1), (-(2**63), 2**63 - 1, 0)])
def test_extremes_of_integers_are_pythons(given: tuple[int, ...]) -> None:
    numbers = np.array([*given, 0, 0], np.int64)
    _run(_extremes_of_integers, "extremes_of_integers", numbers)
    assert [*numbers[3:]] == [min(given), max(given)]


@pytest.mark.parametrize("given", [(1.5, -2.5), (-0.0, 0.0), (_NONE, 1.0), (1.0, _NONE)])
def test_extremes_of_floats_are_pythons_with_nan_and_zeros_of_both_signs(
    given: tuple[float, float],
) -> None:
    numbers = np.array([*given, 0, 0], np.float32)
    _run(_extremes_of_floats, "extremes_of_floats", numbers)
    expected = np.array([min(given), max(given)], np.float32)
    assert numbers[2:].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("number", "expected"), [(37, (30, 40, 173)), (-31, (-40, -30, -9)), (0, (0, 0, 0))]
)
def test_inlined_functions_compute_as_python_does_and_leave_the_callers_variables(
    number: int, expected: tuple[int, ...]
) -> None:
    numbers = np.array([number, 0, 0, 0], np.int64)
    _run(_multiples, "multiples", numbers)
    assert (*numbers,) == (number, *expected)


def test_a_function_is_read_once_however_often_it_is_inlined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def byte_code(identity: FunctionIdentity) -> ByteCode:
        read.append(identity.func_name)
        return ByteCode(identity)

    monkeypatch.setattr(steps, "ByteCode", byte_code)
    steps._BLOCKS.clear()
    for _ in range(2):
        compile_kernel(_multiples, "multiples", known_isas()[0])
    assert read == ["_rounded", "_sign"]


def test_vectors_of_constants_are_shared_but_for_zeros_of_other_signs() -> None:
    code = Code(None)
    first, again, other = (code.numbers(F32, [1.0, zero]).value for zero in (0.0, 0.0, -0.0))
    assert first is again
    assert str(first) != str(other)


@pytest.mark.slow
def test_numbas_own_target_is_not_set_up() -> None:
    subprocess.run([sys.executable, "-c", _ALONE], check=True)


def test_a_kernel_calls_nothing_that_numba_would_compile() -> None:
    with pytest.raises(TypeError, match="write a primitive"):
        compile_kernel(_text_of_a_number, "text_of_a_number", known_isas()[0])


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_collections_of_garbage_are_as_before_when_a_kernel_is_built(
    is_enabled: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[bool] = []

    def compiled(*_: object) -> bytes:
        states.append(gc.isenabled())
        if fails:
            raise RuntimeError("cannot be compiled")
        return b""

    monkeypatch.setattr(build, "compile_kernel", compiled)
    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        if fails:
            with pytest.raises(RuntimeError, match="cannot be compiled"):
                build_kernel(Kernel("flip"), known_isas()[0])
        else:
            build_kernel(Kernel("flip"), known_isas()[0])
        assert (states, gc.isenabled()) == ([False], is_enabled)
    finally:
        (gc.enable if was_enabled else gc.disable)()
