"""Graph dumps: what a graph is at each stage of optimisation, for Graphviz."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, OptimizerOptions, TensorInfo
from armpy.execution import NetworkProperties
from armpy.ops import BinaryOperation, ElementwiseBinary, Transpose
from tests.support.buffer_device import BufferDevice
from tests.support.fake_backends import runtime_of


def network() -> Network:
    """``y = transpose(transpose(x)) + x``, of which the transposes cancel."""
    net = Network()
    x = net.input("x", TensorInfo((2, 3), DataType.FLOAT32))
    turned = net.add(Transpose((1, 0)), net.add(Transpose((1, 0)), x, name="one"), name="two")
    total = net.add(ElementwiseBinary(), turned, x, name="sum")
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MUL), total, x, name="product"))
    return net


def stages(folder: Path) -> dict[str, str]:
    """What was written down, by stage, in order."""
    paths = sorted(folder.iterdir())
    return {path.stem.split("-", 2)[2]: path.read_text(encoding="utf-8") for path in paths}


def run(options: OptimizerOptions | None = None) -> None:
    with runtime_of(BufferDevice("Adder", [BinaryOperation.ADD])) as runtime:
        properties = NetworkProperties(optimizer=options)
        model = armpy.Model(network(), runtime, properties=properties)
        model.run({"x": np.ones((2, 3), np.float32)})


def test_each_stage_of_optimisation_is_drawn(tmp_path: Path) -> None:
    run(OptimizerOptions(dump_graphs=str(tmp_path / "new" / "folder")))
    told = stages(tmp_path / "new" / "folder")
    assert [*told] == ["loaded", "pass_cancel_transposes", "assigned", "substituted", "bridged"]
    assert all(text.startswith("digraph") for text in told.values())
    assert "Transpose" in told["loaded"]
    assert "Transpose" not in told["pass_cancel_transposes"]
    assert "BackendID" not in told["loaded"]
    assert "BackendID : Adder" in told["assigned"]
    assert "BackendID : CpuRef" in told["assigned"]
    assert "MemCopy" not in told["substituted"]
    assert "MemCopy" in told["bridged"]


def test_the_environment_says_where_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_DUMP_GRAPHS", str(tmp_path))
    run()
    assert "bridged" in stages(tmp_path)
    other = tmp_path / "other"
    run(OptimizerOptions(dump_graphs=str(other)))
    assert "bridged" in stages(other)  # the option comes first


def test_what_is_optimised_apart_is_drawn(tmp_path: Path) -> None:
    armpy.optimize(network(), options=OptimizerOptions(dump_graphs=str(tmp_path)))
    assert "loaded" in stages(tmp_path)
    assert "bridged" in stages(tmp_path)


def test_nothing_is_written_unless_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARMPY_DUMP_GRAPHS", raising=False)
    run()
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.write_text("here")
    with caplog.at_level(logging.WARNING, logger="armpy.compiler"):
        run(OptimizerOptions(dump_graphs=str(file)))
    assert "the graph is not written down" in caplog.text
    assert file.read_text() == "here"
