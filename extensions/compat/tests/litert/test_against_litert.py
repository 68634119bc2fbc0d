"""Every answer of the interpreter on real models is LiteRT's, but for the ones listed here."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from armpy_testing.effort import IS_CAMPAIGN
from armpy_testing.shared import shared_files

from .comparison import Comparison

MODELS = shared_files("models", "*/*.tflite")
CHOSEN = [path for path in MODELS if IS_CAMPAIGN or path.stat().st_size < 300_000]
"""In the shortened form without large models, which take seconds to compile."""

KNOWN = {
    "bert_tiny_dynamic": "elements are wrong",  # an activation lies at a tie of its scale
    "op_MATRIX_SET_DIAG": "cannot be given these shapes",
    "op_RANDOM_NORMAL": "elements are wrong",
    "op_UNIQUE": "cannot be given these shapes",
}
"""A text in each answer that may differ, by model."""


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_answers_are_litert_s(path: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            comparison = Comparison(path, litert)
        except ValueError as error:
            pytest.skip(f"LiteRT does not open it: {error}"[:100])
        differences = comparison.run()
    known = KNOWN.get(path.stem)
    assert [text for text in differences if known is None or known not in text] == []
    assert comparison.queries > 40


def test_models_are_compared() -> None:
    if not MODELS:
        pytest.skip("test data is not beside the checkout")
    assert {path.stem for path in MODELS} >= KNOWN.keys()
