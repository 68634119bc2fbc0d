"""Options of quantising: the wanted model, and how its ranges are found."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

SCHEMES = ("int8", "int16x8", "float16", "dynamic")
METHODS = ("minmax", "percentile", "entropy", "mse")
IO_TYPES = ("float", "int8", "uint8", "int16")

_IO_OF = {
    "int8": ("float", "int8", "uint8"),
    "int16x8": ("float", "int16"),
    "float16": ("float",),
    "dynamic": ("float",),
}


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """Options of quantising a float model.

    Parameters
    ----------
    scheme : {"int8", "int16x8", "float16", "dynamic"}
        ``int8``: weights and activations of 8 bits; ``int16x8``: weights of 8, activations of 16;
        ``float16``: weights as float16, which are computed with as float32; ``dynamic``: weights
        of 8 bits, activations are quantised while the model runs. The last two need no data.
    method : {"minmax", "percentile", "entropy", "mse"}
        How a tensor's range is found from its values while the data were run: from the least to
        the greatest element; without the outermost elements; where the distribution of the
        quantised elements is nearest to that of the real ones (Kullback-Leibler); where the mean
        squared error is least.
    percentile : float
        Per cent of the elements that stay within the range of ``percentile``.
    per_channel : bool
        Whether each output channel of the weights has a scale of its own.
    equalize : bool
        Whether channels between two weighted layers are first brought to like ranges.
    correct_bias : bool
        Whether biases take up what rounding the weights moves the mean of each channel by.
    keep_float : tuple of str
        Names of layers that stay as they are.
    io : {"float", "int8", "uint8", "int16"}
        Type of the quantised model's inputs and outputs that are real numbers.

    Raises
    ------
    InvalidArgumentError
        If a word is none of these, or two do not go together.
    """

    scheme: str = "int8"
    method: str = "mse"
    percentile: float = 99.99
    per_channel: bool = True
    equalize: bool = False
    correct_bias: bool = True
    keep_float: tuple[str, ...] = ()
    io: str = "float"

    def __post_init__(self) -> None:
        _check_word("scheme", self.scheme, SCHEMES)
        _check_word("method", self.method, METHODS)
        _check_word("io", self.io, IO_TYPES)
        _check_word(f"io of {self.scheme}", self.io, _IO_OF[self.scheme])
        if not 50 < self.percentile <= 100:
            raise InvalidArgumentError(
                "the percentile cannot be used",
                where="percentile",
                expected="a number above 50, up to 100",
                actual=f"{self.percentile:g}",
            )

    @property
    def needs_data(self) -> bool:
        """Return whether ranges of activations have to be known."""
        return self.scheme in ("int8", "int16x8")


def _check_word(where: str, actual: str, allowed: tuple[str, ...]) -> None:
    """Check that an option is one of some words."""
    if actual not in allowed:
        raise InvalidArgumentError(
            "the option cannot be used",
            where=where,
            expected=" or ".join(f"'{word}'" for word in allowed),
            actual=repr(actual),
        )
