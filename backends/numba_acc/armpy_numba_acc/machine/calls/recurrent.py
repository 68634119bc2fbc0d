"""Calls of kernels that run over sequences with a state."""

from __future__ import annotations

from armpy.records import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class LstmF32(Call):
    """Run a long short-term memory (LSTM) of float32 over sequences.

    Parameters
    ----------
    activation : str
        Name of the `armpy.ops.RecurrentActivation`.
    share : Pointer
        What the inputs add to the gates: a row for each batch and time, of `width` elements for
        every gate: input (if there are four), forget, cell, output.
    recurrent : Pointer
        Such a row per output.
    peephole, norm_weights, norm_bias : Pointer
        One such row each (the cell gate has no peephole), or 0.
    projection, projection_bias : Pointer
        `out_width` elements per cell, or 0; and one such row.
    scratch, scratch_pitch : Pointer, int
        `scratch_pitch` bytes for every thread.
    batch_rows, time_rows : int
        Rows of a batch are `batch_rows` apart, those of a time `time_rows`.
    width, out_width : int
        `cells` and `outputs` filled up to whole vectors.
    cell_clip, projection_clip : float
    """

    parameters = ("activation",)

    activation: str
    share: Pointer
    output_state_in: Pointer
    cell_state_in: Pointer
    output_state_out: Pointer
    cell_state_out: Pointer
    output: Pointer
    recurrent: Pointer
    peephole: Pointer
    norm_weights: Pointer
    norm_bias: Pointer
    projection: Pointer
    projection_bias: Pointer
    scratch: Pointer
    scratch_pitch: int
    num_gates: int
    batches: int
    times: int
    batch_rows: int
    time_rows: int
    cells: int
    width: int
    outputs: int
    out_width: int
    cell_clip: float
    projection_clip: float


@dataclass(frozen=True, slots=True)
class LstmQ8(Call):
    """Run a long short-term memory (LSTM) of 8-bit elements over sequences.

    Parameters
    ----------
    has_input_gate : int
    weights : Pointer
        For every gate, input (if there is one), forget, cell, output, a row for each cell, of the
        input's and then of the output's.
    biases : Pointer
        Two int32 of each cell, gate by gate.
    multipliers : Pointer
        Two pairs of int64 for each gate: multiplier and shift.
    sigmoid, tanh, cell_tanh : Pointer
        Tables with an int16 for each int16.
    scratch : Pointer
        The gates' int16.
    batch_rows, time_rows : int
        Rows of a batch are `batch_rows` apart, those of a time `time_rows`.
    cell_shift, cell_clip : int
        The clip is 0 if there is none.
    to_hidden, to_hidden_shift, zero_point : int
    """

    parameters = ("has_input_gate",)

    has_input_gate: int
    source: Pointer
    output_state_in: Pointer
    cell_state_in: Pointer
    output_state_out: Pointer
    cell_state_out: Pointer
    output: Pointer
    weights: Pointer
    biases: Pointer
    multipliers: Pointer
    sigmoid: Pointer
    tanh: Pointer
    cell_tanh: Pointer
    scratch: Pointer
    batches: int
    times: int
    batch_rows: int
    time_rows: int
    inputs: int
    cells: int
    cell_shift: int
    cell_clip: int
    to_hidden: int
    to_hidden_shift: int
    zero_point: int


@dataclass(frozen=True, slots=True)
class Svdf(Call):
    """Filter inputs, remember the results, and filter what is remembered (SVDF).

    Parameters
    ----------
    kind : {"f32", "q8"}
        "q8" has a state of 16 bits.
    shifts_first : int
        Whether the state ends with the newest entry, or with a 0 in the next one's place.
    activation : str
        Name of the `armpy.ops.RecurrentActivation`; "NONE" for integers.
    features : Pointer
        Of integers, lines of `armpy_numba_acc.packing.weights_u8`.
    times : Pointer
        Those of integers weigh the old state as it is stored, and are followed by the weights of
        the newest entries.
    bias : Pointer
        May be 0.
    feature_bias : Pointer
        An int32 per filter. Up to `zero_point`, only integers need what follows.
    scratch : Pointer
        A vector per thread for floats, for integers an int32 per filter.
    """

    parameters = ("kind", "shifts_first", "activation")

    kind: str
    shifts_first: int
    activation: str
    source: Pointer
    state_in: Pointer
    state_out: Pointer
    output: Pointer
    features: Pointer
    times: Pointer
    bias: Pointer
    batches: int
    inputs: int
    units: int
    memory: int
    rank: int
    feature_bias: Pointer
    to_state: int
    to_state_shift: int
    to_output: int
    to_output_shift: int
    zero_point: int
    scratch: Pointer
