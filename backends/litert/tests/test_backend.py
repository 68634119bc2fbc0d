"""The conformance kit on the backend, networks of several layers, and refused layers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.backend import OptionValue
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.graph import Graph
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy_conformance import run_conformance

pytest.importorskip("ai_edge_litert")
pytest.importorskip("armpy_litert")

from armpy_litert import LiteRtBackend, delegate_backend
from armpy_litert.engine import interpreter_module

from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.effort import part_of_kit

OPTIONS: dict[str, OptionValue] = {"num_threads": 0, "delegate": "", "delegate_options": ""}


def test_a_quantised_network_is_one_partition_with_the_answers_of_the_reference() -> None:
    model = armpy.load(DIGITS, backends=["LiteRt"], on_fallback="error")
    reference = armpy.load(DIGITS, backends=["CpuRef"])
    image = np.full((1, 16, 16, 1), -128, np.int8)  # noise would lie between classes
    image[:, 2:14, 7:9] = 127
    np.testing.assert_allclose(model(image), reference(image), atol=1)
    assert "LiteRt 10; 1 partition" in str(model.placement)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("delegate", "libnosuch.so", "the delegate 'libnosuch.so' cannot be loaded"),
        ("delegate_options", "[1]", "delegate_options is not an object"),
        ("delegate_options", "{", "delegate_options is not JSON"),
    ],
)
def test_a_wrong_delegate_is_named(option: str, value: str, text: str) -> None:
    options = OPTIONS | {"delegate": "libnosuch.so"} | {option: value}
    with pytest.raises(ArmpyError, match=text.replace("[", r"\[")):
        LiteRtBackend().create_backend_context(options)


def test_a_vendor_s_delegate_is_a_backend_of_its_own() -> None:
    backend = delegate_backend("Acme", "libacme_delegate.so")()
    assert backend.get_id() == "Acme"
    (library,) = (option.default for option in backend.options if option.name == "delegate")
    assert library == "libacme_delegate.so"
    assert LiteRtBackend().get_id() == "LiteRt"


@pytest.mark.slow
def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    cases = part_of_kit(
        "contract/compiled", "contract/graphs", "Concat/", "pattern/residual", "pattern/separable"
    )
    result = run_conformance("LiteRt", filter=cases)
    assert result.is_passed, (result.shortcomings, result.problems)


@pytest.fixture(scope="module")
def add_delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of a delegate that takes additions of float32 tensors of one shape."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("delegate") / "libadd_delegate.so"
    source = Path(__file__).with_name("add_delegate.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True
    )
    return library


def sums() -> Graph:
    """Two additions, of which the delegate takes the first, and a multiplication."""
    net = Network("sums")
    info = TensorInfo((2, 3), DataType.FLOAT32)
    x, y = net.input("x", info), net.input("y", info)
    total = net.add(ElementwiseBinary(BinaryOperation.ADD), x, y)
    more = net.add(
        ElementwiseBinary(BinaryOperation.ADD),
        total,
        net.input("row", TensorInfo((3,), DataType.FLOAT32)),
    )
    net.output("z", net.add(ElementwiseBinary(BinaryOperation.MUL), more, total))
    return net.build()


def test_with_a_delegate_it_takes_what_the_delegate_takes(add_delegate: Path) -> None:
    options = RuntimeOptions(
        backends=["LiteRt", "CpuRef"],
        backend_options={"LiteRt": {"delegate": str(add_delegate)}},
    )
    model = Model(sums(), Runtime(options))
    x, y = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    row = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(model(x, y, row), (x + y + row) * (x + y))
    placement = str(model.placement)
    assert "LiteRt 1" in placement
    assert "the delegate" in placement
    assert "does not take it" in placement


def test_a_layer_that_litert_aborts_on_is_refused() -> None:
    net = Network("difference")
    x = net.input("x", TensorInfo((5,), DataType.SIGNED16))
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.SUB), x, x))
    model = Model(net, Runtime(RuntimeOptions(backends=["LiteRt", "CpuRef"])))
    assert "the engine does not survive the model: it " in str(model.placement)


def test_a_delegate_that_refuses_is_named_with_its_reason(add_delegate: Path) -> None:
    options = OPTIONS | {"delegate": str(add_delegate), "delegate_options": '{"fail": "1"}'}
    with pytest.raises(BackendUnavailableError, match="the device is asleep"):
        LiteRtBackend().create_backend_context(options)


@pytest.mark.slow
def test_another_module_in_place_of_the_engine_is_named() -> None:
    pytest.importorskip("armpy_compat")
    program = (
        "import armpy_compat\n"
        "armpy_compat.install()\n"
        "from armpy_litert.engine import interpreter_module\n"
        "interpreter_module('LiteRt')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "LiteRt: armpy_compat stands in for the engine in this process" in done.stderr


def test_a_compiled_model_is_checked_as_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "digits.armpy"
    with armpy.load(DIGITS, backends=["LiteRt", "CpuRef"]) as model:
        model.save(path)
    assert armpy.check(path, device="LiteRt").fit == "fits"
    interpreter_module.cache_clear()
    for name in ("ai_edge_litert.interpreter", "tflite_runtime.interpreter"):
        monkeypatch.setitem(sys.modules, name, None)
    answer = armpy.check(path)
    assert answer.fit == "fits slower"
    assert answer.reason.startswith("10 layers of LiteRt: for host: LiteRt / check: no interpreter")
    with armpy.load(path) as loaded:
        assert not loaded.is_light
    answer = armpy.check(path, device="LiteRt")
    assert answer.fit == "does not fit"
    with pytest.raises(
        BackendUnavailableError, match=r"no interpreter can be.*Run: pip install ai-edge-litert$"
    ):
        armpy.load(path, backends=["LiteRt", "CpuRef"])
