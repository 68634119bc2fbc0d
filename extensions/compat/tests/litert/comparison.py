"""Answers of `armpy_compat.litert` beside those of the installed LiteRT, for one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy import DataType, TensorInfo
from armpy.ops.tolerance import FLOAT32, TOLERANCES, Tolerance, compare
from armpy_compat.litert.interpreter import Interpreter

Details = dict[str, Any]
Array = npt.NDArray[Any]

SHAPES = {"shape", "shape_signature"}
KEYS = {
    *SHAPES,
    "name",
    "index",
    "dtype",
    "quantization",
    "quantization_parameters",
    "sparsity_parameters",
}

WHOLE_MODEL = Tolerance(16 * FLOAT32.absolute, 64 * FLOAT32.relative)
"""For floats after many layers, relative to the largest element of the output."""


class Comparison:
    """Both interpreters of one model, asked the same.

    Attributes
    ----------
    queries : int
        How many answers were compared.
    found : list of str
        Those that differ.
    """

    def __init__(self, path: Path, litert: ModuleType) -> None:
        self.peer = litert.Interpreter(model_path=str(path), num_threads=1)
        self._reference = litert.Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
        )
        self.own = Interpreter(model_path=str(path), num_threads=1)
        self.queries = 0
        self.found: list[str] = []
        self._random = np.random.default_rng(0)

    def run(self) -> list[str]:
        """Ask everything; returns what differs."""
        self._same("signatures", self.peer.get_signature_list(), self.own.get_signature_list())
        full = self.peer._get_full_signature_list()
        self._same("signature indexes", full, self.own._get_full_signature_list())
        self._same("subgraphs", self.peer.num_subgraphs(), self.own.num_subgraphs())
        self._operators()
        self._details("before allocation")
        self._refusals()
        if not self._both("allocate_tensors", "allocate_tensors"):
            return self.found
        self._details("after allocation")
        if self._run("as the file has it"):
            self._details("after a run")
            self._rows()
        self._signatures()
        return self.found

    def _same(self, query: str, expected: object, actual: object) -> None:
        """Compare two answers."""
        self.queries += 1
        if not _equal(expected, actual):
            self.found.append(f"{query}: expected {_short(expected)}; got {_short(actual)}")

    def _both(self, query: str, method: str, *arguments: object) -> bool:
        """Ask both what may raise; whether neither does."""
        answers = [_error_of(getattr(side, method), *arguments) for side in (self.peer, self.own)]
        self.queries += 1
        if type(answers[0]) is not type(answers[1]):
            self.found.append(f"{query}: expected {answers[0]!r:.120}; got {answers[1]!r:.200}")
        return answers[0] is None and answers[1] is None

    def _operators(self) -> None:
        self._same("operators", self.peer._get_ops_details(), self.own._get_ops_details())

    def _details(self, when: str) -> None:
        """Compare descriptions of tensors."""
        for query in ("get_input_details", "get_output_details"):
            pairs = zip(getattr(self.peer, query)(), getattr(self.own, query)(), strict=True)
            for expected, actual in pairs:
                self._tensor(f"{query} {when}", expected, actual)
        for subgraph in range(self.peer.num_subgraphs()):
            own = self.own.get_tensor_details(subgraph)
            # LiteRT's kernels add tensors of their own at the end.
            for expected, actual in zip(self.peer.get_tensor_details(subgraph), own, strict=False):
                keys = KEYS if when == "before allocation" else {"name", "index", "dtype"}
                self._tensor(f"get_tensor_details {when}", expected, actual, keys)

    def _tensor(
        self, query: str, expected: Details, actual: Details, keys: set[str] = KEYS
    ) -> None:
        for key in sorted(keys):
            name = f"{query}, tensor {expected['index']} {key}"
            self._same(name, expected[key], actual[key])

    def _refusals(self) -> None:
        """Compare what is refused, and with which error."""
        for details in self.peer.get_input_details():
            index, shape = details["index"], [int(size) for size in details["shape"]]
            value = np.zeros([*shape, 1, 1], np.float32)
            self._both("set_tensor", "set_tensor", index, value)
            self._both("get_tensor early", "get_tensor", index)
            for axis in range(len(shape)):
                other = [size + (k == axis) for k, size in enumerate(shape)]
                self._both("resize strictly", "resize_tensor_input", index, other, True)
                self._both("resize back", "resize_tensor_input", index, shape)
        self._both("invoke early", "invoke")
        self._both("get_tensor of none", "get_tensor", 10**6)

    def _run(self, when: str) -> bool:
        """Run both on the same inputs, and compare the outputs."""
        values = {d["index"]: self._input(d) for d in self.peer.get_input_details()}
        for index, value in values.items():
            for side in (self.peer, self.own):
                side.set_tensor(index, value)
        if not self._both(f"invoke {when}", "invoke"):
            return False
        for details in self.peer.get_output_details():
            index = details["index"]
            expected = _error_of(self.peer.get_tensor, index)
            if expected is None:
                pair = self.peer.get_tensor(index), self.own.get_tensor(index)
                reference = partial(self._of_reference, values, index)
                self._output(f"output {index} {when}", details, *pair, reference)
        return True

    def _of_reference(self, values: Mapping[int, Array], output: int) -> Array:
        """LiteRT's answer with its reference kernels, which round as armpy does."""
        for index, value in values.items():
            self._reference.resize_tensor_input(index, value.shape)
        self._reference.allocate_tensors()
        for index, value in values.items():
            self._reference.set_tensor(index, value)
        self._reference.invoke()
        return np.asarray(self._reference.get_tensor(output))

    def _rows(self) -> None:
        """Run with twice the rows where LiteRT takes them."""
        for details in self.peer.get_input_details():
            shape = [int(size) for size in details["shape"]]
            if not shape:
                return
            new = [2 * shape[0], *shape[1:]]
            index = details["index"]
            self._both("resize", "resize_tensor_input", index, new)
        if _error_of(self.peer.allocate_tensors) is not None:
            return
        if self._both("allocate_tensors of rows", "allocate_tensors"):
            self._run("of twice the rows")

    def _signatures(self) -> None:
        """Compare what signatures describe and return."""
        for name in self.peer.get_signature_list():
            peer, own = self.peer.get_signature_runner(name), self.own.get_signature_runner(name)
            inputs = peer.get_input_details()
            for query in ("get_input_details", "get_output_details"):
                expected, actual = getattr(peer, query)(), getattr(own, query)()
                for key in expected:
                    self._tensor(
                        f"signature {name} {query}", expected[key], actual[key], KEYS - SHAPES
                    )
            values = {key: self._input(details) for key, details in inputs.items()}
            failed = [_error_of(runner, **values) for runner in (peer, own)]
            self._same(f"signature {name} raises", type(failed[0]), type(failed[1]))
            if failed == [None, None]:
                outputs = peer.get_output_details()
                expected, actual = peer(**values), own(**values)
                is_main = peer._subgraph_index == 0
                by_index = {inputs[key]["index"]: value for key, value in values.items()}
                for key in expected:
                    reference = partial(self._of_reference, by_index, outputs[key]["index"])
                    self._output(
                        f"signature {name} {key}",
                        outputs[key],
                        expected[key],
                        actual[key],
                        reference if is_main else None,
                    )

    def _input(self, details: Details) -> Array:
        """Random elements for an input."""
        shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
        if dtype.kind == "S":
            return np.full(shape, "word", object)
        if dtype.kind in "iu":
            # Token numbers and counts are small; quantised values take the whole range.
            low, high = (0, 10) if details["quantization"] == (0.0, 0) else _range(dtype)
            return self._random.integers(low, high, shape, endpoint=True).astype(dtype)
        if dtype.kind == "b":
            return self._random.integers(0, 2, shape).astype(dtype)
        return self._random.standard_normal(shape).astype(dtype)

    def _output(
        self,
        query: str,
        details: Details,
        expected: Array,
        actual: Array,
        reference: Callable[[], Array] | None = None,
    ) -> None:
        """Compare an output by the project's tolerance with what one kind of kernels gives."""
        self.queries += 1
        expected, actual = np.asarray(expected), np.asarray(actual)
        difference = compare(expected, actual, _info(details, expected), _tolerance(expected))
        if difference is not None and reference is not None:
            other = reference()
            difference = compare(other, actual, _info(details, other), _tolerance(other))
        if difference is not None:
            self.found.append(f"{query}: {difference}")


