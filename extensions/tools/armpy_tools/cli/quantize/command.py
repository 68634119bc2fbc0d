"""Options of ``armpy quantize``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    OUTPUT,
    WRITABLE_FILE,
    ExistingPath,
    json_option,
    model_options,
    verbosity_options,
)
from armpy.cli.pictures.options import picture_options
from armpy.cli.values import FiniteRange


@click.command("quantize")
@model_options
@click.option(
    "--data",
    type=ExistingPath(exists=True),
    metavar="DIR|NPZ",
    help="Typical inputs: a folder of pictures or of .npy arrays, a picture, or an .npz file with "
    "an array of samples for each input.",
)
@click.option(
    *OUTPUT,
    type=WRITABLE_FILE,
    required=True,
    metavar="FILE",
    help="The file to write: TFLite's if its name ends in .tflite, prepared otherwise.",
)
@click.option(
    "--scheme",
    type=click.Choice(["int8", "int16x8", "float16", "dynamic"]),
    default="int8",
    show_default=True,
    help="Weights and activations of 8 bits; activations of 16; weights of float16; weights of 8 "
    "bits, activations quantised while it runs. The last two need no data.",
)
@click.option(
    "--method",
    type=click.Choice(["minmax", "percentile", "entropy", "mse"]),
    default="mse",
    show_default=True,
    help="How a tensor's range is found in the data.",
)
@click.option(
    "--percentile",
    type=FiniteRange(50, 100, min_open=True),
    default=99.99,
    show_default=True,
    help="Per cent of the elements that --method percentile keeps.",
)
@click.option(
    "--keep-float",
    "keep_float",
    multiple=True,
    metavar="LAYER",
    help="Leave this layer as it is; may be repeated.",
)
@click.option(
    "--io",
    type=click.Choice(["float", "int8", "uint8", "int16"]),
    default="float",
    show_default=True,
    help="Type of inputs and outputs.",
)
@click.option("--per-tensor", is_flag=True, help="One scale for all channels of the weights.")
@click.option(
    "--equalize", is_flag=True, help="Bring neighbouring layers' channels to like ranges."
)
@click.option("--no-bias-correction", is_flag=True, help="Leave biases as they are.")
@click.option("--limit", type=click.IntRange(min=1), help="Use at most so many samples.")
@click.option(
    "--judge",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    help="Compare with the float model on so many of them.",
)
@click.option("--layers", "with_layers", is_flag=True, help="List every layer.")
@input_options(
    "shape",
    "size",
)
@picture_options
@click.option("--html", "page_path", type=WRITABLE_FILE, help="Write a page for browsers.")
@json_option
@verbosity_options
@imported_when_run("armpy_tools.cli.quantize.work:quantize")
def command() -> None:
    """Quantise MODEL to small integers, and report the accuracy.

    Ranges of tensors are found by running the data, some 100 samples, through the float model.
    Both models are then compared on them, layer by layer. Pictures become what 'armpy run' makes
    of them; MODEL may be a .tflite or an .onnx file.
    """
