from armpy.graph.dump import to_dot as to_dot
from armpy.graph.graph import SIZE_TYPES as SIZE_TYPES, SizesValue as SizesValue
from armpy.graph.graph import Graph as Graph, Layer as Layer, Value as Value, Variable as Variable
from armpy.graph.nesting import graphs_of as graphs_of, nested_graphs as nested_graphs
from armpy.graph.rewriter import Rewriter as Rewriter
from armpy.graph.subgraph_view import SubgraphView as SubgraphView
from armpy.graph.subgraph_view import select_subgraphs as select_subgraphs
from armpy.graph.verify import verify_graph as verify_graph

__all__: list[str]
