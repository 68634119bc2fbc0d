"""Proves which of PyTorch's operators armpy computes as PyTorch does.

Usage::

    python lab/prove_torch_operators.py [NAME...] [--check]

Runs PyTorch's own samples of its operators (``torch.testing``, OpInfo), and samples with edge
values, in each of `TYPES`. What the samples call once they are decomposed as programs are is
computed by armpy and by PyTorch. Writes ``proved_operators.json`` of armpy-torch; with ``--check``
ends with 1 if a call that the file has differs from PyTorch. Names are those of OpInfo; without
them all are run, which takes an hour. Needs expecttest, and SciPy for all operators.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from armpy import RuntimeOptions
from armpy.execution import Runtime
from armpy_torch.operator_calls import (
    OperatorCall,
    Signature,
    checks_of,
    unproved_reason,
)
from armpy_torch.preparation import registry_decomposed
from armpy_torch.verification import Calls, calls_of, differences_of_calls, is_wrong

TABLE = Path(__file__).parents[1] / "extensions/torch/armpy_torch/proved_operators.json"

TYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool),
    *(torch.int32, torch.float64, torch.uint8),
)

EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 90.0, -90.0),
    *(float("inf"), -float("inf"), float("nan")),
)
"""Values of which samples of elementwise operators and reductions are made."""

LARGE = (2**24 + 1, -(2**24) - 3, 2**31 - 1, -(2**31) + 3, 2**53 + 1, -(2**60) - 3, 7, -8)
"""Integers of samples: most are not whole numbers of float32, or of float64."""

NEAR_ZERO = 2.0**-13
"""Factor of samples near zero, where 1 + x has few digits of x."""

NUMBERS = (0, 2, -3, 0.0, 0.5, 2.5, -0.5, True)
"""Second arguments of binary operators that are no tensors."""

CONVERSIONS = frozenset({"byte", "char", "double", "float", "half", "int", "long", "short"})
"""Operators that convert numbers to a type; beyond its range C++ defines no result."""

COUNTED = ("bincount", "histc", "one_hot", "polynomial", "repeat_interleave")
"""Parts of names of operators that compute as many steps or elements as their integers say."""

SAMPLES = 24
"""Samples of an operator in a type; of more, some are drawn."""

ALIKE = 3
"""Calls that are tried of those with one signature, the same ranks and the same extremes."""

GROUP = 8
"""Operators whose samples are one program."""

BATCH = 64
"""Calls in one network."""

Table: TypeAlias = "dict[str, dict[str, str]]"
"""Proved features by operator and types."""


class Observation(NamedTuple):
    """What came of one call."""

    signature: Signature
    text: str  # how it differs; empty if it does not


def samples_of(info: Any, dtype: torch.dtype) -> list[OperatorCall]:
    """Samples of an operator, some with edge values, near zero or large, that PyTorch runs."""
    everything = [*islice(info.sample_inputs("cpu", dtype), 400)]
    some = Random(0).sample(everything, min(SAMPLES, len(everything)))
    samples = [OperatorCall(info.op, (s.input, *s.args), s.kwargs) for s in some]
    if _takes_edges(info):
        changes = _with_edges, _near_zero
        samples += [tree_map(change, sample) for sample in samples[:6] for change in changes]
    if _takes_large(info, dtype):
        samples += [tree_map(_large, sample) for sample in samples[:6]]
    if "BinaryUfuncInfo" in _kinds(info):
        x, kwargs = everything[0].input, some[-1].kwargs
        samples += [OperatorCall(info.op, (x, number), kwargs) for number in NUMBERS]
        samples += [OperatorCall(info.op, (x, number), {}) for number in NUMBERS]
        if _takes_large(info, dtype):
            large = _large(torch.zeros(len(LARGE), dtype=dtype))
            samples += [OperatorCall(info.op, (large, number), kwargs) for number in (*NUMBERS, 3)]
            most = torch.tensor(torch.iinfo(dtype).max, dtype=dtype)
            three = torch.tensor(3, dtype=dtype)
            samples += [OperatorCall(info.op, (most, number), kwargs) for number in (three, 3)]
    return [sample for sample in samples if _runs(sample)]


def _kinds(info: Any) -> set[str]:
    """Names of the classes that an operator's description is of."""
    return {base.__name__ for base in type(info).__mro__}


