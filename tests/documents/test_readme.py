"""The README: short, its commands where .ci/run takes them, its backend and figures true."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import armpy
from tests.support.pages import ROOT, blocks

README = ROOT / "README.md"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/how_to/index.md"])
def test_links_lead_to_files(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_site_has_every_page_of_the_root_folder() -> None:
    listed = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = [page.stem for page in ROOT.glob("*.md")]
    assert "CODE_OF_CONDUCT" in pages
    assert [page for page in pages if f"../{page}" not in listed] == []


def test_its_backend_runs_sums_and_refuses_the_rest() -> None:
    (text,) = (block.text for block in blocks(README) if "IWorkloadFactory" in block.text)
    names: dict[str, Any] = {}  # Any: whatever the block defines, pasted alone
    exec(text, names)
    pair = armpy.TensorInfo((2,), armpy.DataType.FLOAT32)
    net = armpy.Network()
    total = net.add(
        armpy.ops.ElementwiseBinary(armpy.ops.BinaryOperation.ADD),
        net.input("a", pair),
        net.input("b", pair),
        name="sum",
    )
    net.output("result", net.add(armpy.ops.Softmax(), total, name="softmax"))
    model = armpy.Model(net, names["runtime"])
    result = model.run({"a": np.array([1, 2], np.float32), "b": np.array([3, 2], np.float32)})[
        "result"
    ]
    np.testing.assert_allclose(result, [0.5, 0.5])
    assert model.placement is not None
    placed = {layer.layer: layer.backend for layer in model.placement.layers}
    assert placed["sum"] == "AcmeAdder" != placed["softmax"]
    assert "is not a float32 sum" in str(model.placement)
