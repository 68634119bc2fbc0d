"""Models' files: their own words in inspection and run, and what armpy cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.command_line import Cli
from armpy_testing.models.tflite_writer import model_with_input
from armpy_testing.shared import shared_file

for library in ("click", "PIL"):
    pytest.importorskip(library)


def test_operators_that_armpy_does_not_have_are_named_and_the_rest_is_shown(
    cli: Cli, tmp_path: Path
) -> None:
    model, graph, words = model_with_input((1,), "STRING", name="words")
    pairs, flags = graph.tensor("pairs", (1,), "STRING"), graph.tensor("flags", (1,), "BOOL")
    graph.operator("SKIP_GRAM", [words], [pairs], {"ngram_size": 2})
    graph.operator("EQUAL", [words, words], [flags], {})
    graph.outputs(pairs, flags)
    path = tmp_path / "pairs.tflite"
    path.write_bytes(model.to_bytes())
    out = cli.out("inspect", path, "--layers")
    assert out.splitlines()[0] == (
        "armpy cannot run this model: it does not have SKIP_GRAM x1; 1 of 2 layers. "
        "Convert the model with other operators, or install a plugin that has them"
    )
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "0 SKIP_GRAM (1,) string 0 B NOT SUPPORTED pairs" in rows
    report = cli.document("inspect", path)
    assert report["unsupported"] == {"SKIP_GRAM": 1}
    assert report["inputs"][0]["type"] == "STRING"


@pytest.mark.slow
def test_a_batch_that_callers_choose_is_shown_with_one_row(cli: Cli) -> None:
    pytest.importorskip("armpy_onnx")
    pytest.importorskip("onnx")
    path = shared_file("models", "onnx", "magika_standard_v3_3.onnx")
    single = cli.document("inspect", path, "--backends", "CpuRef")
    assert sum(single["layers_by_backend"].values()) > 50
    several = cli.document("inspect", path, "--backends", "CpuRef", "--shape", "bytes=3,2048")
    assert several["macs"] == 3 * single["macs"] > 0
    assert several["parameters"] == single["parameters"]
