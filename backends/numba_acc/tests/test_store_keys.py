from __future__ import annotations

import ast
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store import keys
from armpy_numba_acc.store.keys import object_key, program_key, region_digest
from armpy_numba_acc.store.modules import files_behind, modules_in

from armpy import Network
from armpy.graph import SubgraphView
from armpy.ops import Convolution2d, ElementwiseBinary, Padding
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .families import kernel_names
from .support import forget_sources

ISA = host_isas()[0]
KERNEL = Kernel("convolution_f32", (14, 2))


@pytest.fixture(autouse=True)
def fresh_origin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The sources may change while their tests run.
    monkeypatch.setattr(keys, "_IMPORTED_NS", 1 << 63)
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")  # digests are not remembered either
    forget_sources()
    yield
    forget_sources()


def region(
    *,
    shape: tuple[int, ...] = (1, 6, 6, 3),
    stride: tuple[int, int] = (1, 1),
    padding: Padding = Padding.SAME,
    weight: float = 0.5,
    name: str = "conv",
    swapped: bool = False,
    outputs: int = 1,
) -> SubgraphView:
    net = Network()
    x = net.input("x", TensorInfo(shape, DataType.FLOAT32))
    weights = net.constant(np.full((4, 3, 3, 3), weight, np.float32), name="weights")
    y = net.add(Convolution2d(stride=stride, padding=padding), x, weights, name=name)
    z = net.add(Convolution2d(stride=stride, padding=padding), x, weights, name="second")
    total = net.add(ElementwiseBinary(), *((z, y) if swapped else (y, z)), name="sum")
    net.output("out", total)
    if outputs == 2:
        net.output("y", y)
    graph = net.build()
    return SubgraphView.of(graph, graph.layers)


def quantized(scale: float = 0.5, zero_point: int = 3) -> SubgraphView:
    net = Network()
    info = TensorInfo((4,), DataType.QASYMM_U8, Quantization.per_tensor(scale, zero_point))
    x = net.input("x", info)
    net.output("y", net.add(ElementwiseBinary(), x, x, output=info, name="sum"))
    graph = net.build()
    return SubgraphView.of(graph, graph.layers)


OTHERS: dict[str, Callable[[], SubgraphView]] = {
    "shape": lambda: region(shape=(1, 6, 7, 3)),
    "attribute": lambda: region(stride=(2, 2)),
    "enumeration": lambda: region(padding=Padding.VALID),
    "constant's last bit": lambda: region(
        weight=float(np.nextafter(np.float32(0.5), np.float32(1)))
    ),
    "sign of zero": lambda: region(weight=-0.0),
    "zero": lambda: region(weight=0.0),
    "name": lambda: region(name="another"),
    "wiring": lambda: region(swapped=True),
    "outputs": lambda: region(outputs=2),
    "quantised": quantized,
    "scale": lambda: quantized(scale=0.25),
    "zero point": lambda: quantized(zero_point=4),
}


def key_of(
    view: SubgraphView, isa: Isa = ISA, num_threads: int = 1, model: MachineModel | None = None
) -> str:
    """Key of a region's program."""
    return program_key(region_digest(view), isa, num_threads, model)


def test_equal_regions_have_equal_keys() -> None:
    assert key_of(region()) == key_of(region()) != ""


def test_whatever_a_program_depends_on_is_in_its_key() -> None:
    program_keys = {name: key_of(make()) for name, make in OTHERS.items()}
    program_keys["none"] = key_of(region())
    program_keys["threads"] = key_of(region(), num_threads=2)
    portable = make_isa("portable", "x86_64", "", frozenset())
    program_keys["instruction set"] = key_of(region(), isa=portable)
    faster = dataclasses.replace(typical(ISA), cycle_ns=0.1)
    program_keys["machine"] = key_of(region(), model=faster)
    assert "" not in program_keys.values()
    assert len(set(program_keys.values())) == len(program_keys)


def test_whatever_code_depends_on_is_in_its_key() -> None:
    isas = [
        ISA,
        ISA._replace(cpu="other"),
        ISA._replace(features="other"),
        ISA._replace(triple="other"),
    ]
    kernels = [KERNEL, Kernel("convolution_f32", (14, 1)), Kernel("depthwise_f32", (14, 2))]
    kernels.append(Kernel("convolution_f32", ("14", "2")))
    object_keys = [object_key(kernel, isa) for isa in isas for kernel in kernels]
    assert len(set(object_keys)) == len(object_keys)


