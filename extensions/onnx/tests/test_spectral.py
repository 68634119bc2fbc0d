"""Transforms to frequencies of ONNX files, held against ONNX Runtime and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy

_RNG = np.random.default_rng(3)


def _signal(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _whole(number: int) -> Array:
    return np.array(number, np.int64)


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", ["none", "constant", "given"])
def test_short_frames_are_those_of_onnx_runtime(backend: str, onesided: int, window: str) -> None:
    shape = np.hanning(16).astype(np.float32)
    arrays = [_signal(2, 100, 1), _whole(5), None if window == "none" else shape, _whole(16)]
    constants = (1, 3) if window == "given" else (1, 2, 3)
    case = NodeCase("STFT", arrays, {"onesided": onesided}, 17, constants)
    assert_agree(case, (backend, "CpuRef"))


def test_frames_of_complex_signals_are_transformed() -> None:
    signal = _signal(1, 40, 2)
    inputs = [signal, _whole(8), None, _whole(16)]
    (spectrum,) = run_armpy(NodeCase("STFT", inputs, {"onesided": 0}, 17, (1, 3)))
    numbers = signal[0, :, 0] + 1j * signal[0, :, 1]
    wanted = np.fft.fft(np.stack([numbers[at : at + 16] for at in (0, 8, 16, 24)]))
    np.testing.assert_allclose(spectrum[0, ..., 0] + 1j * spectrum[0, ..., 1], wanted, atol=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [0, 20])  # as the axis, and longer
@pytest.mark.parametrize("is_onesided", [0, 1])
def test_short_signals_are_transformed_by_numba_acc(
    is_onesided: int, length: int, parts: int
) -> None:
    signal, size = _signal(2, 12, 3, parts), length or 12
    numbers: Any = signal[..., 0] + (1j * signal[..., 1] if parts == 2 else 0)
    wanted = np.fft.fft(numbers, size, axis=1)[:, : size // 2 + 1 if is_onesided else size]
    inputs = [signal, _whole(length) if length else None, _whole(1)]
    case = NodeCase("DFT", inputs, {"onesided": is_onesided}, 20, (1, 2))
    (spectrum,) = run_armpy(case, ("NumbaAcc",))
    np.testing.assert_allclose(spectrum[..., 0] + 1j * spectrum[..., 1], wanted, atol=2e-5)


def test_what_is_cut_off_counts_for_nothing() -> None:
    signal = _signal(1, 12, 1)
    signal[:, 9:] = np.nan
    case = NodeCase("DFT", [signal, _whole(9), _whole(1)], {}, 20, (1, 2))
    (spectrum,) = run_armpy(case, ("NumbaAcc", "CpuRef"))
    wanted = np.fft.fft(signal[:, :9, 0], axis=1)
    result = spectrum[..., 0] + 1j * spectrum[..., 1]
    np.testing.assert_allclose(result.reshape(wanted.shape), wanted, atol=2e-5)


def test_long_frames_are_transformed_without_a_matrix() -> None:
    signal = _signal(1, 9000, 1)
    inputs = [signal, _whole(500), None, _whole(8000)]
    (spectrum,) = run_armpy(NodeCase("STFT", inputs, {}, 17, (1, 3)))
    wanted = np.fft.rfft(np.stack([signal[0, at : at + 8000, 0] for at in (0, 500, 1000)]))
    np.testing.assert_allclose(spectrum[0, ..., 0] + 1j * spectrum[0, ..., 1], wanted, atol=1e-3)


@pytest.mark.parametrize(
    "numbers", [(8, 16, 8192, 0.0, 4096.0), (40, 512, 16000, 20.0, 7600.0), (3, 7, 100, 1.0, 40.0)]
)
def test_weights_of_mels_are_those_of_onnx_runtime(numbers: tuple[Any, ...]) -> None:
    sizes = [_whole(number) for number in numbers[:3]]
    edges = [np.array(edge, np.float32) for edge in numbers[3:]]
    assert_agree(NodeCase("MelWeightMatrix", [*sizes, *edges], {}, 17, (1, 2, 3, 4)))


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("STFT", [_signal(1, 10, 1), _whole(0), None, _whole(4)], "the step is not positive"),
        (
            "STFT",
            [_signal(1, 10, 1), _whole(1), None, _whole(11)],
            "the frame's length is out of range",
        ),
        (
            "STFT",
            [_signal(1, 10, 1), _whole(1), _signal(5), _whole(4)],
            "does not have the frame's length",
        ),
        ("DFT", [_signal(1, 10, 1), _whole(-3)], "length is not positive"),
        ("DFT", [_signal(1, 10, 3)], "parts of a number"),
        ("DFT", [_signal(1, 10, 1), _whole(1 << 40)], "memory"),
    ],
)
def test_wrong_operands_name_the_node(kind: str, inputs: list[Array | None], message: str) -> None:
    constants = tuple(range(1, len(inputs)))
    with pytest.raises(ParserError, match=message):
        run_armpy(NodeCase(kind, inputs, {}, 20 if kind == "DFT" else 17, constants))
