from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from armpy.graph import Graph, to_dot
from armpy.graph.network import Network
from armpy.ops import Reshape
from armpy_testing.models.networks import RELU, chain, f32, i32

NASTY = 'a "quoted" {name} | with <all> of \\them'


def nasty_graph() -> Graph:
    """A graph whose names hold every character that means something in a record label."""
    net = Network(NASTY)
    x = net.input(NASTY, f32(None, 2))
    net.output(NASTY + "!", net.add(RELU, x, name=NASTY))
    return net.build()


def statements(text: str) -> list[str]:
    """Lines between the braces of a dump."""
    lines = text.splitlines()
    assert lines[0] == 'digraph "armpy" {'
    assert lines[-1] == "}"
    return [line.strip() for line in lines[1:-1]]


def test_layers_inputs_and_outputs_are_nodes_and_values_edges() -> None:
    text = to_dot(chain(2), {0: "CpuRef"})
    assert '    in0 -> n0 [label="(4,)"];' in text
    assert '    n0 -> n1 [label="(4,)"];' in text
    assert '    n1 -> out0 [label="(4,)"];' in text
    assert text.count("BackendID : CpuRef") == 1
    assert "Guid : 1\\lLayerName : add_1\\l" in text


def test_constants_are_not_drawn_even_as_outputs() -> None:
    net = Network()
    net.input("x", f32(1))
    net.output("y", net.constant([1.0]))
    text = to_dot(net.build())
    assert "->" not in text
    assert "{Output|y}" in text


def test_operands_that_are_left_out_are_not_drawn() -> None:
    net = Network()
    x = net.input("x", f32(4))
    shape = net.input("shape", i32(2))
    net.output("y", net.add(Reshape(), x, shape))
    assert to_dot(net.build()).count("->") == 3


@pytest.mark.parametrize("graph", [chain(), nasty_graph()])
def test_every_line_is_a_statement_with_a_closed_label(graph: Graph) -> None:
    label = r'label="(?:[^"\\]|\\.)*"'
    statement = re.compile(rf"(\w+( -> \w+)? \[{label}\]|(node|edge) \[[^\]]*\]);")
    for line in statements(to_dot(graph, {layer.id: NASTY for layer in graph.layers})):
        assert statement.fullmatch(line), line


def test_names_are_escaped() -> None:
    escaped = r"a \"quoted\" \{name\} \| with \<all\> of \\them"
    text = to_dot(nasty_graph())
    assert f'label="{{Input|{escaped}}}"' in text
    assert f"LayerName : {escaped}\\l" in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_dump() -> None:
    subprocess.run(["dot", "-Tplain"], input=to_dot(nasty_graph()), text=True, check=True)
