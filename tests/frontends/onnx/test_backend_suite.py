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
from armpy.onnx_backend import OnnxBackend, OnnxModel
from tests.support.onnx_skips import ACCELERATED, SKIPS

_BACKENDS = os.environ.get("ARMPY_ONNX_SUITE_BACKENDS", "CpuRef").split(",")


class _Tested(OnnxBackend):
    """All tests on one runtime."""

    runtime: ClassVar[armpy.Runtime] = armpy.Runtime(armpy.RuntimeOptions(backends=_BACKENDS))

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", *others: Any, **kwargs: Any
    ) -> OnnxModel:
        """Load a model on the runtime."""
        return super().prepare(model, device, runtime=cls.runtime)


class _Accelerated(_Tested):
    """A few of them on the accelerator, with fallback."""

    runtime: ClassVar[armpy.Runtime] = armpy.Runtime(
        armpy.RuntimeOptions(backends=["NumbaAcc", "CpuRef"])
    )


def _cases(backend: type[OnnxBackend]) -> Iterator[tuple[str, type[unittest.TestCase]]]:
    """The harness's test classes on the CPU; what is skipped has a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the harness computes what it expects
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
