"""No .onnx file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` is allowed, and nothing else.

300 files are tried, a third each of node tests and models with graphs and functions inside with
damaged bytes, and of such models with odd contents; the environment variable
``ARMPY_ONNX_FUZZ_COUNT`` says how many (100,000 before a release), and ``ARMPY_FUZZ_START`` at
which number to begin. A failure names the number of the file, which always gives the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser
from onnx.backend.test.case.node import collect_testcases

import armpy
from armpy.errors import ArmpyError, ParserError
from armpy.runtime import Model, Runtime, RuntimeOptions
from tests.support.mutations import mutated
from tests.support.onnx_quantized_texts import QUANTIZED_MODELS
from tests.support.onnx_texts import MODELS

COUNT = int(os.environ.get("ARMPY_ONNX_FUZZ_COUNT", "300"))
START = int(os.environ.get("ARMPY_FUZZ_START", "0"))
MEMORY_LIMIT_BYTES = 64 << 20
LARGEST_RUN_BYTES = 1 << 20
TIME_LIMIT_S = 5.0
PARTS = 3

RUNTIME = Runtime(
    RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES, loop_timeout_s=0.01)
)
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 255, 2**31, 2**40, 2**63 - 1)


@cache
def node_models() -> list[bytes]:
    """ONNX's node tests that are small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the tests are computed
        cases = [case for case in collect_testcases(None) if case.model is not None]
    written = (case.model.SerializeToString() for case in cases)
    return [data for data in written if len(data) < 20_000]


@cache
def nested_models() -> list[bytes]:
    """Models with graphs and functions inside, quantised ones, and such of ONNX Runtime."""
    texts = (*MODELS, *QUANTIZED_MODELS)
    return [onnx.parser.parse_model(text).SerializeToString() for text in texts]


def _graphs(model: Any) -> list[Any]:
    """A model's graphs and functions; those inside come last."""
    found = [model.graph, *model.functions]
    for graph in found:
        for node in graph.node:
            found.extend(attribute.g for attribute in node.attribute if attribute.HasField("g"))
    return found


def _change(model: Any, rng: random.Random) -> None:
    """Make one thing of a model odd."""
    graphs = _graphs(model)
    nodes = [node for graph in graphs for node in graph.node]
    node, other = rng.choice(nodes), rng.choice(nodes)
    names = [name for one in nodes for name in (*one.input, *one.output)] or [""]
    what = rng.randrange(10)
    if what == 0 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif what == 1 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(names)
    elif what == 2:
        node.op_type, node.domain = other.op_type, other.domain
    elif what == 3 and other.attribute:
        copy = onnx.AttributeProto()  # a node may lie inside of what it is given
        copy.CopyFrom(rng.choice(other.attribute))
        node.attribute.add().CopyFrom(copy)
    elif what == 4 and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.i = rng.choice(NUMBERS)
        if attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
        if attribute.HasField("t") and attribute.t.dims:
            attribute.t.dims[0] = rng.choice(NUMBERS)
    elif what == 5 and node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
    elif what == 6:
        twin = onnx.NodeProto()
        twin.CopyFrom(node)
        rng.choice(graphs).node.add().CopyFrom(twin)
    elif what == 7 and len(node.input):
        del node.input[rng.randrange(len(node.input))]
    elif what == 8 and model.graph.input:
        kind = rng.choice(model.graph.input).type
        kind.tensor_type.elem_type = rng.randrange(28)
    elif model.opset_import:
        rng.choice(model.opset_import).version = rng.randrange(1, 29)


def odd_model(number: int) -> bytes:
    """A model that protocol buffers can read, and that says odd things."""
    rng = random.Random(number)
    model = onnx.load_model_from_string(rng.choice((rng.choice(nested_models()), _node(rng))))
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(model, rng)
    return bytes(model.SerializeToString())


def _node(rng: random.Random) -> bytes:
    """A node test."""
    return rng.choice(node_models())


def _try_one(data: bytes) -> str:
    """Load a file and run it if it is small; what is wrong with the outcome, or nothing."""
    started = time.perf_counter()
    try:
        with armpy.load(
            data, front_end="onnx", memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=RUNTIME
        ) as model:
            duration = time.perf_counter() - started
            _run_if_small(model)
    except ParserError as error:
        duration = time.perf_counter() - started
        if not str(error):
            return "an error without a text"
    except Exception as error:  # noqa: BLE001  # any other error is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if duration < TIME_LIMIT_S else f"it took {duration:.1f} s"


def _run_if_small(model: Model) -> None:
    """Run a model on ones; whatever is wrong with it has to be an `ArmpyError`."""
    infos = [spec.info for spec in model.inputs]
    if any(info.shape is None for info in infos):
        return
    shapes = [tuple(2 if dim is None else dim for dim in info.shape or ()) for info in infos]
    if sum(int(np.prod(shape, dtype=float)) for shape in shapes) * 8 > LARGEST_RUN_BYTES:
        return
    pairs = zip(infos, shapes, strict=True)
    with contextlib.suppress(ArmpyError), np.errstate(all="ignore"):
        model(*(np.ones(shape, info.data_type.dtype) for info, shape in pairs))


def _failures(make: Callable[[int], bytes], part: int) -> dict[int, str]:
    """What went wrong, by number of the file, in one part of the numbers."""
    numbers = range(START + part, START + COUNT // PARTS, PARTS)
    outcomes = {number: _try_one(make(number)) for number in numbers}
    return {number: outcome for number, outcome in outcomes.items() if outcome}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_node_tests_parse_or_raise_parser_errors(part: int) -> None:
    seeds = node_models()
    assert _failures(lambda number: mutated(seeds, number), part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_models_with_graphs_inside_parse_or_raise_parser_errors(part: int) -> None:
    seeds = nested_models()
    assert _failures(lambda number: mutated(seeds, number), part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_models_parse_or_raise_parser_errors(part: int) -> None:
    assert _failures(odd_model, part) == {}
