"""Settings that hold for NumbaAcc's tests alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy_testing.effort import IS_CAMPAIGN, first_and_another

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unless all are asked for, run all on the best instruction set and a third on another one."""
    if IS_CAMPAIGN:
        return
    config.hook.pytest_deselected(items=[item for item in items if not _is_chosen(item)])
    items[:] = [item for item in items if _is_chosen(item)]


@pytest.fixture(autouse=True)
def keeps_its_layers(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the backend broke, and another one computed its layers."""
    yield
    texts = [record.getMessage() for record in caplog.get_records("call")]
    broken = [text for text in texts if "NumbaAcc / " in text and "the backend raised" in text]
    assert not broken, broken


def _is_chosen(item: pytest.Item) -> bool:
    """Whether a test is run on its instruction set, if it is for one."""
    callspec = getattr(item, "callspec", None)
    isa = None if callspec is None else callspec.params.get("isa")
    if isa is None or FOLDER not in item.path.parents:
        return True
    # Only now: what the tests share compiles, and asks for the cache's place as it is imported.
    from .support import ISA_NAMES, PRODUCT_NAMES

    name = str(getattr(isa, "name", isa))
    if name not in PRODUCT_NAMES:
        return True
    names = ISA_NAMES if name in ISA_NAMES else PRODUCT_NAMES
    is_best = name == names[0]
    return is_best or name in first_and_another(names, item.nodeid.replace(name, ""))
