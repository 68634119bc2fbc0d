"""Calls of kernels that run over sequences with a state."""

from __future__ import annotations

from dataclasses import dataclass

from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class LstmF32(Call):
    """Run a long short-term memory (LSTM) of float32 over sequences.

    Parameters
    ----------
    activation : str
        Name of the `armpy.ops.RecurrentActivation`.
    share : Pointer
        What the inputs add to the gates: a row of `line` for each batch and time, of `width`
        elements for every gate: input (if there are four), forget, cell, output.
    recurrent : Pointer
        Weights for such rows by panels, see `armpy_numba_acc.packing.recurrent`.
    peephole, norm_weights, norm_bias : Pointer
        One such row each (the cell gate has no peephole), or 0.
    projection, projection_bias : Pointer
        Weights by panels, or 0; and a row of `out_line`.
    scratch, scratch_pitch : Pointer, int
        `scratch_pitch` bytes for every thread.
    batch_rows, time_rows : int
        Rows of a batch are `batch_rows` apart, those of a time `time_rows`.
    width : int
        `cells` filled up to whole vectors.
    line, out_line : int
        Elements of the gates, and `outputs`, filled up to whole panels.
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
    line: int
    outputs: int
    out_line: int
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
class RecurrentSequence(Call):
    """Run a recurrent network, gated recurrent units or an LSTM of float32 over sequences.

    Parameters
    ----------
    cell : {"RNN", "GRU", "GRU_AFTER", "LSTM", "LSTM_COUPLED"}
        "GRU_AFTER" resets behind the product, "LSTM_COUPLED" forgets one minus what it takes in.
    functions : str
        Names of `armpy.ops.GateFunction`, with blanks between.
    share : Pointer
        What the inputs add to the gates: a row for each batch and time, of `width` elements for
        every gate.
    cell_in, cell_out : Pointer
        0 but for LSTMs.
    lengths : Pointer
        An int32 for each batch; 0 if all are whole.
    recurrent : Pointer
        Weights by panels, see `armpy_numba_acc.packing.recurrent`; of a "GRU" but the candidate's.
    candidate : Pointer
        Those; 0 of other cells.
    first : Pointer
        What the products begin with: a row of whole panels for the first one, and such a row for
        that of the candidate.
    peephole : Pointer
        A row for the gates of an LSTM.
    scratch, scratch_pitch, row_pitch : Pointer, int, int
        `scratch_pitch` bytes for every thread, of which each batch at once has `row_pitch`.
    batch_rows, time_rows : int
        Rows of a batch are `batch_rows` apart, those of a time `time_rows`.
    width : int
        `units` filled up to whole vectors.
    line, candidate_line : int
        Elements of the rows of `first`.
    limit : float
        Of the sums' absolute values.
    """

    parameters = ("cell", "functions")

    cell: str
    functions: str
    share: Pointer
    hidden_in: Pointer
    cell_in: Pointer
    lengths: Pointer
    output: Pointer
    hidden_out: Pointer
    cell_out: Pointer
    recurrent: Pointer
    candidate: Pointer
    first: Pointer
    peephole: Pointer
    scratch: Pointer
    scratch_pitch: int
    row_pitch: int
    is_reversed: int
    batches: int
    times: int
    batch_rows: int
    time_rows: int
    num_gates: int
    units: int
    width: int
    line: int
    candidate_line: int
    limit: float


@dataclass(frozen=True, slots=True)
class Svdf(Call):
    """Filter inputs, remember the results, and filter what is remembered (SVDF).

    Parameters
    ----------
    kind : {"f32", "i16", "i8", "u8"}
        Format of the state's elements, as `armpy_numba_acc.machine.formats` has them; where they
        are integers, all others are of 8 bits, but for weights of a state of 16.
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
        May be 0. That of integers makes up for the state's zero point, too.
    feature_bias : Pointer
        An int32 per filter. Up to `state_zero_point`, only integers need what follows.
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
    state_zero_point: int
    scratch: Pointer