def recurrent_samples(dtype: torch.dtype) -> Iterator[OperatorCall]:
    """Samples of layers that OpInfo lacks."""
    flags = (False, True)
    functions = (torch.lstm, 4), (torch.gru, 3), (torch.rnn_tanh, 1), (torch.rnn_relu, 1)
    for (function, gates), biases, layers, both, batch_first in product(
        functions, flags, (1, 2), flags, flags
    ):
        directions = 1 + both
        weights = []
        for layer in range(layers):
            width = 3 if layer == 0 else 2 * directions
            for _ in range(directions):
                weights += [torch.randn(gates * 2, width), torch.randn(gates * 2, 2)]
                weights += [torch.randn(gates * 2)] * (2 * biases)
        states = [torch.randn(layers * directions, 4, 2) for _ in range(1 + (gates == 4))]
        state = [tensor.to(dtype) for tensor in states]
        values = torch.randn((4, 5, 3) if batch_first else (5, 4, 3)).to(dtype)
        args = (values, state if gates == 4 else state[0], [w.to(dtype) for w in weights])
        options = biases, layers, 0.0, False, both, batch_first
        yield OperatorCall(function, (*args, *options), {})


def _takes_edges(info: Any) -> bool:
    """Return whether an operator is defined for all numbers, as conversions of types are not."""
    if info.name in {str(dtype).removeprefix("torch.") for dtype in TYPES} | CONVERSIONS:
        return False
    return bool(_kinds(info) & {"UnaryUfuncInfo", "BinaryUfuncInfo", "ReductionOpInfo"})


def _takes_large(info: Any, dtype: torch.dtype) -> bool:
    """Return whether large integers are numbers of an operator, and not counts or converted."""
    if dtype not in (torch.int32, torch.int64) or info.name in CONVERSIONS:
        return False
    return not any(part in info.name for part in COUNTED)


def _with_edges(value: Any) -> Any:
    """The same tensor with edge values at its first elements, in an order of their own."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    edges = torch.tensor(EDGES if value.is_floating_point() else [0, 1, -1, 7, -8, 2])
    return _repeated(edges.roll(value.dim() + 1), value)


def _large(value: Any) -> Any:
    """The same tensor of integers of 32 or 64 bits, with large ones that the type has."""
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.int32, torch.int64):
        return value
    numbers = [number for number in LARGE if abs(number) <= torch.iinfo(value.dtype).max]
    return _repeated(torch.tensor(numbers, dtype=value.dtype).roll(value.dim()), value)


def _repeated(numbers: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Numbers again and again, in a tensor's type and shape."""
    chosen = numbers.repeat(1 + value.numel() // len(numbers))[: value.numel()]
    return chosen.to(value.dtype).reshape(value.shape)


def _near_zero(value: Any) -> Any:
    """The same tensor of real numbers, much smaller."""
    is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.detach() * NEAR_ZERO if is_real else value


def _runs(sample: OperatorCall) -> bool:
    """Return whether PyTorch runs a sample."""
    copied = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, sample)
    try:
        copied.result  # noqa: B018  # a property that runs it
    except Exception:  # noqa: BLE001  # whatever it raises
        return False
    return True


def traced(samples: Sequence[OperatorCall]) -> Iterator[OperatorCall]:
    """Calls of operators that samples are decomposed into."""
    program = Calls(samples)
    try:
        exported = torch.export.export(program, tuple(program.tensors), strict=False)
        yield from calls_of(registry_decomposed(exported), program.tensors)
    except Exception:  # noqa: BLE001  # no program, or one of the samples has none
        if len(samples) > 1:
            middle = len(samples) // 2
            yield from traced(samples[:middle])
            yield from traced(samples[middle:])


def chosen(calls: Iterable[OperatorCall], counts: Counter[object]) -> Iterator[OperatorCall]:
    """Few calls of each kind, none with complex or undefined numbers; `counts` has earlier ones."""
    for call in calls:
        tensors = [x for x in tree_leaves((call.args, call.kwargs)) if isinstance(x, torch.Tensor)]
        kind = (call.signature, tuple((tensor.dim(), *_extremes(tensor)) for tensor in tensors))
        counts[kind] += 1
        is_undefined = "empty" in str(call.target) or any(x.is_complex() for x in tensors)
        if counts[kind] <= ALIKE and not is_undefined:
            yield call


