"""Operations on strings."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import NUMBER_TYPES, Operand, Operation, TypeRule, require, rule
from armpy.ops.shapes import broadcast_shapes
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = [
    "CaseChange",
    "RegexFullMatch",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "TableLookup",
    "Tokenizer",
]

_STRING = DataType.STRING

_KEYS = (DataType.SIGNED64, DataType.SIGNED32, DataType.FLOAT32)
"""Types of numbers that strings are looked up by."""


@dataclass(frozen=True, slots=True)
class TableLookup(Operation):
    """Replace elements that equal a key with its value, others with a default.

    Notes
    -----
    input (...); keys (n), of the input's type; values (n); default, of the values' type, one
    element; output as input, of the values' type. Keys, values or both are strings. The last of
    equal keys counts; NaN equals NaN.

    References
    ----------
    TFLite HASHTABLE_FIND; ONNX LabelEncoder, CategoryMapper.
    """

    requantizes: ClassVar[bool] = False
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("keys", ranks=(1,)),
        Operand("values", ranks=(1,)),
        Operand("default", ranks=(0, 1)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *(rule((_STRING, _STRING, t, t), (t,)) for t in (_STRING, *NUMBER_TYPES)),
        *(rule((t, t, _STRING, _STRING), (_STRING,)) for t in _KEYS),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        (num_keys,), (num_values,) = inputs[1].shape or (None,), inputs[2].shape or (None,)
        require(
            num_keys is None or num_values is None or num_keys == num_values,
            "there is not one value for each key",
            expected=f"{num_keys} values",
            actual=num_values,
        )
        return (inputs[0].shape,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The values' type."""
        return (inputs[2].data_type,)


@dataclass(frozen=True, slots=True)
class StringConcat(Operation):
    """Append strings to strings, element by element.

    Notes
    -----
    lhs (...); rhs (...); output as both broadcast.

    References
    ----------
    ONNX StringConcat.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("lhs"), Operand("rhs"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_STRING, _STRING), (_STRING,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that both inputs broadcast to."""
        return (broadcast_shapes(*(info.shape for info in inputs)),)


@dataclass(frozen=True, slots=True)
class StringSplit(Operation):
    """Split each string at a delimiter.

    Notes
    -----
    input (...); parts (..., most parts of a string), with empty strings after the parts; counts
    int64, as input, the number of parts of each.

    References
    ----------
    ONNX StringSplit; Python ``str.split``.
    """

    delimiter: str = ""
    """Empty for runs of white space, ignored at both ends."""
    max_splits: int = -1
    """Most splits, from the beginning; -1 for any number."""

    has_data_dependent_outputs: ClassVar[bool] = True
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("parts"), Operand("counts"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_STRING,), (_STRING, DataType.SIGNED64)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """An axis more, of unknown size; as the input."""
        shape = inputs[0].shape or ()
        return (*shape, None), shape

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """STRING and SIGNED64."""
        return _STRING, DataType.SIGNED64

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """A number of splits that there can be."""
        require(self.max_splits >= -1, "the number of splits is negative", actual=self.max_splits)


class CaseChange(enum.Enum):
    """Change of letters in `StringNormalizer`."""

    NONE = "NONE"
    LOWER = "LOWER"
    UPPER = "UPPER"


@dataclass(frozen=True, slots=True)
class StringNormalizer(Operation):
    """Remove stop words, and make letters lower or upper case.

    Notes
    -----
    input (n) or (1, n); output as input, with fewer strings: one empty string if none is left.

    References
    ----------
    ONNX StringNormalizer.
    """

    case_change: CaseChange = CaseChange.NONE
    """Change of the remaining strings' case, by Unicode's rules, whatever the locale."""
    is_case_sensitive: bool = False
    """Whether letter case distinguishes words."""
    stop_words: tuple[str, ...] = ()

    has_data_dependent_outputs: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(1, 2)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_STRING,), (_STRING,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """An unknown number of strings."""
        shape = inputs[0].shape or ()
        require(
            len(shape) == 1 or shape[0] in (None, 1),
            "the input is not one row of strings",
            expected="a shape of (n) or (1, n)",
            actual=shape,
        )
        return ((None,) if len(shape) == 1 else (1, None),)


@dataclass(frozen=True, slots=True)
class RegexFullMatch(Operation):
    """Say whether a regular expression matches each string as a whole.

    Notes
    -----
    input (...); output boolean, as input. The time grows at most with the string's length times the
    pattern's.

    References
    ----------
    ONNX RegexFullMatch; RE2, "Syntax".
    """

    pattern: str = ""
    """Regular expression in RE2's syntax."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_STRING,), (DataType.BOOLEAN,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """BOOLEAN."""
        return (DataType.BOOLEAN,)


@dataclass(frozen=True, slots=True)
class Tokenizer(Operation):
    """Divide each string into tokens, by separators or as matches of a regular expression.

    Notes
    -----
    input (n) or (m, n); output (..., most tokens of a string, marks included), with `padding` after
    the tokens; (..., 0) if no string has a token.

    Of the matches that begin first, the longest counts; the search goes on after it. After an empty
    one, or a token that is too short, it goes on one character after its beginning: an empty
    separator drops a character. The time grows at most with the square of a string's length, times
    the patterns'.

    References
    ----------
    ONNX Runtime Tokenizer; RE2, "Syntax".
    """

    separators: tuple[str, ...] = ()
    """Regular expressions between tokens, in the syntax of `RegexFullMatch`; each divides the
    tokens that those before it leave.
    """
    token_pattern: str = ""
    """Regular expression of tokens, used without `separators`."""
    least_characters: int = 1
    """Shorter tokens are dropped; of several separators, after each of them."""
    padding: str = ""
    is_marked: bool = False
    """Whether U+0002 and U+0003 are put around the tokens of each string."""

    has_data_dependent_outputs: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(1, 2)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_STRING,), (_STRING,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """An axis more, of unknown size."""
        return ((*(inputs[0].shape or ()), None),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Patterns either of separators or of tokens, and a length above 0."""
        require(
            bool(self.separators) is not bool(self.token_pattern),
            "there is not one of separators and a pattern of tokens",
            expected="either `separators` or `token_pattern`",
            actual=f"{self.separators!r} and {self.token_pattern!r}"[:_MOST_CHARACTERS],
        )
        require(
            self.least_characters > 0,
            "the least number of a token's characters is not positive",
            expected="1 or more",
            actual=self.least_characters,
        )


_MOST_CHARACTERS = 80
