"""ONNX's own tests of backends, through ONNX's own harness, unchanged.

``ARMPY_ONNX_SUITE_BACKENDS=NumbaAcc,CpuRef`` runs them on other backends than CpuRef.
"""

from __future__ import annotations

import fnmatch
import os
import unittest
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

pytest.importorskip("onnx")

import onnx.backend.test

import armpy
from armpy_onnx.backend import OnnxBackend, OnnxModel

from .onnx_skips import ACCELERATED, SKIPS

pytestmark = pytest.mark.slow

_BACKENDS = os.environ.get("ARMPY_ONNX_SUITE_BACKENDS", "CpuRef").split(",")


class _Runtime(armpy.Runtime):
    """Unloads what a test has loaded: thousands of models would stay until the end."""

    def __init__(self, backends: list[str]) -> None:
        super().__init__(armpy.RuntimeOptions(backends=backends))
        self._loaded: list[int] = []

    def load_network(self, *args: Any, **kwargs: Any) -> int:
        """Load a network, and note it."""
        network_id = super().load_network(*args, **kwargs)
        self._loaded.append(network_id)
        return network_id

    def unload_all(self) -> None:
        """Unload the models loaded since the last time."""
        while self._loaded:
            self.unload_network(self._loaded.pop())


class _Tested(OnnxBackend):
    """All tests on one runtime."""

    runtime: ClassVar[_Runtime] = _Runtime(_BACKENDS)

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", *others: Any, **kwargs: Any
    ) -> OnnxModel:
        """Load a model on the runtime."""
        return super().prepare(model, device, runtime=cls.runtime)


class _Accelerated(_Tested):
    """A few of them on the accelerator, with fallback."""

    runtime: ClassVar[_Runtime] = _Runtime(["NumbaAcc", "CpuRef"])


@pytest.fixture(autouse=True)
def _nothing_stays_loaded() -> Iterator[None]:
    """Unload the models of each test."""
    yield
    _Tested.runtime.unload_all()
    _Accelerated.runtime.unload_all()


def _cases(backend: type[OnnxBackend]) -> Iterator[tuple[str, type[unittest.TestCase]]]:
    """The harness's test classes on the CPU; each skipped test has a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the harness computes expected results
        suite = onnx.backend.test.BackendTest(backend, __name__)
        suite.exclude(r"_cuda$")
        cases = suite.test_cases
    for name, case in cases.items():
        for method in [name for name in vars(case) if name.startswith("test_")]:
            reason = next(
                (why for pattern, why in SKIPS.items() if fnmatch.fnmatchcase(method, pattern)), ""
            )
            if reason:
                setattr(case, method, unittest.skip(reason)(getattr(case, method)))
        yield name, case


def _chosen(case: type[unittest.TestCase]) -> type[unittest.TestCase]:
    """Those of a class that are run on the accelerator, too."""
    names = (f"test_{name}_cpu" for name in ACCELERATED)
    return type("Accelerated", (unittest.TestCase,), {name: getattr(case, name) for name in names})


CASES = dict(_cases(_Tested))
globals().update(CASES)
Accelerated = _chosen(dict(_cases(_Accelerated))["OnnxBackendNodeModelTest"])


def test_every_reason_is_of_a_test_that_there_is() -> None:
    names = [name for case in CASES.values() for name in vars(case)]
    assert [pattern for pattern in SKIPS if not fnmatch.filter(names, pattern)] == []
