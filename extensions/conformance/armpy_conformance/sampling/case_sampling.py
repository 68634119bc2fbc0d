"""Other instances of a line of the table: sizes, attributes and scales made of chance."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from armpy import ops
from armpy.errors import ArmpyError
from armpy.ops import (
    ActivationFunction,
    BinaryOperation,
    FusedActivation,
    Operation,
    Padding,
)
from armpy.types import DataType
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, is_hybrid
from armpy_conformance.sampling.draw import Draw
from armpy_conformance.sampling.sampling_rules import PRESCRIBING, RULES

_RANKS = 4
"""Ranks that take turns: numbers from 1 on are shapes' usual ranks, and each sees all options."""

_ROUND = 12
"""Draws in which each rank meets one quantisation for all."""

_LARGEST = 3000
"""Elements of a line's largest tensor; lines with more are there for their size."""


def drawn(template: CaseTemplate, seed: int) -> CaseTemplate:
    """A line with other sizes, attributes and quantisations than it has.

    Parameters
    ----------
    seed : int
        The same line and seed give the same.

    Returns
    -------
    CaseTemplate
        The line's own operation, types and values; its sizes, too, where it is there for those
        (no elements, many, keys) or where nothing is known to draw.
    """
    operation = template.operation
    key = zlib.crc32(f"{operation.name}/{template.label}".encode())
    draw = Draw((seed, key), 1 + seed % _RANKS)
    sizes = [math.prod(shape) for shape in template.shapes if shape is not None]
    rule = RULES.get(type(operation))
    if rule is not None and all(0 < size <= _LARGEST for size in sizes):
        template = rule(draw, template)
        template = _options_of(template, seed // _RANKS)
    if getattr(operation, "power_of_two_scales", False):
        steps = (32.0, 32.0 * 2.0 ** -draw.size(11, 0))
        scales = tuple(Scale(step) for step in (steps if seed % 2 else steps[::-1]))
        return replace(template, scales=scales, output=Scale(32.0))
    scales = tuple(_scale(draw, scale) for scale in template.scales)
    output = template.output
    if not _prescribes(operation):
        output = None if output is None else _scale(draw, output)
        if template.infos is None and seed % 3 == 0:  # of one quantisation, some around 0
            scales = (Scale(scales[0].step, 0.0) if seed // _ROUND % 2 == 0 else scales[0],)
            output = None
    return replace(template, scales=scales, output=output)


def roots(templates: Iterable[CaseTemplate]) -> list[CaseTemplate]:
    """The first line of each kind of layer, for all types that its values fit.

    Notes
    -----
    Lines are of different kinds if their functions are, how many operands they have, how their
    scales hang together, or how their elements do.
    """
    by_kind: dict[object, CaseTemplate] = {}
    for template in sorted(templates, key=_is_special):
        attributes = template.operation.attributes()
        kind = (
            type(template.operation),
            *(attributes.get(name) for name in _FUNCTIONS),
            *(bool(attributes.get(name)) for name in _WHETHER),
            [shape is None for shape in template.shapes].__repr__(),
            template.output_types,
            template.gives_sums,
            template.infos or template.output_scale,
            len(template.scales),
            template.types is is_hybrid and attributes.get("asymmetric_quantize_inputs"),
            template.types is is_hybrid,
        )
        by_kind.setdefault(kind, template)
    return [_of_every_type(template) for template in by_kind.values()]


_WHETHER = ("sizes", "ellipsis_mask", "new_axis_mask", "end_is_offset")
_FUNCTIONS = (
    "operation",
    "function",
    "algorithm",
    "method",
    "approximate",
    "padding_mode",
    "output_type",
    "a",
    "b",
)


def _is_special(template: CaseTemplate) -> bool:
    """Return whether a line's elements are of few types, or more than numbers."""
    return "whole-range" in template.label or "no-numbers" in template.label


def num_draws(template: CaseTemplate) -> int:
    """Return how often a line is drawn so that all its options take turns with all ranks."""
    if template.output_types is not None:  # a line per type already
        return _RANKS
    return _RANKS * max(_FEWEST, len(_turns(template)[1]))


_FEWEST = 6


def _of_every_type(template: CaseTemplate) -> CaseTemplate:
    """The line in all types that its operation and its elements fit."""
    if template.types is is_hybrid or not template.shapes:
        return template
    fitting: set[Types] = set()

    def note(types: Types) -> bool:
        if not is_hybrid(types) and _fits(
            replace(template, types=lambda types_given: types_given == types)
        ):
            fitting.add(types)
        return False

    for _ in replace(template, types=note).cases():
        pass
    return replace(template, types=fitting.__contains__)


def _fits(template: CaseTemplate) -> bool:
    """Return whether the cases of a line can be made."""
    try:
        with np.errstate(all="raise"):
            return bool(list(template.cases()))
    except (ArmpyError, FloatingPointError, OverflowError):
        return False


def _prescribes(operation: Operation) -> bool:
    """Return whether an operation says the quantisation of its output."""
    return isinstance(operation, PRESCRIBING) or (
        isinstance(operation, ops.Activation)
        and operation.function in (ActivationFunction.SIGMOID, ActivationFunction.TANH)
    )


_WITH_ACTIVATION = (
    *(BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL, BinaryOperation.DIV),
    None,
)
_OPTIONS: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("keep_dims", "keep_num_dims"), (False, True)),
    "asymmetric_quantize_inputs": (False, True),
    "padding": (Padding.VALID, Padding.SAME),
    "activation": tuple(FusedActivation),
    "output_type": (DataType.SIGNED32, DataType.SIGNED64),
}
"""Attributes that go with all others."""


def _turns(template: CaseTemplate) -> tuple[list[str], list[tuple[object, ...]]]:
    """Names of an operation's options, and all that they can be together."""
    attributes = template.operation.attributes()
    unlike = {
        "output_type": isinstance(template.operation, ops.Range),
        "activation": template.gives_sums or attributes.get("operation") not in _WITH_ACTIVATION,
        "padding": not isinstance(attributes.get("padding"), Padding),
        # Elements are made for one of the two.
        "asymmetric_quantize_inputs": template.types is is_hybrid,
    }
    names = [name for name in _OPTIONS if name in attributes and not unlike.get(name)]
    return names, list(itertools.product(*(_OPTIONS[name] for name in names)))


def _options_of(template: CaseTemplate, number: int) -> CaseTemplate:
    """A line with the options whose turn it is."""
    names, turns = _turns(template)
    options = dict(zip(names, turns[number % len(turns)], strict=True))
    return replace(template, operation=template.operation.with_attributes(**options))


def _scale(draw: Draw, scale: Scale) -> Scale:
    """A scale some way off, and a zero point anywhere; one at an end stays there."""
    where = draw.pick((0.0, draw.rng.uniform(-1, 1), draw.rng.uniform(-1, 1)))
    step = np.float32(scale.step * np.exp(draw.rng.uniform(-1.2, 1.2)))
    return Scale(
        float(step) if scale.step != 1 else 1.0, scale.where if abs(scale.where) == 1 else where
    )
