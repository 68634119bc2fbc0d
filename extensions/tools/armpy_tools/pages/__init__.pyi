from armpy_tools.pages.graph import NodeColours as NodeColours, GraphEdge as GraphEdge
from armpy_tools.pages.graph import GraphNode as GraphNode, GraphView as GraphView
from armpy_tools.pages.layout import Layout as Layout, lay_out as lay_out
from armpy_tools.pages.line_chart import Lines as Lines, Series as Series
from armpy_tools.pages.parts import (
    Bar as Bar,
    Bars as Bars,
    Details as Details,
    Facts as Facts,
    Mark as Mark,
    Part as Part,
    Section as Section,
    Stack as Stack,
    Table as Table,
    Text as Text,
)
from armpy_tools.pages.rendering import render_page as render_page, write_page as write_page

__all__: list[str]
