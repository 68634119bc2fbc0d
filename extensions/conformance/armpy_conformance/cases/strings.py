"""Cases of strings, with answers worked out by hand.

Rules of the contract take none of them: few backends claim strings, and no memory of another kind
than NumPy's holds any.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.ops import (
    CaseChange,
    Cast,
    Comparison,
    ComparisonOperation,
    Concat,
    Gather,
    MurmurHash3,
    RegexFullMatch,
    Reshape,
    Select,
    Slice,
    StringConcat,
    StringNormalizer,
    StringSplit,
    TableLookup,
    Tokenizer,
    Transpose,
)
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput

_S, _I32, _U32, _I64, _BOOL = (
    DataType.STRING,
    DataType.SIGNED32,
    DataType.UNSIGNED32,
    DataType.SIGNED64,
    DataType.BOOLEAN,
)
# Empty ones, ones beyond ASCII and beyond 16 bits, spaces at the ends, and a NUL.
_WORDS = [["a", "Straße", " b "], ["", "日本語", "\U0001f600\0x"]]


@dataclass(frozen=True, slots=True)
class Elements:
    """A tensor written down."""

    values: npt.ArrayLike
    data_type: DataType = _S

    @property
    def array(self) -> Array:
        """Its elements."""
        return np.array(self.values, self.data_type.dtype)

    @property
    def info(self) -> TensorInfo:
        """Its shape and type."""
        return TensorInfo(self.array.shape, self.data_type)


_Line = tuple[str, Operation, list[Elements], list[Elements]]

TABLE: tuple[_Line, ...] = (
    (
        "equal",
        Comparison(),
        [Elements(_WORDS), Elements([["a"], ["日本"]])],
        [Elements([[True, False, False], [False, False, False]], _BOOL)],
    ),
    (
        "not-equal",
        Comparison(ComparisonOperation.NOT_EQUAL),
        [Elements(["x", "ü", "u"]), Elements(["x ", "ü", "ü"])],
        [Elements([True, False, True], _BOOL)],
    ),
    (
        "either",
        Select(),
        [Elements([[True, False, True]], _BOOL), Elements(_WORDS), Elements("-")],
        [Elements([["a", "-", " b "], ["", "-", "\U0001f600\0x"]])],
    ),
    (
        "rows-to-columns",
        Transpose((1, 0)),
        [Elements(_WORDS)],
        [Elements([["a", ""], ["Straße", "日本語"], [" b ", "\U0001f600\0x"]])],
    ),
    (
        "flat",
        Reshape((6,)),
        [Elements(_WORDS)],
        [Elements(["a", "Straße", " b ", "", "日本語", "\U0001f600\0x"])],
    ),
    (
        "columns",
        Concat(1),
        [Elements([["a", "b"], ["", "ü"]]), Elements([["c"], ["a b"]])],
        [Elements([["a", "b", "c"], ["", "ü", "a b"]])],
    ),
    ("column", Slice((0, 1), (2, 1)), [Elements(_WORDS)], [Elements([["Straße"], ["日本語"]])]),
    (
        "by-number",
        Gather(0),
        [Elements(["a", "", "ü"]), Elements([2, 0, 2, 1], _I32)],
        [Elements(["ü", "a", "ü", ""])],
    ),
    ("numbers", Cast(), [Elements([7, -1, 0], _I32)], [Elements(["7", "-1", "0"])]),
    (
        "beside",
        StringConcat(),
        [Elements([["a"], ["ü"]]), Elements(["", "b "])],
        [Elements([["a", "ab "], ["ü", "üb "]])],
    ),
    (
        "upper",
        StringNormalizer(CaseChange.UPPER, False, ("the",)),
        [Elements(["The", "Straße", "é"])],
        [Elements(["STRASSE", "É"])],
    ),
    (
        "at-commas",
        StringSplit(","),
        [Elements(["a,b", "", "ü,"])],
        [Elements([["a", "b"], ["", ""], ["ü", ""]]), Elements([2, 1, 2], _I64)],
    ),
    (
        "whole",
        RegexFullMatch("[a-z]+(\\d|é)"),
        [Elements(["ab1", "ab", "ab12", "\nab1", "aé", "a\u0661"])],
        [Elements([True, False, False, False, True, False], _BOOL)],
    ),
    (
        "at-spaces",
        Tokenizer((" +",), padding="-", is_marked=True),
        [Elements(["a  é", "", " b"])],
        [
            Elements(
                [["\x02", "a", "é", "\x03"], ["\x02", "\x03", "-", "-"], ["\x02", "b", "\x03", "-"]]
            )
        ],
    ),
    (
        "longest",
        Tokenizer((), "[a-z]|[a-z].\\d", 2, "-"),
        [Elements([["ax1b", "c"], ["a\U0001f6002", ""]])],
        [Elements([[["ax1"], ["-"]], [["a\U0001f6002"], ["-"]]])],
    ),
    (
        "hashes",
        MurmurHash3(0x9747B28C),
        [Elements(["aaaa", "abc", "ππππππππ"])],
        [Elements([0x5A97808A, 0xC84A62DD, 0xD58063C1], _U32)],
    ),
    (
        "hashes-of-numbers",
        MurmurHash3(),
        [Elements([0x87654321 - 2**32, 0], _I32)],
        [Elements([0xF55B516B - 2**32, 0x2362F9DE], _I32)],
    ),
    (
        "to-numbers",
        TableLookup(),
        [
            Elements(["b", "B", "a"]),
            Elements(["a", "b", "a"]),
            Elements([1, 2, 3], _I64),
            Elements([-1], _I64),
        ],
        [Elements([2, -1, 3], _I64)],
    ),
    (
        "from-numbers",
        TableLookup(),
        [
            Elements([5, 1, 9], _I64),
            Elements([1, 5], _I64),
            Elements(["one", "five"]),
            Elements("?"),
        ],
        [Elements(["five", "one", "?"])],
    ),
)


def string_cases() -> Iterator[Case]:
    """The lines of the table as cases."""
    for label, operation, inputs, outputs in TABLE:
        yield Case(
            f"{operation.name}/by-hand-strings-{label}/string",
            operation,
            tuple(CaseInput(item.info, item.array) for item in inputs),
            tuple(item.info for item in outputs),
            tuple(item.array for item in outputs),
            is_exact=True,
        )
