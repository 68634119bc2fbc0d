"""Every page of the documentation is followed from top to bottom, exactly as it is.

A page's Python blocks run one after the other in one process, its commands in a shell, both in a
folder of their own in which the models and pictures lie that the page names. A comment in front of
a block says that nightly tests alone run it (`<!-- run nightly: why -->`), or that none does
(`<!-- not run: why -->`); both are held here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from armpy_testing.installed import skip_without
from tests.support.pages import ROOT, blocks, pages
from tests.support.walkthrough import Reader

skip_without("click", "pillow", "pip", "setuptools>=77", "onnx", "armpy-onnx", "cryptography")

ELSEWHERE = {
    "docs/how_to/adding_an_operation.md": "tests/documents/test_adding_an_operation.py",
    "docs/how_to/kserve.md": "tests/documents/test_kserve_page.py",
    "docs/reference/calls_in_order.md": "tests/execution/test_order_of_calls.py",
}
"""Pages that tests of their own follow."""

NIGHTLY = {
    "backends/dynamic_examples/compiler_style/README.md",
    "backends/dynamic_examples/device/README.md",
    "backends/dynamic_examples/drivers/README.md",
    "backends/dynamic_examples/nnapi_extensions/README.md",
    "docs/gallery.md",
    "docs/how_to/benchmark.md",
    "docs/how_to/conformance.md",
    "docs/how_to/pictures.md",
    "docs/how_to/profiling.md",
    "docs/how_to/report.md",
    "docs/how_to/starts.md",
    "docs/how_to/try_a_program.md",
    "docs/how_to/vendor_extensions.md",
    "docs/how_to/write_a_plugin.md",
    "docs/tutorials/write_a_backend.md",
}
"""Pages that take more than ten seconds; the tests of their commands and examples run before."""

FOLLOWED = [
    pytest.param(
        page,
        id=page.relative_to(ROOT).as_posix(),
        marks=[pytest.mark.nightly] * (page.relative_to(ROOT).as_posix() in NIGHTLY),
    )
    for page in pages()
    if blocks(page) and page.relative_to(ROOT).as_posix() not in ELSEWHERE
]

LONG = [
    pytest.param(page, id=page.relative_to(ROOT).as_posix())
    for page in pages()
    if any(block.nightly for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the pages are written for a POSIX shell")
@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    Reader(page, tmp_path).read()


@pytest.mark.nightly
@pytest.mark.timeout(3600)  # of packages that are downloaded, and built
@pytest.mark.skipif(os.name == "nt", reason="the pages are written for a POSIX shell")
@pytest.mark.parametrize("page", LONG)
def test_a_page_can_be_followed_with_its_installation(page: Path, tmp_path: Path) -> None:
    reader = Reader(page, tmp_path, nightly=True)
    if reader.installs and not reader.finds_packages():
        pytest.skip("no package index can be reached")
    reader.read()


def test_every_page_has_its_blocks_tested_here_or_by_a_test_of_its_own() -> None:
    for page, test in ELSEWHERE.items():
        assert blocks(ROOT / page)
        assert Path(page).name in (ROOT / test).read_text("utf-8")
    assert len(FOLLOWED) >= 15


def test_every_fence_is_a_block_that_is_understood() -> None:
    for page in pages():
        lines = [line.strip() for line in page.read_text("utf-8").splitlines()]
        fences = sum(line.startswith("```") for line in lines)
        assert fences == 2 * len(blocks(page)), page


def test_commands_are_in_fences_that_are_run() -> None:
    for page in pages():
        text = page.read_text("utf-8")
        for block in blocks(page):
            text = text.replace(block.text, "")
        assert not re.search(r"^    (armpy|pip|python3?|[$]) ", text, re.M), page


def test_tutorials_show_true_output_that_fits_the_page() -> None:
    shown = [
        line
        for page in (ROOT / "docs" / "tutorials").glob("*.md")
        for block in blocks(page)
        if block.kind == "console" or "output" in block.settings
        for line in block.text.splitlines()
        if not line.startswith("$ ")
    ]
    assert len(shown) > 50
    assert [line for line in shown if "..." in line] == []
    assert [line for line in shown if len(line) > 100] == []
