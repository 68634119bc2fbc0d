"""Measures what a call through ONNX Runtime's API costs beyond armpy's own call.

The same arrays go through `Model.run` of a session's model and through each way to call the
session, in turns, on one thread. The cost is the median of the differences within a round. The
call of ONNX Runtime itself takes its turns, too.

Usage::

    python -m benchmarks.onnxruntime_calls [MODEL.onnx] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as peer

from armpy.core.turns import take_turns, timed
from armpy.ops.operation import Array
from armpy_compat import onnxruntime
from benchmarks.common import calls_in, description, write_json

ROUNDS = 60
ROUND_S = 0.002
ARMPY = "Model.run"

Call = Callable[[], object]


def small_model() -> bytes:
    """Contents of a model of one layer."""
    text = '<ir_version: 9, opset_import: ["" : 18]> g (float[8] x) => (float[8] y) { y = Neg (x) }'
    return onnx.parser.parse_model(text).SerializeToString()  # type: ignore[no-any-return]


def feed_of(session: onnxruntime.InferenceSession) -> dict[str, Array]:
    """Zeros for each input; open dimensions are 1."""
    model = session._sess.model
    assert model is not None
    return {
        spec.name: np.zeros([dim or 1 for dim in spec.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    }


def calls_of(source: str | bytes) -> dict[str, Call]:
    """The calls to measure; armpy's own first."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(source, options)
    model, feed = session._sess.model, feed_of(session)
    assert model is not None
    names = [output.name for output in session.get_outputs()]
    results = model.run(feed)
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    for name in names:
        value = onnxruntime.OrtValue.ortvalue_from_numpy(results[name].copy())
        binding.bind_ortvalue_output(name, value)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in feed.items()}
    run_options = onnxruntime.RunOptions()
    calls: dict[str, Call] = {
        ARMPY: lambda: model.run(feed),
        "Model.run(inputs, outputs)": lambda: model.run(feed, results),
        "run(None, feed)": lambda: session.run(None, feed),
        "run(names, feed)": lambda: session.run(names, feed),
        "run(names, feed, options)": lambda: session.run(names, feed, run_options),
        "run_with_ort_values": lambda: session.run_with_ort_values(names, values),
        "run_with_iobinding": lambda: session.run_with_iobinding(binding),
    }
    calls["onnxruntime"] = _peer_call(source, feed)
    return calls


def _peer_call(source: str | bytes, feed: dict[str, Array]) -> Call:
    """The call of ONNX Runtime itself, on one thread."""
    options = peer.SessionOptions()
    options.intra_op_num_threads = 1
    session = peer.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def measure(calls: dict[str, Call]) -> dict[str, dict[str, float]]:
    """Microseconds of each call, and the median of the differences from armpy's own."""
    turns = {name: timed(call, calls_in(ROUND_S, call)) for name, call in calls.items()}
    times = take_turns(turns, 0.0, least=ROUNDS)
    return {
        name: {
            "us": 1e6 * statistics.median(durations),
            "more_us": 1e6
            * statistics.median(a - b for a, b in zip(durations, times[ARMPY], strict=True)),
        }
        for name, durations in times.items()
    }


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    source = small_model() if arguments.model is None else str(arguments.model)
    figures = measure(calls_of(source))
    for name, figure in figures.items():
        print(f"{name:28} {figure['us']:9.2f} us {figure['more_us']:+9.2f} us")
    write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