def _extremes(tensor: torch.Tensor) -> tuple[bool, bool]:
    """Whether a tensor has elements that are infinite, no numbers or large; or small ones alone."""
    is_dense = tensor.layout == torch.strided and not tensor.is_quantized
    if not is_dense or tensor.is_complex() or not tensor.numel():
        return False, False
    if not tensor.is_floating_point():
        return bool((tensor.double().abs() > LARGE[0] - 1).any()), False
    values = tensor.double()
    return not bool(values.isfinite().all()), bool(values.abs().max() < 64 * NEAR_ZERO)


def refused_elements(call: OperatorCall) -> bool:
    """Return whether PyTorch refuses elements of a call's integers that armpy does not check."""
    leaves, form = tree_flatten((call.args, dict(call.kwargs)))
    checked = {id(check.tensor) for check in checks_of(call)}
    for position, leaf in enumerate(leaves):
        is_integer = isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.int32, torch.int64)
        if not is_integer or not leaf.numel() or id(leaf) in checked:
            continue
        for element in (-1, 0, 1 << 20):
            wrong = leaf.clone(memory_format=torch.contiguous_format)
            wrong.view(-1)[0] = element
            args, kwargs = tree_unflatten(
                [wrong if number == position else x for number, x in enumerate(leaves)], form
            )
            if not _runs(call._replace(args=args, kwargs=kwargs)):
                return True
    return False


def observations(
    samples: Sequence[OperatorCall], runtime: Runtime, counts: Counter[object]
) -> Iterator[Observation]:
    """What comes of samples; `counts` has kinds of calls that came before."""
    calls = sorted(chosen(traced(samples), counts), key=lambda call: str(call.target))
    for begin in range(0, len(calls), BATCH):
        batch = calls[begin : begin + BATCH]
        for call, text in zip(batch, differences_of_calls(batch, runtime), strict=True):
            refused = "" if text or not refused_elements(call) else "PyTorch refuses some elements"
            yield Observation(call.signature, text or refused)


def table_of(found: Iterable[Observation]) -> Table:
    """Features of calls that are right, by operator and types.

    While a call is wrong that has these features alone, the one that most of its calls are wrong
    with is left out. A call that armpy refuses is not wrong.
    """
    rows: dict[tuple[str, str], list[tuple[frozenset[str], str]]] = defaultdict(list)
    for (operator, types, features), text in found:
        rows[operator, types].append((features, text))
    table: dict[str, dict[str, str]] = defaultdict(dict)
    for (operator, types), several in sorted(rows.items()):
        proved = frozenset().union(*(features for features, text in several if not text))
        wrong = [features for features, text in several if is_wrong(text)]
        while any(features <= proved for features in wrong):
            suspects = [feature for features in wrong if features <= proved for feature in features]
            shares = {
                suspect: sum(suspect in features for features in wrong)
                / sum(suspect in features for features, _ in several)
                for suspect in sorted(set(suspects))
            }
            proved -= {max(shares, key=lambda suspect: shares[suspect])}
        if any(not text and features <= proved for features, text in several):
            table[operator][types] = " ".join(sorted(proved))
    return dict(table)


def write(table: Table) -> None:
    """Write the file, a line for each row."""
    text = json.dumps({"torch": torch.__version__, "operators": table}, indent=0)
    TABLE.write_text(f"{text}\n", encoding="utf-8")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    found: list[Observation] = []

    def is_chosen(info: Any) -> bool:
        return not arguments.names or info.name in arguments.names

    torch.manual_seed(0)
    with torch.no_grad():
        for dtype in TYPES:
            counts: Counter[object] = Counter()
            infos = [info for info in op_db if dtype in info.dtypes and is_chosen(info)]
            for begin in range(0, len(infos), GROUP):
                some = infos[begin : begin + GROUP]
                samples = [sample for info in some for sample in samples_of(info, dtype)]
                found += observations(samples, runtime, counts)
            if dtype.is_floating_point and not arguments.names:
                found += observations([*recurrent_samples(dtype)], runtime, counts)
    if arguments.check:
        wrong = [
            item for item in found if is_wrong(item.text) and not unproved_reason(item.signature)
        ]
        for item in wrong:
            print(*item.signature[:2], *sorted(item.signature.features), item.text)
        return int(bool(wrong))
    write(table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
