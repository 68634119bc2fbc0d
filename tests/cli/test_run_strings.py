"""`armpy run` of models with strings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy_testing.command_line import Cli
from armpy_testing.models.tflite_writer import model_with_input

pytest.importorskip("click")


@pytest.fixture
def reshaping(tmp_path: Path) -> Path:
    """A model that makes a column of words."""
    model, graph, words = model_with_input((3,), "STRING", name="words")
    column = graph.tensor("column", (3, 1), "STRING")
    shape = graph.tensor("shape", (2,), "INT32", data=[3, 1])
    graph.operator("RESHAPE", [words, shape], [column], {"new_shape": [3, 1]})
    graph.outputs(column)
    path = tmp_path / "reshaping.tflite"
    path.write_bytes(model.to_bytes())
    return path


@pytest.mark.parametrize("suffix", ["npy", "txt"])
def test_strings_are_read_from_files_and_written_to_them(
    reshaping: Path, tmp_path: Path, cli: Cli, suffix: str
) -> None:
    words = ["dog", "", "zwölf"]
    path = tmp_path / f"words.{suffix}"
    if suffix == "npy":
        np.save(path, np.array(words))
    else:
        path.write_text("\n".join(words), "utf-8")
    out = cli.out("run", str(reshaping), "--input", str(path), "--output", str(tmp_path))
    assert r"output: column string (3, 1) 'dog', '', 'zw\xf6lf'" in out
    column = np.load(tmp_path / "column.npy", allow_pickle=False)
    assert column.tolist() == [[word] for word in words]


def test_random_strings_are_empty(reshaping: Path, cli: Cli) -> None:
    assert "output: column string (3, 1) '', '', ''" in cli.out("run", str(reshaping))
