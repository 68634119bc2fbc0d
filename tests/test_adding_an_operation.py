"""The code blocks of docs/adding_an_operation.md do what the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import armpy_reference.workloads
import numpy as np
import pytest

from armpy import DataType, LayerValidationError, Model, Network, TensorInfo

PAGE = Path(__file__).parents[1] / "docs" / "adding_an_operation.md"

DEFINITION_IMPORTS = """
from __future__ import annotations
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from armpy.ops.operation import Operation, TypeRule, same
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
"""

WORKLOAD_IMPORTS = """
from __future__ import annotations
from collections.abc import Sequence
import numpy as np
from leaky_family import LeakyClip
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload
"""


@pytest.fixture
def page_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's definition and workload as modules, found as the page says."""
    definition, workload = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "leaky_family.py").write_text(DEFINITION_IMPORTS + definition)
    (tmp_path / "leaky_clip.py").write_text(WORKLOAD_IMPORTS + workload)
    monkeypatch.syspath_prepend(str(tmp_path))
    paths = [*armpy_reference.workloads.__path__, str(tmp_path)]
    monkeypatch.setattr(armpy_reference.workloads, "__path__", paths)
    yield
    for name in ("leaky_family", "armpy_reference.workloads.leaky_clip"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("page_modules")
def test_the_pages_definition_and_workload_are_all_that_is_needed() -> None:
    from leaky_family import LeakyClip  # type: ignore[import-not-found]  # written above

    net = Network()
    x = net.input("x", TensorInfo((3,), DataType.FLOAT32))
    net.output("y", net.add(LeakyClip(low=1.0, slope=0.5), x))
    model = Model(net)
    np.testing.assert_array_equal(
        model(np.array([-1, 1, 4], np.float32)), np.array([0, 1, 4], np.float32)
    )


@pytest.mark.usefixtures("page_modules")
def test_the_pages_type_rules_are_checked_by_the_builder() -> None:
    from leaky_family import LeakyClip

    net = Network()
    x = net.input("x", TensorInfo((3,), DataType.SIGNED32))
    with pytest.raises(LayerValidationError, match=r"LeakyClip 'clip'.*SIGNED32"):
        net.add(LeakyClip(), x, name="clip")
