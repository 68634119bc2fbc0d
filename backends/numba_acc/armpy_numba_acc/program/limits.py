"""Limits of layers: taps, commands, memory beside its tensors."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy.errors import BackendError
from armpy.graph import Layer

MOST_TAPS = 1 << 16
"""Elements of a window that has a table of them."""

MOST_PARTS = 1024
"""Into how many convolutions one is cut, with strides against it or with groups."""

_FREE_COMMANDS = 4 * MOST_PARTS
_COMMANDS_EACH = 16
"""For each operand."""

_FREE_BYTES = 256 << 20
_TIMES = 64
"""Memory that a layer may take in the arena and among the constants, and how many times that of
its tensors it may in any case."""


class GivenBackError(BackendError):
    """A layer turned out, when it was lowered, to be one for another backend."""

    def __init__(self, failed: str, layer: Layer, *, expected: str, actual: str) -> None:
        super().__init__(failed, where=layer.where, expected=expected, actual=actual)
        self.layer = layer


class TooLargeError(GivenBackError):
    """A layer would take far more than its tensors do."""

    def __init__(self, layer: Layer, what: str, most: int, needed: int) -> None:
        super().__init__(
            f"the layer takes too much {what}",
            layer,
            expected=f"at most {most}",
            actual=str(needed),
        )


@dataclass
class LayerUsage:
    """Count of commands and bytes of the layer that is lowered.

    Lowerings refuse layers that they know to be large. This is for the others: nothing that a
    file says may take all memory, or for ever, before anybody asks how much there is.
    """

    layer: Layer | None = None
    num_commands: int = 0
    num_bytes: int = 0
    most_commands: int = 0
    most_bytes: int = 0

    def begin(self, layer: Layer) -> None:
        """Count for the next layer, and those that are computed with it."""
        infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
        self.layer, self.num_commands, self.num_bytes = layer, 0, 0
        self.most_commands = _FREE_COMMANDS + _COMMANDS_EACH * len(infos)
        self.most_bytes = _FREE_BYTES + _TIMES * sum(info.size_bytes for info in infos)

    def add_command(self) -> None:
        """Count a command.

        Raises
        ------
        TooLargeError
            If there are too many.
        """
        self.num_commands += 1
        if self.layer is not None and self.num_commands > self.most_commands:
            raise TooLargeError(self.layer, "commands", self.most_commands, self.num_commands)

    def add_bytes(self, size_bytes: int) -> None:
        """Count memory, before it is taken.

        Raises
        ------
        TooLargeError
            If there is too much.
        """
        self.num_bytes += size_bytes
        if self.layer is not None and self.num_bytes > self.most_bytes:
            raise TooLargeError(self.layer, "memory", self.most_bytes, self.num_bytes)
