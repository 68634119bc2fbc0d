"""Covering arrays, and the tables of forms that the kit's cases are made of by them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import pytest

from armpy_conformance.cases.graph_patterns import graph_patterns
from armpy_conformance.cases.pairs import form_tables
from armpy_conformance.cases.pairs.covering import Row, covering
from armpy_conformance.cases.pairs.form_table import FormTable, attribute_factors
from armpy_conformance.definitions.expected import answered
from armpy_conformance.description import describe

FACTORS = {"a": ("0", "1", "2"), "b": ("3", "4"), "c": ("5", "6", "7", "8")}


def pairs(row: Mapping[str, str]) -> set[tuple[str, str]]:
    """Every pair of values of a row."""
    return set(itertools.combinations(row.values(), 2))


def every_pair(factors: Mapping[str, tuple[str, ...]]) -> set[tuple[str, str]]:
    """Every pair of values of two factors."""
    both = itertools.combinations(factors.values(), 2)
    return {pair for one, other in both for pair in itertools.product(one, other)}


def test_every_pair_of_values_occurs_in_few_rows() -> None:
    rows = list(covering(FACTORS, lambda row: row))
    assert set().union(*map(pairs, rows)) == every_pair(FACTORS)
    assert len(rows) <= 15  # 12 at least, of 24


def test_values_that_exclude_each_other_cost_no_other_pair() -> None:
    def make(row: Row) -> Row | None:
        return None if (row["a"], row["b"]) == ("1", "4") else row

    rows = list(covering(FACTORS, make))
    assert set().union(*map(pairs, rows)) == every_pair(FACTORS) - {("1", "4")}


def test_each_value_occurs_with_each_one_of_a_centre() -> None:
    rows = list(covering(FACTORS, lambda row: row, "b"))
    of_b = {pair for pair in every_pair(FACTORS) if set(pair) & {"3", "4"}}
    assert of_b <= set().union(*map(pairs, rows))
    assert len(rows) == 8


def test_one_factor_has_a_row_per_value() -> None:
    assert list(covering({"a": ("0", "1")}, lambda row: row["a"])) == ["0", "1"]


# Attributes without a factor of their own, with the reason.
UNTRIED = {
    "ElementwiseBinary": {"power_of_two_scales"},  # of one type, which has lines of its own
    "FullyConnected": {"asymmetric_quantize_inputs"},  # of floats beside bytes
    "TransposeConvolution2d": {"output_shape"},  # follows from the others
    "TransposeConvolution3d": {"output_shape"},
}

# Attributes that a factor of another name says.
NAMED_OTHERWISE = {
    "Activation": {"function", "a", "b"},
    "MaxPoolWithIndices": {"pool_size", "stride", "dilation", "padding"},
    "Resize": {"size"},
    "TopkV2": {"k"},
    "Unstack": {"num"},
    "Splitter": {"num_splits", "sizes"},
    "Transpose": {"perm"},
    "Pad": {"pad_list"},
    "Slice": {"begin", "size"},
    "StridedSlice": {
        *("begin", "end", "stride", "begin_mask", "end_mask"),
        *("shrink_axis_mask", "ellipsis_mask", "new_axis_mask"),
    },
    "GatherNd": {"batch_dims"},
    "Tile": {"multiples"},
    "BroadcastTo": {"broadcast_to_shape"},
    "ReverseSequence": {"sequence_axis", "batch_axis"},
    "Reshape": {"target_shape"},
    "Squeeze": {"axes"},
    "Fill": {"shape"},
}


@pytest.mark.parametrize("table", tuple(form_tables()), ids=lambda table: table.kind.__name__)
def test_every_attribute_is_a_factor(table: FormTable) -> None:
    name = table.kind.__name__
    attributes = {item.name for item in dataclasses.fields(table.kind)}  # type: ignore[arg-type]  # all are
    known = {*table.all_factors(), *UNTRIED.get(name, ()), *NAMED_OTHERWISE.get(name, ())}
    assert attributes <= known
    assert set(attribute_factors(table.kind)) <= attributes


SMALL = ("Convolution2d", "BatchMatMul", "Reduce", "Concat", "StridedSlice")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_cases_differ_in_what_they_are_about(name: str) -> None:
    (table,) = (table for table in form_tables() if table.kind.__name__ == name)
    cases = list(table.cases())
    kinds = {
        (
            describe(case.operation),
            *((x.info, x.is_constant) if x is not None else None for x in case.inputs),
            case.outputs,
        )
        for case in cases
    }
    assert len(cases) > 20
    assert len(kinds) >= 0.9 * len(cases)


def test_most_answers_come_from_definitions() -> None:
    (table,) = (table for table in form_tables() if table.kind.__name__ == "DepthToSpace")
    assert all(answered(case).expected is not None for case in table.cases())


def test_graph_patterns_have_names_of_their_own_and_are_no_chains() -> None:
    patterns = graph_patterns()
    names = [pattern.name for pattern in patterns]
    assert len(set(names)) == len(names)
    merged = [pattern for pattern in patterns if pattern.name.endswith("second-reader/float32")]
    assert merged
    for pattern in merged:
        graph = pattern.graph
        readers = [
            sum(value in layer.inputs for layer in graph.layers)
            for layer in graph.layers
            for value in layer.outputs
        ]
        assert max(readers) >= 2
