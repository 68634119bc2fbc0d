"""Request for the inputs of a model, as a command line gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from armpy.cli.values import Shapes
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, did_you_mean


@dataclass(frozen=True, slots=True)
class InputRequest:
    """Inputs of a model as a command line gives them, besides pictures."""

    arrays: tuple[str, ...] = ()
    """Values of ``--input``: each ``NAME=VALUE``, or the value for an only input."""
    quantize_inputs: bool = False
    """Whether real numbers for quantised inputs are quantised."""
    shape_sets: Sequence[Shapes] = ()
    """Sets of shapes by name; most commands take one."""
    size: tuple[int, int] | None = None
    """Height and width of images where the model leaves them open."""
    batch: int | None = None
    """First size of inputs where the model leaves it open."""
    seed: int = 0
    """Seed of random inputs."""

    @property
    def shapes(self) -> Shapes:
        """The set of shapes, the first if there are several."""
        return self.shape_sets[0] if self.shape_sets else {}

    @property
    def says_shapes(self) -> bool:
        """Return whether an option says the size of an input."""
        return bool(self.shape_sets) or self.size is not None or self.batch is not None

    def for_each_set(self) -> list[InputRequest]:
        """A request for each set of shapes; none if no option says the size of an input."""
        if not self.says_shapes:
            return []
        return [replace(self, shape_sets=(shapes,)) for shapes in self.shape_sets or ({},)]

    def values(self, names: Sequence[str]) -> dict[str, str]:
        """Values of ``--input`` by the names of inputs, which are all of a model's.

        Raises InvalidArgumentError if a name is not the model's, or comes twice.
        """
        values: dict[str, str] = {}
        for option in self.arrays:
            name, value = split_input(option, names)
            if name in values:
                fix = "Give each input once"
                failed = f"input '{name}' is given twice"
                raise InvalidArgumentError(failed, where="--input", fix=fix)
            values[name] = value
        return values


def split_input(option: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``NAME=VALUE``; names may hold any character, and an only input needs no name.

    Raises InvalidArgumentError if the name is none of the model's, or the value is missing.
    """
    fitting = [name for name in names if option.startswith(f"{name}=")]
    if not fitting and len(names) == 1 and ("=" not in option or Path(option).is_file()):
        return names[0], option
    if not fitting:
        named = option.partition("=")[0]
        raise InvalidArgumentError(
            "the model has no such input" if "=" in option else "not of the form NAME=VALUE",
            where="--input",
            expected="one of " * (len(names) > 1) + ", ".join(map(repr, names)),
            actual=f"'{named}'",
            fix=did_you_mean(named, names, "Write --input NAME=VALUE"),
        )
    name = max(fitting, key=len)
    return name, option[len(name) + 1 :]
