"""The command ExecuteNetwork."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armpy.errors import ArmpyError, InvalidArgumentError
from armpy_compat.execute_network.log_lines import log
from armpy_compat.execute_network.network_run import NetworkRun, Results, compared
from armpy_compat.execute_network.options import DEPRECATED, WITHOUT_EFFECT, make_parser
from armpy_compat.execute_network.tensor_texts import byte_level_error, read_outputs

VERSION = "33.1.0"
"""Version of Arm NN, whose command it is."""

_FORMATS = (".armnn", ".tflite", ".onnx")
_MOST_THREADS = 64
_REQUIRED = {"compute": "compute", "model_path": "model-path"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments of the command line; those of the process if left out.

    Returns
    -------
    int
        The exit status: 0, or 1 if an argument, the model or an execution has failed.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = make_parser()
    if not words:
        parser.print_help()
        return 0
    try:
        options = parser.parse_args(words)
        _check(options)
        _note(options, parser)
        log("Info", f"ArmNN v{VERSION}")
        _run(options)
    except (ArmpyError, OSError) as error:
        log("Error", str(error))
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    """Check options against each other, and that files are there."""
    missing = [shown for name, shown in _REQUIRED.items() if not getattr(options, name)]
    for name in missing:
        log("Error", f"The program option '{name}' is mandatory but wasn't provided.")
    if missing:
        raise InvalidArgumentError("Some required arguments are missing")
    suffix = Path(options.model_path).suffix
    if suffix not in _FORMATS:
        raise InvalidArgumentError(
            f"Unknown model format: '{suffix}'. Please include 'armnn', 'tflite' or 'onnx'"
        )
    files = options.input_tensor_data
    if not all(Path(file).is_file() for file in files):
        raise InvalidArgumentError("One or more input data file paths are not valid.")
    if files and len(files) < len(options.input_name):
        raise InvalidArgumentError(
            "According to the number of input names the user provided the network has "
            f"{len(options.input_name)} inputs. But only {len(files)} input-tensor-data file paths "
            "were provided. Each input of the model is expected to be stored in it's own file."
        )
    if options.threshold_time < 0:
        raise InvalidArgumentError(
            "Threshold time supplied as a command line argument is less than zero."
        )
    if options.allow_expanded_dims and options.infer_output_shape:
        raise InvalidArgumentError(
            "infer-output-shape and allow-expanded-dims cannot be used together."
        )
    if options.bf16_turbo_mode and not options.enable_fast_math:
        raise InvalidArgumentError("To use BF16 please use --enable-fast-math.")
    if options.iterations < 1:
        raise InvalidArgumentError("iterations is too small", expected="1 or more")
    if not 0 <= options.number_of_threads <= _MOST_THREADS:
        raise InvalidArgumentError(
            "number-of-threads is out of range", expected=f"1 to {_MOST_THREADS}"
        )
    if options.subgraph_number:
        raise InvalidArgumentError("subgraph-number has to be 0")


def _note(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Print which options are deprecated or have no effect, and that there are no input files."""
    for name, text in DEPRECATED.items():
        if getattr(options, name) != parser.get_default(name):
            shown = name.replace("_", "-")
            log("Warning", f"The option '{shown}' is deprecated and has no effect. {text}")
    for name in WITHOUT_EFFECT:
        if getattr(options, name) != parser.get_default(name):
            log("Warning", f"The option '{name.replace('_', '-')}' has no effect in armpy.")
    if not options.input_tensor_data:
        log("Warning", "No input files provided, input tensors will be filled with 0s.")


def _run(options: argparse.Namespace) -> None:
    """Run the model, and compare its outputs with the expected ones."""
    compute = ["CpuRef"] if options.tflite_executor == "tflite" else options.compute
    results = _results(options, compute)
    others: list[Sequence[str]] = []
    if options.compare_output_with_backend:
        others.append(options.compare_output_with_backend)
    if options.compare_with_tflite:
        others.append(["CpuRef"])
    for backends in others:
        compared(options, results, _results(options, backends))
    if options.compare_output:
        _compare_with_file(options, results)


def _results(options: argparse.Namespace, compute: Sequence[str]) -> Results:
    run = NetworkRun(options, compute)
    try:
        run.print_network_info()
        return run.execute()
    finally:
        run.close()


def _compare_with_file(options: argparse.Namespace, results: Results) -> None:
    """Compare the last outputs with those of a file, output by output."""
    outputs = results[-1]
    names = options.output_name or list(outputs)
    lines = read_outputs(Path(options.compare_output))
    if len(lines) != len(names):
        raise InvalidArgumentError(
            "the file has another number of outputs",
            where=options.compare_output,
            expected=str(len(names)),
            actual=str(len(lines)),
        )
    for name, numbers in zip(names, lines, strict=True):
        expected = np.array(numbers).astype(outputs[name].dtype)
        error = byte_level_error(outputs[name], expected)
        print(f"Byte level root mean square error: {error:g}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
