"""Samples: a .tflite file of one operator in one kind of elements, with inputs for it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armpy.ops.operation import Array
from armpy_testing.models.tflite_writer import OptionValue, Sparsity, Subgraph, Tensor, TfliteModel

DTYPES: Mapping[str, type[np.generic]] = {
    "FLOAT32": np.float32,
    "FLOAT16": np.float16,
    "FLOAT64": np.float64,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "INT4": np.int8,
    "STRING": np.object_,
}

QUANTIZED = ("INT8 quantised", "UINT8 quantised", "INT16 quantised")
PLAIN = tuple(name for name in DTYPES if name != "INT4")
EVERY = (*PLAIN, *QUANTIZED)
SCALED = tuple(kind for kind in EVERY if kind not in ("INT8", "UINT8", "INT16"))
"""Kinds of elements: a type of the schema, and whether it has a scale."""


@dataclass(frozen=True)
class Arg:
    """A tensor of a sample; an output has no values."""

    type: str  # in the schema
    values: Array | None = None
    scale: float | Sequence[float] | None = None
    zero_point: int = 0
    axis: int = 0
    is_constant: bool = False
    is_variable: bool = False
    raw: bytes | None = None  # stored bytes of a constant, where those are not its values
    sparsity: Sparsity | None = None
    shape: tuple[int, ...] = ()

    @property
    def constant(self) -> Arg:
        """The same as a constant of the file."""
        return replace(self, is_constant=True)

    def along(self, axis: int) -> Arg:
        """The same with its scales along an axis, and zero points of 0."""
        return replace(self, axis=axis, zero_point=0)

    def write(self, graph: Subgraph, name: str) -> Tensor:
        """Add the tensor to a subgraph."""
        data: Array | bytes | None = self.values if self.raw is None else self.raw
        if self.type == "STRING" and self.is_constant and self.values is not None:
            data = string_bytes(self.values)
        return graph.tensor(
            name,
            self.shape if self.values is None else self.values.shape,
            self.type,
            scale=self.scale,
            zero_point=None if self.scale is None else self.zero_point,
            axis=self.axis,
            data=data if self.is_constant else None,
            variable=self.is_variable,
            sparsity=self.sparsity,
        )


@dataclass(frozen=True)
class Sample:
    """A file and what to run it with."""

    operator: str
    kind: str
    number: int  # of the samples of one operator and kind
    file: bytes
    inputs: Sequence[Array]
    is_random: bool = False  # whether only types and shapes of the outputs can be compared
    steps: int = 0  # by how many steps integers of the outputs may differ
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return f"{self.operator} {self.kind} {self.number}"


class Draw:
    """Tensors made of chance.

    `operator`, `kind`: they are the seed, too.
    """

    def __init__(self, operator: str, kind: str) -> None:
        self.operator = operator
        self.kind = kind
        self.rng = np.random.default_rng(zlib.crc32(f"{operator} {kind}".encode()))

    def __call__(
        self,
        *shape: int,
        kind: str = "",
        low: float | None = None,
        high: float | None = None,
        scale: float | Sequence[float] | None = None,
        zero_point: int | None = None,
    ) -> Arg:
        """A tensor of the kind with elements of a range."""
        type_name, is_quantized = _split(kind or self.kind)
        values = self._values(type_name, is_quantized, shape, low, high)
        arg = Arg(type_name, values, shape=shape)
        return _quantized(arg, scale, zero_point) if is_quantized else arg

    def out(self, kind: str = "", scale: float | None = None, zero_point: int | None = None) -> Arg:
        """An output of the kind."""
        type_name, is_quantized = _split(kind or self.kind)
        arg = Arg(type_name)
        return _quantized(arg, scale, zero_point) if is_quantized else arg

    def _values(
        self,
        type_name: str,
        is_quantized: bool,
        shape: tuple[int, ...],
        low: float | None,
        high: float | None,
    ) -> Array:
        """Elements of a type."""
        dtype = np.dtype(DTYPES[type_name])
        if type_name == "STRING":
            words = np.array([b"a", b"bc", b"", b"def gh", b"a b c d"], object)
            return np.asarray(words[self.rng.integers(0, len(words), shape)], object)
        if dtype.kind == "b":
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind == "c":
            pair = self.rng.normal(size=(2, *shape))
            return np.asarray(pair[0] + 1j * pair[1], dtype)
        if dtype.kind == "f":
            numbers = self.rng.uniform(
                -4 if low is None else low, 4 if high is None else high, shape
            )
            return np.asarray(numbers, dtype)
        if is_quantized and low is None and high is None:
            reach = np.iinfo(dtype)
            return self.rng.integers(reach.min, reach.max, shape, dtype, endpoint=True)
        least = (0 if dtype.kind == "u" else -7) if low is None else int(low)
        return self.rng.integers(least, 8 if high is None else int(high), shape).astype(dtype)


def _split(kind: str) -> tuple[str, bool]:
    """Type in the schema, and whether it has a scale."""
    return kind.removesuffix(" quantised"), kind.endswith(" quantised")


def _quantized(arg: Arg, scale: float | Sequence[float] | None, zero_point: int | None) -> Arg:
    """The tensor with a scale."""
    usual = {"INT8": (0.05, -3), "UINT8": (0.05, 125), "INT16": (0.0003, 0)}
    own_scale, own_point = usual.get(arg.type, (0.5, 0))
    chosen = own_scale if scale is None else scale
    return replace(arg, scale=chosen, zero_point=own_point if zero_point is None else zero_point)


def string_bytes(words: Array) -> bytes:
    """Texts as a constant stores them: their number, where they begin and end, then the texts."""
    flat = [bytes(word) for word in np.asarray(words, object).reshape(-1)]
    ends = np.cumsum([0, *map(len, flat)]) + 4 * (len(flat) + 2)
    return np.array([len(flat), *ends], "<i4").tobytes() + b"".join(flat)


def ints(*values: int, kind: str = "INT32", shape: tuple[int, ...] | None = None) -> Arg:
    """A constant of whole numbers: a vector, unless a shape is given."""
    array = np.array(values, DTYPES[kind])
    return Arg(kind, array if shape is None else array.reshape(shape), is_constant=True)


def file_of(
    operator: str,
    inputs: Sequence[Arg | None],
    outputs: Sequence[Arg],
    options: Mapping[str, OptionValue] | None = None,
    version: int = 1,
    options_table: str | None = None,
    custom: tuple[str, bytes] | None = None,
) -> tuple[bytes, list[Array]]:
    """A file of one operator, and the inputs to run it with."""
    model = TfliteModel()
    graph = model.subgraph()
    read = [None if a is None else a.write(graph, f"in{i}") for i, a in enumerate(inputs)]
    written = [arg.write(graph, f"out{i}") for i, arg in enumerate(outputs)]
    graph.operator(
        operator if custom is None else "CUSTOM",
        read,
        written,
        options,
        version=version,
        options_table=options_table,
        custom_code=None if custom is None else custom[0],
        custom_options=None if custom is None else custom[1],
    )
    tensors = [
        (tensor, arg.values)
        for tensor, arg in zip(read, inputs, strict=True)
        if tensor is not None and arg is not None and not (arg.is_constant or arg.is_variable)
    ]
    graph.inputs(*(tensor for tensor, _ in tensors))
    graph.outputs(*written)
    return model.to_bytes(), [values for _, values in tensors if values is not None]


@dataclass(frozen=True)
class One:
    """A sample of one operator, before it has a name."""

    inputs: Sequence[Arg | None]
    outputs: Sequence[Arg]
    options: Mapping[str, OptionValue] | None = None
    version: int = 1
    is_random: bool = False  # as of `Sample`
    steps: int = 0
    tolerance: float = 1e-5
    options_table: str | None = None
    custom: tuple[str, bytes] | None = None

    def sample(self, operator: str, kind: str, number: int) -> Sample:
        """The sample."""
        file, inputs = file_of(
            operator,
            self.inputs,
            self.outputs,
            self.options,
            self.version,
            self.options_table,
            self.custom,
        )
        rest = (self.is_random, self.steps, self.tolerance)
        return Sample(operator, kind, number, file, inputs, *rest)


@dataclass(frozen=True)
class Whole:
    """A sample whose file takes more than one operator."""

    file: bytes
    inputs: Sequence[Array]
    steps: int = 0
    is_random: bool = False
    tolerance: float = 1e-5

    def sample(self, operator: str, kind: str, number: int) -> Sample:
        """The sample."""
        rest = (self.is_random, self.steps, self.tolerance)
        return Sample(operator, kind, number, self.file, self.inputs, *rest)


Maker = Callable[[str, Draw], Iterator["One | Whole"]]
"""Makes the samples of an operator in a kind of elements; none where that makes no sense."""

Family = list[tuple[Sequence[str], Sequence[str], Maker]]
"""Operators, kinds of elements, and what makes their samples."""


def samples_of(family: Family) -> Iterator[Sample]:
    """Every sample of a family."""
    for operators, kinds, make in family:
        for operator in operators:
            for kind in kinds:
                for number, one_sample in enumerate(make(operator, Draw(operator, kind))):
                    yield one_sample.sample(operator, kind, number)
