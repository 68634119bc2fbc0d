from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from armpy_tools.pages import (
    Bar,
    Bars,
    Cautions,
    Details,
    Facts,
    GraphEdge,
    GraphNode,
    GraphView,
    Headline,
    Headlines,
    Lines,
    Matrix,
    MatrixCell,
    NodeColours,
    Part,
    Section,
    Series,
    Stack,
    Table,
    Text,
    TwoLines,
    quantization_text,
    render_page,
    shape_text,
)
from armpy_tools.pages.scales import number_text

HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>\u202e\x00"


class Page(HTMLParser):
    """A page's tags and their texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts.append(data)
        self.texts.append(data)


def graph(title: str = "conv") -> GraphView:
    nodes = [
        GraphNode(title, "Convolution2d", 0, 50.0 * n, 100, 40, ((title, "1"),)) for n in (0, 1)
    ]
    return GraphView(title, nodes, [GraphEdge(0, 1)], [NodeColours("backend", ["A", "B"])])


def matrix(text: str) -> Matrix:
    cell = MatrixCell(text, text, text, [(text, text)])
    return Matrix(text, text, [text], [(text, [cell])], [(text, "good")])


def every_part(text: str) -> list[Section]:
    parts = (
        Text(text, "note"),
        Facts([(text, text)]),
        Headlines([Headline(text, [(text, text)], [text], [Bar(text, 1.0)])]),
        Table(text, [text, f"{text}>"], [(TwoLines(text, text), 1.5)]),
        Bars(text, [Bar(text, 1.0, text, text, inside=[Bar(text, 1.0)])], text, text),
        Bars(text, [Bar(text, 1.0)] * 2, shown=1),
        Cautions([text]),
        matrix(text),
        Stack(text, [Bar(text, 1.0, text)]),
        Lines(text, [Series(text, [0], [1], [text])], text, text, limits=[(text, 1.0)]),
        Details(text, [Text(text)]),
        graph(text),
    )
    return [Section(text, parts)]


def test_names_of_a_hostile_model_do_not_become_markup() -> None:
    page = Page(render_page(HOSTILE, every_part(HOSTILE), HOSTILE))
    assert "img" not in [tag for tag, _ in page.tags]
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert [attrs.get("type") for attrs in scripts] == ["application/json"] * 5 + [None]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    (drawn,) = (script for script in page.scripts if '"titles"' in script)
    assert (
        json.loads(drawn)["titles"]
        == [HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00")] * 2
    )


def test_control_characters_are_written_out() -> None:
    text = render_page("a\x00b", [Section("s\u202e", [Text("t\x1b")])])
    assert "a\\x00b" in text
    assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_a_page_allows_its_own_style_and_program_and_nothing_else() -> None:
    text = render_page("title", every_part("x"))
    policy = next(a["content"] for t, a in Page(text).tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        source = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[-1]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_a_page_names_no_address_from_which_anything_is_loaded() -> None:
    text = render_page("title", every_part("x"))
    assert "http://" not in text
    assert "https://" not in text
    assert not [a for _, a in Page(text).tags if "src" in a or a.get("style")]


def test_every_id_is_there_once() -> None:
    page = Page(render_page("title", [*every_part("x"), Section("more", [graph()])]))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_shapes_and_quantisation_are_short() -> None:
    assert shape_text((None, 224, 3)) == "?×224×3"
    assert shape_text(()) == "scalar"
    assert quantization_text((0.5,), (3,)) == "scale 0.5, zero point 3"
    assert quantization_text((0.5, 0.25), (0, 0), 3) == "2 scales along axis 3"
    assert quantization_text((), ()) == ""


def test_shares_of_a_stack_are_parts_of_its_whole() -> None:
    slices = Stack("", [Bar("a", 3.0), Bar("b", 1.0)]).slices
    assert [(start, percent) for _, _, start, percent in slices] == [(0, 75), (75, 25)]


def test_the_longest_bar_or_interval_is_the_whole_width() -> None:
    bars = Bars("", [Bar("a", 2.0, interval=(1.0, 4.0)), Bar("b", 1.0)])
    assert [bars.percent(value) for value in (0.0, 1.0, 2.0, 4.0)] == [0, 25, 50, 100]
    assert Bars("", [Bar("a", 0.0)]).percent(0.0) == 0


def test_decades_of_a_logarithmic_axis_are_equally_far_apart() -> None:
    chart = Lines("", [Series("", [0, 1, 2, 3], [1e-4, 1e-2, 1.0, 0.0])], is_log=True).chart
    ys = [point.y for point in chart.lines[0].points]
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2])
    assert ys[3] == chart.bottom  # nothing has no logarithm
    assert [tick.text for tick in chart.y_ticks] == ["1e-4", "1e-3", "1e-2", "1e-1", "1e0"]


def test_what_is_no_number_has_no_point() -> None:
    chart = Lines("", [Series("", [0, 1, 2], [1.0, float("nan"), float("inf")])]).chart
    assert len(chart.lines[0].points) == 1


def test_steps_hold_until_the_next_one() -> None:
    chart = Lines("", [Series("", [0, 1], [1.0, 2.0])], is_step=True).chart
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+V[\d.]+", chart.lines[0].path)


def test_a_colouring_by_amount_knows_the_most() -> None:
    data = NodeColours("time", amounts=[1.0, None, 3.0], texts=["1", "", "3"]).data()
    assert data["most"] == 3.0
    assert data["of"] == [1.0, None, 3.0]


def test_thousands_of_bars_and_points_are_data_rather_than_elements() -> None:
    bars = [Bar(f"layer {n}", float(n), inside=[Bar("part", 1.0)]) for n in range(2000)]
    points = [float(n) for n in range(2000)]
    parts: list[Part] = [
        Bars("bars", bars, shown=20),
        Lines("lines", [Series("line", points, points)], has_points=True),
    ]
    text = render_page("title", [Section("s", parts)])
    assert len(Page(text).tags) < 500
    empty = render_page("title", [Section("s", [Text("x")])])
    # Of a bar with one inside it are kept its names and figures, not the markup of two rows.
    assert len(text) - len(empty) < 2000 * 120


def test_a_linear_axis_begins_with_the_value_that_is_asked_for() -> None:
    lines = Lines("dB", [Series("a", [0, 1], [30.0, 40.0])], y_from=20.0)
    assert lines.chart.y_ticks[0].text == "20"
    assert lines.chart.lines[0].points[0].y < lines.chart.bottom
    below = replace(lines, series=[Series("a", [0, 1], [10.0, 40.0])])
    assert below.chart.lines[0].points[0].y == lines.chart.bottom


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (1234.5, "1,234.5"), (0.002, "0.002"), (2e9, "2e+09")]
)
def test_numbers_at_axes_are_written_in_full(number: float, text: str) -> None:
    assert number_text(number) == text
