"""The options of ExecuteNetwork 24.02, as argparse takes them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from armpy.errors import InvalidArgumentError

DEPRECATED = {
    "model_format": "The format of the model is known from its file name.",
    "concurrent": "Use --thread-pool-size.",
    "input_type": "The types of the inputs are the model's.",
    "output_type": "The types of the outputs are the model's.",
    "bf16_turbo_mode": "Use --enable-fast-math.",
}
"""Options that Arm NN has given up, and what took their place."""

WITHOUT_EFFECT = [
    "infer_output_shape",
    "allow_expanded_dims",
    "thread_pool_size",
    "parse_unsupported",
    "enable_fast_math",
    "save_cached_network",
    "cached_network_filepath",
    "tuning_level",
    "tuning_path",
    "MLGOTuningFilePath",
    "reuse_buffers",
    "enable_external_profiling",
    "counter_capture_period",
    "gpu_enable_profiling",
    "file_format",
    "outgoing_capture_file",
    "file_only_external_profiling",
    "timeline_profiling",
    "import_inputs_if_aligned",
    "output_network_details",
    "output_network_details_only",
]
"""Options that armpy accepts and has nothing to do for."""


class _Parser(argparse.ArgumentParser):
    """Reports wrong options as an error of the arguments; the caller prints it."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(message)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = _Parser(
        "ExecuteNetwork",
        description="Executes a neural network model using the provided input tensor. "
        "Prints the resulting output tensor.",
        allow_abbrev=False,
    )
    required = parser.add_argument_group("a) Required")
    _texts(required, "-c", "--compute", "backends in order of preference: CpuAcc,CpuRef")
    required.add_argument("-m", "--model-path", help="a .armnn, .tflite or .onnx file")
    names = parser.add_argument_group("b) General")
    _texts(names, "-i", "--input-name", "names of the inputs, in the order of the data files")
    _texts(names, "-o", "--output-name", "names of the outputs to print")
    _add_general(names)
    _add_comparison(parser.add_argument_group("c) Comparison"))
    _add_optimization(parser.add_argument_group("d) Optimization"))
    _add_profiling(parser.add_argument_group("e) Profiling"))
    _add_former(parser.add_argument_group("f) Deprecated"))
    return parser


def _add_general(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-b", "--dynamic-backends-path", default="", help="folder of backends")
    group.add_argument("-P", "--thread-pool-size", type=int, default=0, help="no effect")
    _texts(group, "-d", "--input-tensor-data", "text files of numbers, one for each input")
    _flag(group, "--infer-output-shape", help="no effect: shapes are always inferred")
    _flag(group, "--allow-expanded-dims", help="no effect: .armnn files may always differ so")
    group.add_argument("-I", "--iterations", type=int, default=1, help="how often to run")
    _flag(group, "-l", "--dequantize-output", help="print real numbers for quantised outputs")
    _flag(group, "-p", "--print-intermediate-layers", help="print the outputs of all layers")
    _flag(group, "-F", "--print-intermediate-layers-to-file", help="write them to files instead")
    _flag(group, "--parse-unsupported", help="no effect")
    _flag(group, "-N", "--do-not-print-output", help="print no outputs")
    _flag(group, "-q", "--quantize-input", help="data files hold real numbers for all inputs")
    group.add_argument(
        "-r", "--threshold-time", type=float, default=0.0, help="longest inference time, in ms"
    )
    group.add_argument(
        "-s", "--input-tensor-shape", default="", help="shapes of the inputs: 1,2,2,3:1,2"
    )
    _flag(group, "-v", "--visualize-optimized-model", help="write the graph to MODEL.dot")
    _texts(group, "-w", "--write-outputs-to-file", "files for the outputs of each iteration")
    group.add_argument("-x", "--subgraph-number", type=int, default=0, help="0 only")
    group.add_argument(
        "-T",
        "--tflite-executor",
        choices=("parser", "delegate", "opaquedelegate", "tflite"),
        default="parser",
        help="tflite runs on CpuRef, which computes as TFLite; the others are one",
    )


def _add_comparison(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-C", "--compare-output", default="", help="file that -w has written")
    _texts(group, "-B", "--compare-output-with-backend", "backends to compare with")
    _flag(group, "-A", "--compare-with-tflite", help="compare with CpuRef")


def _add_optimization(group: argparse._ArgumentGroup) -> None:
    _flag(group, "--enable-fast-math", help="no effect")
    group.add_argument("--number-of-threads", type=int, default=0, help="1 to 64")
    _flag(group, "--save-cached-network", help="no effect")
    group.add_argument("--cached-network-filepath", default="", help="no effect")
    _flag(group, "--fp16-turbo-mode", help="compute float32 layers in float16")
    group.add_argument("--tuning-level", type=int, choices=range(4), default=0, help="no effect")
    group.add_argument("--tuning-path", default="", help="no effect")
    group.add_argument("--MLGOTuningFilePath", default="", help="no effect")
    _flag(group, "-R", "--reuse-buffers", help="no effect")


def _add_profiling(group: argparse._ArgumentGroup) -> None:
    _flag(group, "-a", "--enable-external-profiling", help="no effect")
    group.add_argument("-k", "--counter-capture-period", type=int, default=150, help="no effect")
    _flag(group, "-e", "--event-based-profiling", help="print the times of layers as JSON")
    _flag(group, "-g", "--file-only-external-profiling", help="no effect")
    group.add_argument("--file-format", default="binary", help="no effect")
    group.add_argument("-j", "--outgoing-capture-file", default="", help="no effect")
    _flag(group, "--timeline-profiling", help="no effect")
    _flag(group, "-u", "--gpu-enable-profiling", help="no effect")
    _flag(group, "--output-network-details", help="no effect")
    _flag(group, "--output-network-details-only", help="no effect")
    _flag(group, "--import-inputs-if-aligned", help="no effect")


def _add_former(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-f", "--model-format", default="", help=DEPRECATED["model_format"])
    _flag(group, "-n", "--concurrent", help=DEPRECATED["concurrent"])
    _texts(group, "-y", "--input-type", DEPRECATED["input_type"])
    _texts(group, "-z", "--output-type", DEPRECATED["output_type"])
    _flag(group, "--bf16-turbo-mode", help=DEPRECATED["bf16_turbo_mode"])


def _flag(group: argparse._ArgumentGroup, *names: str, help: str) -> None:
    """Add an option that may stand alone or have true or false after it."""
    group.add_argument(*names, nargs="?", const=True, default=False, type=_truth, help=help)


def _texts(group: argparse._ArgumentGroup, short: str, long: str, help: str) -> None:
    """Add an option with a list, whose items stand between commas or after the option again."""
    group.add_argument(short, long, action="extend", type=_items, default=[], help=help)


def _items(text: str) -> Sequence[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _truth(text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")
    return known[text.lower()]
