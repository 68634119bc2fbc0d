"""Tokens of elementwise expressions in postfix notation, for those who do not compile them."""

from __future__ import annotations

INPUTS = ("x0", "x1", "x2")
"""Stand for the inputs."""

PARAMETER = "p"
"""Stands for the next parameter."""


def call_of(function: str, num_inputs: int) -> str:
    """A function, which may be several in turn, of the first inputs.

    A single function is an expression by itself.
    """
    return ".".join((*INPUTS[:num_inputs], function)) if "." in function else function
