"""A model format that is none of armpy's, as source of plugins that bring it."""

from __future__ import annotations

TOY_PLUGIN = """
import numpy as np
from armpy import DataType, Network, TensorInfo, ops
from armpy.errors import ParserError
from armpy.plugins.hooks import FrontEnd, Magic, hookimpl


def parse(file, settings):
    net = Network(file.stem)
    x = net.input("x", TensorInfo((4,), DataType.FLOAT32))
    for word in bytes(file.data).decode().split()[1:]:
        if word != "relu":
            raise ParserError(f"there is no '{{word}}'", expected="relu")
        x = net.add(ops.Activation(ops.ActivationFunction.RELU), x)
    net.output("y", x)
    return net


@hookimpl
def armpy_register_front_end():
    magic = (Magic(b"{magic}"),)
    return FrontEnd("{name}", "{name} nets", parse, suffixes=(".{name}",), magic=magic)
"""
"""Source of a plugin; `toy_plugin` fills it in."""


def toy_plugin(name: str = "toy", magic: str = "TOY1") -> str:
    """A plugin with a front-end for files that begin with a word and list activations."""
    return TOY_PLUGIN.format(name=name, magic=magic)
