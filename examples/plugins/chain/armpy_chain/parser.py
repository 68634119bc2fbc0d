"""From the lines of a chain to a network."""

from __future__ import annotations

import numpy as np

from armpy import DataType, Network, TensorInfo, ops
from armpy.errors import ParserError
from armpy.graph import Value
from armpy.plugins.hooks import ModelFile, ParseSettings

BEGINNING = b"chain 1\n"


def read_steps(file: ModelFile) -> list[list[str]]:
    """The words of each line after the first."""
    try:
        lines = bytes(file.data).decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise ParserError("this is not text") from error
    return [line.split() for line in lines[1:]]


def parse(file: ModelFile, settings: ParseSettings) -> Network:
    """Make a network with one layer for each step; the first line of all is the input's size."""
    net = Network(file.stem)
    head, *steps = read_steps(file) or [[]]
    match head:
        case ["input", size] if size.isdecimal():
            value = net.input("x", TensorInfo((int(size),), DataType.FLOAT32))
        case _:
            raise ParserError("there is no input", where="line 2", expected="input SIZE")
    for _ in range(int(settings.options["repeat"])):
        for number, step in enumerate(steps, start=3):
            value = add_step(net, value, step, f"line {number}")
    net.output("y", value)
    return net


def add_step(net: Network, value: Value, step: list[str], where: str) -> Value:
    """Add one step to a network."""
    match step:
        case ["relu"]:
            return net.add(ops.Activation(ops.ActivationFunction.RELU), value)
        case ["add" | "multiply" as name, number]:
            kind = ops.BinaryOperation.ADD if name == "add" else ops.BinaryOperation.MUL
            other = net.constant(np.array([as_number(number, where)], np.float32))
            return net.add(ops.ElementwiseBinary(kind), value, other)
    steps = "relu, add NUMBER or multiply NUMBER"
    raise ParserError("this is no step", where=where, expected=steps, actual=" ".join(step))


def as_number(text: str, where: str) -> float:
    """A number that is written in a step."""
    try:
        return float(text)
    except ValueError:
        raise ParserError("this is not a number", where=where, actual=text) from None
