from __future__ import annotations

from dataclasses import replace

import pytest

from armpy.backend import CacheUse, ReasonCode, Support
from armpy.cli.inspect.describe import InspectionReport
from armpy.cli.inspect.report import print_model
from armpy.cli.printer import print_json
from armpy.cli.run.report import print_run, run_document
from armpy.cli.run.results import ClassScore, OutputReport, RegionShare
from armpy.cli.run.run_model import RunReport
from armpy.compiler import Placement, Refusal
from armpy.inspect import ModelFacts

pytest.importorskip("rich")

OUTPUT = OutputReport("mask", (1, 8, 8), "SIGNED64", 0.0, 12.0, 3.0)
FACTS = ModelFacts(0, 0, 0, 0, 0, {}, {}, "", (), (), (), (), (), is_file=True)
REFUSED = Refusal(
    3, "probabilities", "Softmax", "A", Support.no(ReasonCode.RANK, "rank 5 is not supported")
)
MODEL = InspectionReport((), (), FACTS, (), "2 layers: A 1, B 1", {"A": 1, "B": 1})


def test_the_regions_of_a_mask_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    regions = (RegionShare(12, 48, 0.75, "dog"), RegionShare(0, 16, 0.25, ""))
    print_run(RunReport("x", "y", {}, (replace(OUTPUT, regions=regions),)))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[-4:] == [
        ["class", "pixels", "share", "label"],
        ["12", "48", "75.00%", "dog"],
        ["0", "16", "25.00%"],
        ["placement:", "y"],
    ]


def test_labels_are_a_column_only_where_there_are_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    regions = (RegionShare(12, 48, 0.75, ""),)
    classes = (ClassScore(3, 0.5, ""),)
    outputs = (replace(OUTPUT, regions=regions), replace(OUTPUT, classes=classes))
    print_run(RunReport("x", "y", {}, outputs))
    out = capsys.readouterr().out
    assert "share\n" in out
    assert "score\n" in out
    assert "label" not in out


def test_each_row_of_a_batch_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ((ClassScore(3, 0.5, "cat"),), (ClassScore(1, 0.25, ""),))
    print_run(RunReport("x", "y", {}, (replace(OUTPUT, rows=rows),)))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["row", "class", "score", "label"] in lines
    assert ["0", "3", "0.5000", "cat"] in lines
    assert ["1", "1", "0.2500"] in lines


def test_a_run_as_a_document_has_its_placement_as_data() -> None:
    uses = (CacheUse("B", "2 layers", True), CacheUse("B", "1 layer", False, "no file"))
    placed = Placement((), (REFUSED,), {"A": 1, "B": 2}, 2, 2, 1, {"A": 64}, cache_uses=uses)
    document = run_document("m.tflite", RunReport("x", "in words", {}, (OUTPUT,), placed=placed))
    placement = document["placement"]
    assert isinstance(placement, dict)
    refusals = placement.pop("refusals")
    assert placement == {
        "text": str(placed),
        "layers": 3,
        "layers_by_backend": {"A": 1, "B": 2},
        "fallbacks": 2,
        "partitions": 2,
        "copies": 1,
        "working_memory_bytes": 64,
        "preference": "preference",
        "basis": "order",
        "cache_hits": 1,
        "cache_misses": 1,
    }
    assert refusals == [
        {
            "layer_id": 3,
            "layer": "probabilities",
            "operation": "Softmax",
            "backend": "A",
            "support": {
                "is_supported": False,
                "code": "rank",
                "text": "rank 5 is not supported",
                "error": None,
            },
        }
    ]
    assert "placed" not in document


def test_an_output_without_elements_is_printed_without_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    empty = OutputReport("y", (0, 4), "FLOAT32", None, None, None)
    print_run(RunReport("x", "y", {}, (empty,)))
    assert capsys.readouterr().out.splitlines()[1] == "output: y float32 (0, 4)"


def test_refusals_are_printed_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    placed = Placement((), (REFUSED,) * 7, {"B": 7}, 7, 1, 0, {})
    print_model(replace(MODEL, placed=placed))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split(maxsplit=3) == ["7", "Softmax", "A", "rank 5 is not supported"]


def test_tuples_and_numbers_that_are_not_finite_become_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"a": (1, float("nan"), [float("-inf"), "ä"])})
    out = capsys.readouterr().out
    assert "".join(out.split()) == r'{"a":[1,null,[null,"\u00e4"]]}'
