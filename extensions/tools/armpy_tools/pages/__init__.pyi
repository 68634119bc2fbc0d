from armpy_tools.pages.graph import NodeColours as NodeColours, GraphEdge as GraphEdge
from armpy_tools.pages.graph import GraphNode as GraphNode, GraphView as GraphView
from armpy_tools.pages.layout import Layout as Layout, lay_out as lay_out
from armpy_tools.pages.line_chart import Lines as Lines, Series as Series
from armpy_tools.pages.names import (
    quantization_text as quantization_text,
    shape_text as shape_text,
)
from armpy_tools.pages.parts import (
    Headline as Headline,
    Headlines as Headlines,
    Bar as Bar,
    Bars as Bars,
    Cautions as Cautions,
    Details as Details,
    Facts as Facts,
    Mark as Mark,
    Matrix as Matrix,
    MatrixCell as MatrixCell,
    Part as Part,
    Section as Section,
    Stack as Stack,
    Table as Table,
    Text as Text,
    TwoLines as TwoLines,
)
from armpy_tools.pages.rendering import (
    render_page as render_page,
    write_page as write_page,
)

__all__: list[str]
