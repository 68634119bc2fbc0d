"""Constants are written once: they are read where a backend says that its parts hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, TensorInfo
from armpy.backend import SavedProgram, packed_view
from armpy.errors import BackendError
from armpy.ops import FullyConnected
from armpy.ops.operation import Array
from armpy_testing.models.networks import ADD

files = pytest.importorskip("armpy_numba_acc.files", reason="Numba is not installed")
pytest.importorskip("numba", reason="Numba is not installed")

WEIGHTS = np.random.default_rng(3).normal(size=(60, 70)).astype(np.float32)
DATA = np.random.default_rng(4).normal(size=(5, 70)).astype(np.float32)


def model() -> Model:
    net = Network("shared")
    x = net.input("x", TensorInfo(DATA.shape, DataType.FLOAT32))
    net.output("y", net.add(FullyConnected(), x, net.constant(WEIGHTS)))
    return Model(net)


def results(path: Path) -> Array:
    """Those of the graph in a file, whose constants are read for that."""
    return np.asarray(armpy.load(path, code="never", backends=["CpuRef"])(DATA))


def changed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[SavedProgram], SavedProgram]
) -> None:
    """Change what the backend writes down."""
    save = files.NumbaPrograms.save

    def changed_save(self: Any, program: object, options: Any) -> SavedProgram:
        return change(save(self, program, options))

    monkeypatch.setattr(files.NumbaPrograms, "save", changed_save)


def test_constants_are_read_where_the_backend_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, twice = tmp_path / "once.armpy", tmp_path / "twice.armpy"
    model().save(once)
    changed(monkeypatch, lambda saved: saved._replace(views={}))
    model().save(twice)
    assert twice.stat().st_size - once.stat().st_size >= WEIGHTS.nbytes - 1000
    np.testing.assert_array_equal(results(once), results(twice))
    np.testing.assert_allclose(results(once), DATA @ WEIGHTS.T, rtol=1e-4, atol=1e-4)


def test_a_view_that_gives_other_elements_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, lying = tmp_path / "true.armpy", tmp_path / "lying.armpy"
    model().save(true)

    def lie(saved: SavedProgram) -> SavedProgram:
        places = 4 * np.arange(WEIGHTS.size).reshape(WEIGHTS.shape)
        view = packed_view(places, np.float32)
        assert view is not None
        return saved._replace(views={"constants": [view]})

    changed(monkeypatch, lie)
    model().save(lying)
    assert lying.stat().st_size > true.stat().st_size
    np.testing.assert_array_equal(results(true), results(lying))


@pytest.mark.parametrize(
    ("views", "match"),
    [
        (None, "no mapping"),
        ({"weights": []}, "'weights', which is not a part"),
        ({"code": []}, "'code', which is not a part with data"),
        ({"constants": [{}]}, "a view of a part is wrong"),
        ({"constants": 3}, "a view of a part is wrong"),
        (
            {"constants": [packed_view(np.arange(9) * 10**6, np.uint8)]},
            r"a view of a part is wrong: .*places among",
        ),
    ],
)
def test_a_view_that_reads_elsewhere_is_an_error_of_its_backend(
    views: Any, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(monkeypatch, lambda saved: saved._replace(views=views))
    with pytest.raises(BackendError, match=f"^NumbaAcc / IPrograms.save: .*{match}"):
        model().save(tmp_path / "wrong.armpy")


def test_a_part_of_which_nothing_is_said_is_compared_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, twice = tmp_path / "once.armpy", tmp_path / "twice.armpy"
    changed(monkeypatch, lambda saved: saved._replace(views={}))
    model().save(twice)
    plain = WEIGHTS.reshape(-1).view(np.uint8)
    changed(monkeypatch, lambda saved: saved._replace(parts={**saved.parts, "plain": plain}))
    model().save(once)
    assert once.stat().st_size - twice.stat().st_size < 5000  # a section's border, not the elements
    np.testing.assert_array_equal(results(once), results(twice))


def test_a_file_that_is_saved_again_holds_them_once_as_well(tmp_path: Path) -> None:
    first, second = tmp_path / "first.armpy", tmp_path / "second.armpy"
    model().save(first)
    armpy.load(first).save(second)
    assert second.stat().st_size == first.stat().st_size
    np.testing.assert_array_equal(results(first), results(second))


def test_constants_of_the_same_elements_may_have_other_shapes(tmp_path: Path) -> None:
    net = Network("shapes")
    x = net.input("x", TensorInfo((5, 70), DataType.FLOAT32))
    flat = net.input("flat", TensorInfo((4200,), DataType.FLOAT32))
    net.output("y", net.add(FullyConnected(), x, net.constant(WEIGHTS)))
    net.output("z", net.add(ADD, flat, net.constant(WEIGHTS.reshape(-1))))
    path = tmp_path / "shapes.armpy"
    Model(net).save(path)
    loaded = armpy.load(path, code="never", backends=["CpuRef"])
    outputs = loaded.run({"x": DATA, "flat": np.zeros(4200, np.float32)})
    np.testing.assert_array_equal(outputs["z"], WEIGHTS.reshape(-1))
