"""Recurrent operations other than LSTMs."""

from __future__ import annotations

from armpy.ops import RecurrentActivation
from armpy_nnapi.codes import OperationCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation, Recipe

_C = OperationCode
_LIMIT = 0.5
"""Largest weight; what goes round and round must not grow without end."""


def recurrent_activation(call: RandomOperation) -> None:
    """Any activation."""
    call.scalar("activation", call.choose(*(a.value for a in RecurrentActivation)))


def small(call: RandomOperation, name: str, *shape: int) -> None:
    """Give an argument weights."""
    call.tensor(name, shape, low=-_LIMIT, high=_LIMIT)


def rnn(call: RandomOperation) -> None:
    """One step."""
    batch, size = call.data("input", ranks=(2,))
    _cell(call, "", batch, size, call.integer(1, 6))
    recurrent_activation(call)


def _cell(call: RandomOperation, prefix: str, batch: int, size: int, units: int) -> None:
    """Weights, bias and state of one direction."""
    small(call, f"{prefix}weights", units, size)
    small(call, f"{prefix}recurrent_weights", units, units)
    small(call, f"{prefix}bias", units)
    call.tensor(f"{prefix}hidden_state_in", (batch, units))


def sequence_rnn(call: RandomOperation) -> None:
    """A sequence, either axis time."""
    time_major = call.chance()
    shape = call.data("input", ranks=(3,))
    _cell(call, "", shape[1] if time_major else shape[0], shape[2], call.integer(1, 6))
    recurrent_activation(call)
    call.scalar("time_major", time_major)


def bidirectional_rnn(call: RandomOperation) -> None:
    """A sequence in both directions, with any way to link to another one."""
    time_major = call.chance()
    shape = call.data("input", ranks=(3,))
    batch = shape[1] if time_major else shape[0]
    units = {"forward_": call.integer(1, 5), "backward_": call.integer(1, 5)}
    linking = auxiliary_input(call, shape)
    for prefix, count in units.items():
        size = shape[2]
        if linking == "parallel" and prefix == "backward_":
            size = call.source("aux_input").shape[2]
        _cell(call, prefix, batch, size, count)
        if linking == "cross":
            small(call, f"{prefix}aux_weights", count, call.source("aux_input").shape[2])
        else:
            call.omit(f"{prefix}aux_weights")
    recurrent_activation(call)
    call.scalar("time_major", time_major)
    call.scalar("merge_outputs", not has_output(call, "backward_output"))


def auxiliary_input(call: RandomOperation, shape: tuple[int, ...]) -> str:
    """Make up another sequence, if any; how it is linked: parallel, cross or not at all."""
    linking = ("none", "parallel", "cross")[call.integer(0, 2)]
    if linking == "none":
        call.omit("aux_input")
    else:
        call.tensor("aux_input", shape)
    return linking


def has_output(call: RandomOperation, name: str) -> bool:
    """Return whether the form has an output."""
    return any(argument.name == name for argument in call.form.outputs)


def svdf(call: RandomOperation) -> None:
    """One step, with or without a bias."""
    batch, size = call.data("input", ranks=(2,))
    rank, units, memory = call.integer(1, 3), call.integer(1, 4), call.integer(1, 5)
    small(call, "weights_feature", rank * units, size)
    small(call, "weights_time", rank * units, memory)
    if call.chance():
        small(call, "bias", units)
    else:
        call.omit("bias")
    call.tensor("state_in", (batch, memory * rank * units))
    call.scalar("rank", rank)
    recurrent_activation(call)


RECIPES: dict[OperationCode, Recipe] = {
    _C.RNN: rnn,
    _C.UNIDIRECTIONAL_SEQUENCE_RNN: sequence_rnn,
    _C.BIDIRECTIONAL_SEQUENCE_RNN: bidirectional_rnn,
    _C.SVDF: svdf,
}
