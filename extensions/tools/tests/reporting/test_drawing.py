"""Pictures of a file's layers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from armpy import Network
from armpy.inspect import ModelFacts, describe_model
from armpy.model import Model
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import ADD, RELU, f32
from armpy_tools.report.drawing import to_dot, to_svg
from armpy_tools.report.graph_picture import write_svg
from armpy_tools.report.picture import pictures

SVG = "{http://www.w3.org/2000/svg}"


def diamond() -> ModelFacts:
    net = Network("diamond")
    x = net.input("x", f32(2, 3))
    left, right = net.add(RELU, x, name="left"), net.add(RELU, x, name="right")
    net.output("y", net.add(ADD, left, right, name="sum"))
    return describe_model(Model(net, runtime_of(FakeBackend("Fast", {type(RELU)}))))


def drawn(facts: ModelFacts) -> ET.Element:
    return ET.fromstring(to_svg(pictures(facts, {}), "a model"))


def texts(svg: ET.Element) -> list[str]:
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def test_every_layer_input_and_output_is_drawn_with_its_backend() -> None:
    svg = drawn(diamond())
    labels = texts(svg)
    assert labels.count("Activation") == 2
    assert {"x", "left", "right", "sum", "Fast", "CpuRef", "FLOAT32 (2, 3)"} <= set(labels)
    assert labels.count("(2, 3)") == 5
    assert len([path for path in svg.iter(f"{SVG}path") if "marker-end" in path.attrib]) == 5
    colours = {rect.get("fill") for rect in svg.iter(f"{SVG}rect") if rect.get("rx")}
    assert len(colours) == 3


def test_boxes_do_not_overlap_and_lie_in_the_picture() -> None:
    svg = drawn(diamond())
    boxes = [
        tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        for rect in svg.iter(f"{SVG}rect")
        if rect.get("rx")
    ]
    assert len(boxes) == 5
    for (x, y, w, h), (u, v, a, b) in combinations(boxes, 2):
        assert x + w <= u or u + a <= x or y + h <= v or v + b <= y


def test_names_cannot_become_markup() -> None:
    facts = diamond()
    layer = replace(facts.layers[0], name='</text><script>"\\&\x00', operator="<b>\ud800")
    hostile = replace(facts, layers=(layer, *facts.layers[1:]))
    assert not list(drawn(hostile).iter(f"{SVG}script"))
    assert '\\"' in to_dot(pictures(hostile, {}))


def test_it_is_drawn_without_graphviz_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "a.svg"
    assert write_svg(diamond(), str(path), "a model") == "armpy"
    assert "sum" in texts(ET.fromstring(path.read_text("utf-8")))