def _tolerance(expected: Array) -> Tolerance | None:
    """The tolerance of a whole model, where its type has one of its own."""
    if expected.dtype != np.float32 or not expected.size:
        return None
    largest = float(np.nanmax(np.abs(expected), initial=1.0))
    return Tolerance(WHOLE_MODEL.absolute * largest, WHOLE_MODEL.relative)


def _info(details: Details, expected: Array) -> TensorInfo:
    """The tensor of an output."""
    quantized = {
        "int8": DataType.QASYMM_S8,
        "uint8": DataType.QASYMM_U8,
        "int16": DataType.QSYMM_S16,
    }
    plain = {kind.dtype: kind for kind in TOLERANCES if not kind.is_quantized}
    name = str(expected.dtype)
    is_quantized = details["quantization"] != (0.0, 0) and name in quantized
    data_type = quantized[name] if is_quantized else plain.get(expected.dtype, DataType.FLOAT32)
    return TensorInfo(expected.shape, data_type)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _error_of(ask: Callable[..., object], *arguments: object, **named: object) -> Exception | None:
    """The error that asking raises."""
    try:
        ask(*arguments, **named)
    except (ValueError, RuntimeError) as error:
        return error
    return None


def _equal(expected: object, actual: object) -> bool:
    """Whether two answers are the same, types and element types included."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        return expected.dtype == actual.dtype and np.array_equal(expected, actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [*expected] == [*actual] and all(_equal(expected[k], actual[k]) for k in expected)
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_equal(a, b) for a, b in pairs)
    return bool(expected == actual)


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) < 100 else f"{text[:100]} ..."
