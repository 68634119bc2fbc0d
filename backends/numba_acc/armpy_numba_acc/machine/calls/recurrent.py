"""Calls of kernels that run over sequences with a state."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class LstmF32(Call):
    """Run a long short-term memory (LSTM) of float32 over sequences."""

    parameters = ("activation",)

    activation: str  # name of the `armpy.ops.RecurrentActivation`
    # The inputs' part of the gates: a row of `line` for each batch and time, of `width` elements
    # for every gate: input (if there are four), forget, cell, output.
    share: Pointer
    output_state_in: Pointer
    cell_state_in: Pointer
    output_state_out: Pointer
    cell_state_out: Pointer
    output: Pointer
    recurrent: Pointer  # weights for such rows by panels, see `armpy_numba_acc.packing.recurrent`
    peephole: Pointer  # one such row each (the cell gate has no peephole), or 0
    norm_weights: Pointer
    norm_bias: Pointer
    projection: Pointer  # weights by panels, or 0; and a row of `out_line`
    projection_bias: Pointer
    scratch: Pointer  # `scratch_pitch` bytes for every thread
    scratch_pitch: int
    num_gates: int
    batches: int
    times: int
    batch_rows: int  # rows of a batch are `batch_rows` apart, those of a time `time_rows`
    time_rows: int
    cells: int
    width: int  # `cells` filled up to whole vectors
    line: int  # elements of the gates, and `outputs`, filled up to whole panels
    outputs: int
    out_line: int
    cell_clip: float
    projection_clip: float


@dataclass(frozen=True, slots=True)
class LstmQ8(Call):
    """Run a long short-term memory (LSTM) of 8-bit elements over sequences."""

    parameters = ("has_input_gate",)

    has_input_gate: int
    source: Pointer
    output_state_in: Pointer
    cell_state_in: Pointer
    output_state_out: Pointer
    cell_state_out: Pointer
    output: Pointer
    # For every gate, input (if there is one), forget, cell, output, a row for each cell, of the
    # input's and then of the output's.
    weights: Pointer
    biases: Pointer  # two int32 of each cell, gate by gate
    multipliers: Pointer  # two pairs of int64 for each gate: multiplier and shift
    sigmoid: Pointer  # tables with an int16 for each int16
    tanh: Pointer
    cell_tanh: Pointer
    scratch: Pointer  # the gates' int16
    batches: int
    times: int
    batch_rows: int  # rows of a batch are `batch_rows` apart, those of a time `time_rows`
    time_rows: int
    inputs: int
    cells: int
    cell_shift: int  # the clip is 0 if there is none
    cell_clip: int
    to_hidden: int
    to_hidden_shift: int
    zero_point: int


@dataclass(frozen=True, slots=True)
class RecurrentSequence(Call):
    """Run a recurrent network, gated recurrent units or an LSTM of float32 over sequences."""

    parameters = ("cell", "functions")

    # "GRU_AFTER" resets after the product, "LSTM_COUPLED" forgets one minus the input gate.
    cell: str
    # Names of `armpy.ops.GateFunction`, with blanks between; of some with parameters after colons.
    functions: str
    # The inputs' part of the gates: a row for each batch and time, of `width` elements for every
    # gate.
    share: Pointer
    hidden_in: Pointer
    cell_in: Pointer  # 0 but for LSTMs
    lengths: Pointer  # an int32 for each batch; 0 if all are whole
    output: Pointer
    hidden_out: Pointer
    cell_out: Pointer
    # Weights by panels, see `armpy_numba_acc.packing.recurrent`; of a "GRU" but the candidate's.
    recurrent: Pointer
    candidate: Pointer  # those; 0 of other cells
    # The products' initial values: a row of whole panels for the first one, and such a row for that
    # of the candidate.
    first: Pointer
    peephole: Pointer  # a row for the gates of an LSTM
    # `scratch_pitch` bytes for every thread, of which each batch at once has `row_pitch`.
    scratch: Pointer
    scratch_pitch: int
    row_pitch: int
    is_reversed: int
    batches: int
    times: int
    batch_rows: int  # rows of a batch are `batch_rows` apart, those of a time `time_rows`
    time_rows: int
    num_gates: int
    units: int
    width: int  # `units` filled up to whole vectors
    line: int  # elements of the rows of `first`
    candidate_line: int
    limit: float  # of the sums' absolute values


@dataclass(frozen=True, slots=True)
class Svdf(Call):
    """Filter inputs, store the results, and filter the stored ones (SVDF)."""

    parameters = ("kind", "shifts_first", "activation")

    # Format of the state's elements, as `armpy_numba_acc.machine.formats` has them; where they are
    # integers, all others are of 8 bits, but for weights of a state of 16.
    kind: str
    # Whether the state ends with the newest entry, or with a 0 in the next one's place.
    shifts_first: int
    activation: str  # name of the `armpy.ops.RecurrentActivation`; "NONE" for integers
    source: Pointer
    state_in: Pointer
    state_out: Pointer
    output: Pointer
    features: Pointer  # of integers, lines of `armpy_numba_acc.packing.weights_u8`
    # Those of integers weigh the old state as it is stored, and are followed by the weights of the
    # newest entries.
    times: Pointer
    # May be 0. That of integers makes up for the state's zero point, too.
    bias: Pointer
    batches: int
    inputs: int
    units: int
    memory: int
    rank: int
    # An int32 per filter. Up to `state_zero_point`, only integers need what follows.
    feature_bias: Pointer
    to_state: int
    to_state_shift: int
    to_output: int
    to_output_shift: int
    zero_point: int
    state_zero_point: int
    scratch: Pointer  # a vector per thread for floats, for integers an int32 per filter
