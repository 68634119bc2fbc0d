from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from armpy.graph import Graph, to_dot
from armpy.graph.network import Network
from armpy_testing.models.networks import RELU, chain, f32

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
