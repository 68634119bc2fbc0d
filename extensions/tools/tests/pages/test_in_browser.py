"""Pages in headless Chromium: clicked, searched, by keyboard, in both colour schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armpy_testing.browser import SWITCHES, find_chromium
from armpy_tools.pages import (
    Bar,
    Bars,
    Facts,
    GraphEdge,
    GraphNode,
    GraphView,
    Lines,
    Matrix,
    MatrixCell,
    NodeColours,
    Part,
    Section,
    Series,
    Table,
    lay_out,
    write_page,
)

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\""


def chain(count: int, titles: list[str]) -> GraphView:
    """Layers of which each reads the one before."""
    edges = [(n, n + 1) for n in range(count - 1)]
    centres = lay_out([(200.0, 44.0)] * count, edges).centres
    nodes = [
        GraphNode(titles[n], "CONV_2D" if n % 2 else "ADD", x, y, 200, 44, [("time", f"{n} us")])
        for n, (x, y) in enumerate(centres)
    ]
    colourings = [
        NodeColours("backend", ["NumbaAcc", "CpuRef"] * (count // 2)),
        NodeColours(
            "time", amounts=list(map(float, range(count))), texts=[f"{count - 1} us"] * count
        ),
    ]
    return GraphView("The graph", nodes, [GraphEdge(*edge) for edge in edges], colourings)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    failed = MatrixCell("failed", "1", "Add int8: 1 failed", [("add/1", "wrong")])
    small = [f"layer_{n}" for n in range(12)]
    parts: dict[str, list[Part]] = {
        "small": [
            chain(12, small),
            Table("Times", ["layer", "us>"], [("a", 10), ("b", 9), ("c", "1,200")]),
            Lines("Lines", [Series("line", [0, 1], [2.0, 3.0])], "x", "ms"),
            Bars("Bars", [Bar(f"bar {n}", float(n)) for n in range(9, 0, -1)], shown=4),
            Matrix(
                "Cases",
                "operation",
                ["int8", "float32"],
                [("Add", [failed, None])],
                [("failed", "bad")],
            ),
            Bars("Folded", [Bar("block", 3.0, inside=[Bar("a", 1.0), Bar("b", 2.0)])]),
        ],
        "hostile": [
            chain(2, [HOSTILE, "other"]),
            Facts([(HOSTILE, HOSTILE)]),
            Table(HOSTILE, [HOSTILE], [(HOSTILE,)]),
            Bars("Bars", [Bar("a", 1.0), Bar(HOSTILE, 1.0, inside=[Bar(HOSTILE, 1.0)])], shown=1),
            Matrix(
                HOSTILE,
                HOSTILE,
                [HOSTILE],
                [(HOSTILE, [MatrixCell("bad", "1", HOSTILE, [(HOSTILE, HOSTILE)])])],
                [("bad", "bad")],
            ),
        ],
        "large": [chain(2000, [f"cell_{n // 10}/conv_{n}" for n in range(2000)])],
    }
    for name, page_parts in parts.items():
        last = Section("Last", [Facts([("a", "b")])])
        write_page(folder / f"{name}.html", name, [Section("Parts", page_parts), last])
    return {name: (Path(folder) / f"{name}.html").as_uri() for name in parts}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:  # Any: the package may be missing where types are checked
    path = find_chromium()
    if path is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("dialog", lambda dialog: problems.append(dialog.message))
    yield opened
    context.close()
    assert not problems


def place(page: Any, node: int) -> tuple[float, float]:
    """Where a node is on the screen."""
    x, y = page.evaluate(
        """(node) => {
            const v = document.querySelector('.graph').graphView;
            const box = v.area.getBoundingClientRect();
            const [x, y] = v.data.boxes[node];
            const { x: left, y: top, scale } = v.view;
            return [box.left + (x - left) * scale, box.top + (y - top) * scale];
        }""",
        node,
    )
    return float(x), float(y)


def chosen(page: Any) -> str:
    return str(page.locator(".graph").get_attribute("data-chosen") or "")


def test_a_click_on_a_layer_shows_its_facts(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    page.mouse.click(*place(page, 3))
    facts = page.locator(".chosen")
    assert facts.locator("h3").text_content() == "layer_3"
    assert "3 us" in facts.text_content()
    facts.get_by_role("button", name="layer_4").click()  # reads from layer_3
    assert chosen(page) == "layer_4"


def test_a_search_counts_its_matches_and_goes_to_the_next(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    search = page.get_by_role("searchbox")
    search.fill("conv_2d")
    assert page.get_by_role("status").text_content() == "6 found"
    search.press("Enter")
    search.press("Enter")
    assert chosen(page) == "layer_3"
    assert page.get_by_role("status").text_content() == "2 of 6 found"
    search.press("Escape")
    assert page.get_by_role("status").text_content() == ""


def test_arrow_keys_go_from_layer_to_layer(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    page.locator(".canvas").focus()
    for key, expected in (
        ("ArrowDown", "layer_0"),
        ("ArrowDown", "layer_1"),
        ("ArrowDown", "layer_2"),
        ("ArrowUp", "layer_1"),
        ("End", "layer_11"),
        ("Escape", ""),
    ):
        page.keyboard.press(key)
        assert chosen(page) == expected


def test_everything_can_be_reached_with_the_tab_key(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
    for wanted in ('class="skip"', 'id="theme"', 'type="search"', "<select", 'class="canvas"'):
        assert any(wanted in text for text in reached), wanted


def test_keys_and_buttons_zoom(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])

    def scale() -> float:
        return float(page.locator(".graph").get_attribute("data-scale"))

    page.get_by_role("button", name="Fit").click()
    fitting = scale()
    page.get_by_role("button", name="Zoom in").click()
    assert scale() == pytest.approx(1.4 * fitting, rel=1e-3)
    page.locator(".canvas").focus()
    page.keyboard.press("-")
    assert scale() == pytest.approx(fitting, rel=1e-3)
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert scale() == pytest.approx(fitting, rel=1e-3)


def test_the_graph_is_moved_by_dragging(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    x, y = place(page, 0)
    page.mouse.move(x, y + 60)
    page.mouse.down()
    page.mouse.move(x - 50, y + 20, steps=5)
    page.mouse.up()
    moved = place(page, 0)
    assert moved == pytest.approx((x - 50, y - 40), abs=8)
    assert chosen(page) == ""  # this was no click


def test_colours_follow_the_system_and_the_button(browser: Any, pages: dict[str, str]) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(pages["small"])
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(255, 255, 255)" != dark
    page.locator("#theme").click()
    assert page.evaluate(colour) == dark
    context.close()


def test_a_table_is_sorted_by_numbers_and_back(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    heading = page.get_by_role("button", name="us")
    cells = page.locator("table.sortable tbody td:first-child")
    heading.click()
    assert cells.all_text_contents() == ["b", "a", "c"]
    heading.click()
    assert cells.all_text_contents() == ["c", "a", "b"]


def test_a_chart_has_its_points_as_a_table(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    page.get_by_text("The same as a table").click()
    cells = page.locator("details.data td").all_text_contents()
    assert cells == ["line", "x 0: 2 ms", "line", "x 1: 3 ms"]


def test_long_charts_are_folded_out_when_asked(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    rows = page.locator("table.bars").first.locator("tbody tr:visible")
    assert rows.count() == 4
    page.get_by_role("button", name="Show 5 more").click()
    assert rows.count() == 9


def test_a_click_on_a_cell_shows_its_reasons(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["small"])
    cell = page.get_by_role("button", name="Add int8: 1 failed")
    cell.click()
    assert page.locator(".matrix .lines").text_content() == "Add int8: 1 failedadd/1wrong"
    assert cell.get_attribute("aria-expanded") == "true"
    cell.click()
    assert page.locator(".matrix .lines").count() == 0


@pytest.mark.parametrize("width", [360, 1600])
def test_a_page_is_no_wider_than_the_screen(page: Any, pages: dict[str, str], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(pages["small"])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_hostile_model_runs_nothing_and_is_shown_as_it_is(
    page: Any, pages: dict[str, str]
) -> None:
    page.goto(pages["hostile"])
    page.mouse.click(*place(page, 0))
    assert page.locator(".chosen h3").text_content() == HOSTILE
    assert page.locator("td").first.text_content() == HOSTILE
    page.get_by_role("button", name="Show 1 more").click()
    page.locator("tr[data-inside] button").click()
    assert page.locator("tr.inner th").text_content() == HOSTILE
    page.locator(".matrix td button").click()
    assert page.locator(".matrix dt").text_content() == HOSTILE
    assert page.locator("img").count() == 0
    page.get_by_role("searchbox").fill("<img src=x")
    assert page.get_by_role("status").text_content() == "1 of 1 found"


def test_scripts_of_others_are_refused(browser: Any, pages: dict[str, str]) -> None:
    page = browser.new_page()
    page.goto(pages["small"])
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.intruder = true';
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.intruder") is None
    page.close()


def test_nothing_is_asked_of_any_other_place(page: Any, pages: dict[str, str]) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages["large"])
    assert asked == [pages["large"]]


def test_of_two_thousand_layers_only_those_in_sight_are_written(
    page: Any, pages: dict[str, str]
) -> None:
    page.goto(pages["large"])
    written = page.evaluate(
        """async () => {
            const v = document.querySelector('.graph').graphView;
            let count = 0;
            const write = v.write.bind(v);
            v.write = (node) => { count += 1; write(node); };
            v.pan(0, 50000);
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            return count;
        }"""
    )
    assert 0 < written < 40


def test_the_overview_leads_to_any_place_of_a_large_graph(page: Any, pages: dict[str, str]) -> None:
    page.goto(pages["large"])
    box = page.locator(".canvas").bounding_box()
    position = {"x": box["width"] - 40, "y": box["height"] - 10}
    page.locator(".canvas").click(position=position)
    box = page.locator(".canvas").bounding_box()
    _, y = place(page, 1990)
    assert abs(y - box["y"]) < 3 * box["height"]
