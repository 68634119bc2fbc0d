from __future__ import annotations

import pytest

from armpy.backend import CacheUse, ReasonCode, Support
from armpy.cli.printer import print_json
from armpy.cli.run.report import run_document
from armpy.cli.run.results import OutputReport
from armpy.cli.run.run_model import RunReport
from armpy.compiler import Placement, Refusal

OUTPUT = OutputReport("mask", (1, 8, 8), "SIGNED64", 0.0, 12.0, 3.0)
REFUSED = Refusal(
    3, "probabilities", "Softmax", "A", Support.no(ReasonCode.RANK, "rank 5 is not supported")
)


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


def test_tuples_and_numbers_that_are_not_finite_become_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"a": (1, float("nan"), [float("-inf"), "ä"])})
    out = capsys.readouterr().out
    assert "".join(out.split()) == r'{"a":[1,null,[null,"\u00e4"]]}'
