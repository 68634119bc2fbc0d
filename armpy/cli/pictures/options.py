"""Command-line options by which pictures become a model's input."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """Options by which pictures become an input: size, resizing, normalisation.

    Parameters
    ----------
    size : tuple of int, optional
        Height and width of images where the model leaves them open.
    resize : {"stretch", "crop", "pad"}
    value_range, mean, std : tuple of float, optional
        How pixels become real numbers; as the model's file says if left out.
    """

    size: tuple[int, int] | None = None
    resize: str = "stretch"
    value_range: tuple[float, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.value_range is not None and (self.mean or self.std):
            raise InvalidArgumentError("--range does not go with --mean and --std")

    @property
    def is_normalizing(self) -> bool:
        """Whether it is said how pixels become real numbers."""
        return bool(self.value_range or self.mean or self.std)
