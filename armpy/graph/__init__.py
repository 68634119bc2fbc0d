"""The graph that a network is, and parts of it."""

from armpy.graph.dump import to_dot
from armpy.graph.graph import Graph, Layer, Value, Variable
from armpy.graph.nesting import graphs_of, nested_graphs
from armpy.graph.selector import select_subgraphs
from armpy.graph.subgraph_view import SubgraphView
from armpy.graph.verify import verify_graph

__all__ = [
    "Graph",
    "Layer",
    "SubgraphView",
    "Value",
    "Variable",
    "graphs_of",
    "nested_graphs",
    "select_subgraphs",
    "to_dot",
    "verify_graph",
]