@pytest.mark.parametrize("distribution", ["numba", "llvmlite", "numpy"])
def test_another_version_has_other_keys(distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = object_key(KERNEL, ISA)
    version = keys.package_version
    monkeypatch.setattr(keys, "package_version", lambda d: "0" if d == distribution else version(d))
    forget_sources()
    assert object_key(KERNEL, ISA) not in ("", before)


def test_another_python_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = object_key(KERNEL, ISA)
    monkeypatch.setattr(sys, "version", "4.0")
    forget_sources()
    assert object_key(KERNEL, ISA) not in ("", before)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that takes the place of the sources."""
    package = tmp_path / "pretended_sources"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    file = package / "inner" / "module.py"
    file.write_text("a = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(keys, "_SOURCES", ("pretended_sources",))
    return file


def test_other_sources_have_other_keys(source: Path) -> None:
    before = key_of(region())
    source.write_text("a = 2\n")
    forget_sources()
    assert key_of(region()) not in ("", before)


def test_nothing_is_kept_by_a_process_whose_sources_have_changed(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert key_of(region())
    assert object_key(KERNEL, ISA)
    assert keys.is_current()
    monkeypatch.setattr(keys, "_IMPORTED_NS", 0)
    assert not keys.is_current()
    forget_sources()
    assert key_of(region()) == object_key(KERNEL, ISA) == ""


def test_nothing_is_kept_where_sources_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_SOURCES", ("no_such_package",))
    assert key_of(region()) == ""


def every_kernel() -> dict[str, str]:
    """Digests of the sources behind each kernel, computed now."""
    forget_sources()
    return {name: keys.code_digest(name) for name in kernel_names()}


ANEW = {
    "armpy_numba_acc.kernels.softmax": {"softmax"},
    "armpy_numba_acc.tiles.windows.loop": {
        *("depthwise_f32", "depthwise_u8"),
        *("pooling_f32", "pooling_i16", "pooling_u8"),
    },
    "armpy_numba_acc.passes.region": set(),
    "armpy_numba_acc.machine.cost_model.model": set(),
    "armpy.ops.convolution": set(),
}
"""Kernels that are made anew where one module changes."""


@pytest.mark.parametrize("module", ANEW)
def test_only_kernels_that_a_changed_module_is_part_of_are_made_anew(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = every_kernel()
    digest, file = keys._file_digest, files_behind([module], keys._SOURCES)[module]
    with monkeypatch.context() as patch:
        changed = cache(lambda path: digest(path) + "!" * (path == file))
        patch.setattr(keys, "_file_digest", changed)
        after = every_kernel()
    assert {name for name, code in after.items() if code != before[name]} == ANEW[module]


def test_the_code_generator_is_part_of_every_kernel() -> None:
    steps = "armpy_numba_acc.llvm.steps"
    (file,) = files_behind([steps], (steps,)).values()
    assert file in files_behind([keys._GENERATOR], keys._SOURCES).values()


def test_shared_parts_are_known_by_the_modules_in_their_names() -> None:
    module = "armpy_numba_acc.kernels.pooling_u8"
    name = f"armpy_numba_acc.tiles.windows.loop.windows with {module}._prepare_small for LLVM 20.1"
    assert [*modules_in(name)] == ["armpy_numba_acc.tiles.windows.loop", module]
    assert keys.code_digest(name) == keys.code_digest("pooling_u8") != ""


def test_modules_are_found_as_python_finds_them() -> None:
    parsed: dict[str, set[str]] = {}
    for name in kernel_names():
        files = files_behind([f"armpy_numba_acc.kernels.{name}"], keys._SOURCES)
        for file in files.values():
            parsed[file] = parsed[file] if file in parsed else _statements(file)
            assert parsed[file] <= {*files}


def _statements(file: str) -> set[str]:
    """Modules that a file imports, as Python's parser says."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(Path(file).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            own = {part for part in parts if _is_module(part)}
            modules |= own | ({str(node.module)} if own != parts else set())
    return {
        name for name in modules if f"{name}.".startswith(tuple(f"{p}." for p in keys._SOURCES))
    }


def _is_module(name: str) -> bool:
    """Whether there is a module or a package of a name."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_the_sources_are_the_packages_that_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {Path(path).as_posix() for path in keys._source_files()}
    for part in (
        "armpy_numba_acc/kernels/executor.py",
        "armpy/core/numerics/integer_functions.py",
        "armpy/ops/convolution.py",
        "armpy/types.py",
    ):
        assert any(file.endswith(part) for file in files)


def test_programs_whose_bytes_do_not_identify_them_are_not_kept() -> None:
    assert keys._digest((object(),), "origin") == ""
    assert keys._digest((np.array([None]),), "origin") == ""


LOOKUP = "armpy_numba_acc.kernels.lookup"


def test_kernels_whose_sources_are_exchanged_under_a_process_have_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_sources()
    assert keys.code_digest("copy")
    keys._file_digest.cache_clear()  # as where the digest of all sources was remembered
    inode = os.stat(files_behind([LOOKUP], keys._SOURCES)[LOOKUP]).st_ino
    changed_ns = keys._changed_ns

    def changed(info: os.stat_result) -> int:
        return keys._IMPORTED_NS + 1 if info.st_ino == inode else changed_ns(info)

    monkeypatch.setattr(keys, "_changed_ns", changed)
    assert keys.code_digest("lookup") == ""
    assert keys.code_digest("fill") != ""


def test_kernels_whose_sources_vanish_under_a_process_have_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_sources()
    assert keys.code_digest("copy")

    @cache
    def vanished(path: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(keys, "_file_digest", vanished)
    assert keys.code_digest("lookup") == ""


def test_what_is_left_of_a_package_does_not_hide_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "armpy_with_remains"
    (package / "loop" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "loop.py").write_text("import armpy_with_remains.inner\n")
    (package / "inner.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    files = files_behind([f"{package.name}.loop"], (package.name,))
    assert files[f"{package.name}.loop"] == str(package / "loop.py")
    assert f"{package.name}.inner" in files
