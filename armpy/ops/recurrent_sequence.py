"""Recurrent networks over sequences with gates, functions and lengths of any kind."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operand_checks import bind_size, bind_sizes, present_operands
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["GateFunction", "RecurrentCell", "RecurrentSequence"]

_LENGTHS = (DataType.SIGNED32, DataType.SIGNED64)


class RecurrentCell(enum.Enum):
    """Cell of `RecurrentSequence`; ``x`` input, ``h`` state, ``f g k`` functions.

    RNN ``h = f(W x + R h)``. GRU ``z = f(W x + R h), r = f(W x + R h), c = g(W x + R (r h))``
    (or ``g(W x + r (R h))``), ``h = (1 - z) c + z h``. LSTM ``i = f(W x + R h + p s)``, as are
    ``o`` (with the new ``s``) and ``u``; ``s = u s + i g(W x + R h)``, ``h = o k(s)``.
    """

    RNN = 1
    GRU = 3
    LSTM = 4

    @property
    def num_gates(self) -> int:
        """Rows of weights per unit."""
        return int(self.value)

    @property
    def functions(self) -> tuple[GateFunction, ...]:
        """Functions of the cell where none are given."""
        both = GateFunction.SIGMOID, GateFunction.TANH, GateFunction.TANH
        return {1: both[1:2], 3: both[:2], 4: both}[self.value]


class GateFunction(enum.Enum):
    """A function of `RecurrentSequence`, with parameters ``a`` and ``b``.

    AFFINE ``a x + b``; LEAKY_RELU ``x`` where positive, ``a x`` elsewhere; THRESHOLDED_RELU
    ``x`` from ``a`` on, 0 elsewhere; SCALED_TANH ``a tanh(b x)``; HARD_SIGMOID ``a x + b`` limited
    to [0, 1]; ELU ``a (exp(x) - 1)`` where negative; SOFTSIGN ``x / (1 + |x|)``; SOFTPLUS
    ``log(1 + exp(x))``.
    """

    SIGMOID = 0
    TANH = 1
    RELU = 2
    AFFINE = 3
    LEAKY_RELU = 4
    THRESHOLDED_RELU = 5
    SCALED_TANH = 6
    HARD_SIGMOID = 7
    ELU = 8
    SOFTSIGN = 9
    SOFTPLUS = 10


@dataclass(frozen=True, slots=True)
class RecurrentSequence(Operation):
    """Run a recurrent network (RNN), gated recurrent units (GRU) or an LSTM over sequences.

    Notes
    -----
    input (t, b, i); weights (g n, i) and recurrent_weights (g n, n), with gates in the order z, r,
    c (GRU) or i, o, u, c (LSTM); bias and recurrent_bias (g n); sequence_lengths (b); states (b,
    n), zeros if omitted; peephole (3 n) for i, o, u of an LSTM; output (t, b, n), 0 past a
    sequence's end; states after each sequence's last step, of cells with an LSTM only. Computed in
    float32, FLOAT64 in itself; float16 is rounded once.

    References
    ----------
    ONNX RNN, GRU, LSTM; Cho et al., "Learning Phrase Representations using RNN
    Encoder-Decoder", 2014; Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.
    """

    cell: RecurrentCell = RecurrentCell.GRU
    functions: tuple[GateFunction, ...] = ()
    """Functions of the gates, in the order of `RecurrentCell`'s letters; empty for sigmoid and
    tanh.
    """
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    """`alphas` and `betas`: parameters of `functions`, one each."""
    clip: float = 0.0
    """Limit of the functions' absolute arguments, an LSTM's cell state excepted; 0 for none.
    """
    is_reversed: bool = False
    """Whether sequences run from their end; the output has the input's order."""
    resets_after: bool = False
    """Whether a GRU's reset gate is applied after the product with the state."""
    couples_gates: bool = False
    """Whether an LSTM's forget gate is one minus its input gate."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(3,)),
        Operand("weights", ranks=(2,)),
        Operand("recurrent_weights", ranks=(2,)),
        Operand("bias", optional=True, ranks=(1,)),
        Operand("recurrent_bias", optional=True, ranks=(1,)),
        Operand("sequence_lengths", optional=True, ranks=(1,)),
        Operand("hidden_state_in", optional=True, ranks=(2,)),
        Operand("cell_state_in", optional=True, ranks=(2,)),
        Operand("peephole", optional=True, ranks=(1,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("output"),
        Operand("hidden_state_out"),
        Operand("cell_state_out", optional=True),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t, t, t, t, t, _LENGTHS, t, t, t), (t, t, t))
        for t in (DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64)
    )

    @property
    def num_outputs(self) -> int:
        """One more for an LSTM."""
        return 3 if self.cell is RecurrentCell.LSTM else 2

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(t, b, n), and (b, n) per state."""
        sizes = bind_sizes(self, inputs, ("tbi", "gi", "gn", "g", "g", "b", "bn", "bn", "p"))
        units, gates = sizes["n"], sizes["g"]
        if units is not None:
            bind_size(sizes, "g", units * self.cell.num_gates, "weights")
            bind_size(sizes, "p", 3 * units, "peephole")
        elif gates is not None:
            require(
                gates % self.cell.num_gates == 0,
                "the rows of the weights do not split into gates",
                expected=f"a multiple of {self.cell.num_gates}",
                actual=gates,
            )
            units = gates // self.cell.num_gates
        state = (sizes["b"], units)
        return ((sizes["t"], *state), state, state)[: self.num_outputs]

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Functions and their parameters; operands that only an LSTM has."""
        count = len(self.cell.functions)
        expected = (count, count, count) if self.functions else (0, 0, 0)
        counts = len(self.functions), len(self.alphas), len(self.betas)
        require(
            counts == expected,
            "the cell needs another number of functions and parameters",
            expected=f"{count} functions, alphas and betas, or none",
            actual=str(counts),
        )
        require(
            self.clip >= 0 and not math.isnan(self.clip),
            "the limit is negative or NaN",
            expected="0 or more",
            actual=f"{self.clip:g}",
        )
        extra = present_operands(self, inputs) & {"cell_state_in", "peephole"}
        require(
            self.cell is RecurrentCell.LSTM or not extra,
            "only an LSTM has these operands",
            expected="none",
            actual=", ".join(sorted(extra)),
        )
