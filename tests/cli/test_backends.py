from __future__ import annotations

import logging

import pytest

from armpy.backend import IBackendInternal
from armpy.cli.backends import BackendReport, list_backends
from armpy.cli.report import print_backends
from armpy.plugins import BackendRegistry


def broken() -> IBackendInternal:
    raise OSError("the device is asleep")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> BackendRegistry:
    monkeypatch.setattr(logging.getLogger("armpy.plugins"), "disabled", True)
    registry = BackendRegistry()
    registry.register("Broken", broken, source="test 1.0")
    return registry


def test_listing_loads_nothing(registry: BackendRegistry) -> None:
    assert list_backends(registry) == [BackendReport("Broken", "test 1.0", "found", None, None, "")]


def test_a_backend_that_cannot_be_loaded_is_listed_with_the_reason(
    registry: BackendRegistry,
) -> None:
    (report,) = list_backends(registry, load=True)
    assert report.status == "failed"
    assert "the device is asleep" in report.reason


def test_the_table_tells_the_reason(
    registry: BackendRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    print_backends(list_backends(registry, load=True))
    assert "the device is asleep" in capsys.readouterr().out


def test_no_backend_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    print_backends([])
    assert capsys.readouterr().out == "no backend is installed\n"
