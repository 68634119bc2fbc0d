"""Models with open dimensions start from the model cache, which keeps programs by shapes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import InvalidArgumentError, LayerValidationError, ParserError
from armpy.model import model_files
from armpy.model.archive import kept_models
from armpy.model.archive.model_cache import shapes_path
from armpy.model.light_network import MOST_SHAPES
from armpy.store.archive.container import open_container, write_container
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES
from tests.support.prepared_models import use_own_model_cache

pytest.importorskip("numba", reason="Numba is not installed")
pytest.importorskip("armpy_onnx")
onnx = pytest.importorskip("onnx")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, switched on."""
    return use_own_model_cache(monkeypatch, tmp_path / "cache")


def save_dense(path: Path, seed: int = 0) -> Path:
    """An ONNX model: ``y = softmax(relu(x W))`` for any number of rows."""
    value = onnx.helper.make_tensor_value_info
    weights = np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["dense"]),
        onnx.helper.make_node("Relu", ["dense"], ["hidden"]),
        onnx.helper.make_node("Softmax", ["hidden"], ["y"], axis=-1),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "dense",
        [value("x", 1, ["rows", 4])],
        [value("y", 1, ["rows", 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model_proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(model_proto, path)
    return path


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return save_dense(tmp_path / "dense.onnx")


def rows(count: int) -> np.ndarray:
    """An input of `save_dense`."""
    return np.random.default_rng(count).normal(size=(count, 4)).astype(np.float32)


def bits(model: armpy.Model, count: int) -> bytes:
    """What a model gives for a number of rows."""
    return np.asarray(model(rows(count))).tobytes()


def answers(path: Path, counts: tuple[int, ...]) -> dict[int, bytes]:
    """What a model that is loaded for that gives for some numbers of rows, bit by bit."""
    with armpy.load(path) as model:
        return {count: bits(model, count) for count in counts}


def files(cache: Path) -> list[Path]:
    """What is kept."""
    return sorted(cache.glob("*.armpy"))


def shapes_file(cache: Path, count: int) -> Path:
    """The file with the programs for a number of rows."""
    (path,) = [file for file in files(cache) if "-" not in file.name]
    return Path(shapes_path(os.fspath(path), ((count, 4),)))


def read_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model file be read from now on."""

    def refuse(*_: object) -> object:
        raise AssertionError("the file is read")

    monkeypatch.setattr(model_files, "load_file", refuse)


def test_shapes_that_were_used_before_start_from_what_was_kept(
    dense: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(dense, (2, 5))
    assert len(files(cache)) == 3
    read_no_more(monkeypatch)
    with armpy.load(dense) as model:
        assert model.is_light
        for count in (5, 2, 5):
            assert bits(model, count) == expected[count]
            (named,) = model.run({"x": rows(count)}).values()
            assert named.tobytes() == expected[count]
        assert model.is_light


def test_a_kept_model_is_prepared_for_what_is_kept(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(dense, (2, 5))
    with armpy.load(dense) as model:
        with pytest.raises(InvalidArgumentError, match="an input has no shape yet"):
            model.prepare()
        with pytest.raises(InvalidArgumentError, match="no such input"):
            model.prepare({"x": (2, 4), "z": (1,)})
    read_no_more(monkeypatch)
    with armpy.load(dense) as model:
        model.prepare({"x": (5, np.int64(4))})  # type: ignore[dict-item]  # an integer all the same
        assert bits(model, 5) == expected[5]
        assert model.is_light
        with pytest.raises(AssertionError, match="the file is read"):
            model.prepare({"x": (3, 4)})


def test_a_kept_model_warms_up_for_what_is_kept(
    dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(dense, (2, 5))
    with armpy.load(dense) as model:
        model.warm_up([{"x": (2, 4)}, {"x": (5, 4)}])
        assert model.is_light
        assert bits(model, 2) == expected[2]
        with pytest.raises(InvalidArgumentError, match="so many shapes"):
            model.warm_up([{"x": (2, 4)}] * (MOST_SHAPES + 1))
    read_no_more(monkeypatch)
    with armpy.load(dense) as model, pytest.raises(AssertionError, match="the file is read"):
        model.warm_up([{"x": (2, 4)}, {"x": (3, 4)}])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", ["shorter", "empty", "another byte", "another shape's"])
def test_damaged_programs_cost_time_alone(dense: Path, cache: Path, damage: str) -> None:
    expected = answers(dense, (2, 3))
    entry = shapes_file(cache, 2)
    contents = bytearray(entry.read_bytes())
    if damage == "shorter":
        entry.write_bytes(contents[:-100])
    elif damage == "empty":
        entry.write_bytes(b"")
    elif damage == "another byte":
        contents[len(contents) // 2] ^= 255
        entry.write_bytes(contents)
    else:
        entry.write_bytes(shapes_file(cache, 3).read_bytes())
    with armpy.load(dense) as model:
        assert bits(model, 2) == expected[2]
        assert not model.is_light
    with armpy.load(dense) as model:
        assert bits(model, 2) == expected[2]
        assert model.is_light  # they were replaced


def test_programs_of_another_model_are_not_used(tmp_path: Path, cache: Path) -> None:
    first, second = (save_dense(tmp_path / f"{seed}.onnx", seed) for seed in (1, 2))
    answers(first, (2,))
    (of_first,) = [path for path in files(cache) if "-" in path.name]
    expected = answers(second, (2,))
    (of_second,) = [path for path in files(cache) if "-" in path.name and path != of_first]
    of_first.replace(of_second)
    with armpy.load(second) as model:
        assert bits(model, 2) == expected[2]
        assert not model.is_light


def test_a_model_whose_file_is_replaced_runs_what_is_kept_of_it(dense: Path) -> None:
    expected = answers(dense, (2, 6))
    with armpy.load(dense) as model:
        save_dense(dense, seed=9)
        assert bits(model, 2) == expected[2]
        with pytest.raises(ParserError, match="the model file has changed since"):
            model(rows(3))
        assert bits(model, 6) == expected[6]
    assert answers(dense, (2,)) != {2: expected[2]}


def test_nothing_is_kept_for_a_file_that_has_changed_meanwhile(dense: Path, cache: Path) -> None:
    with armpy.load(dense) as model:
        save_dense(dense, seed=9)
        model(rows(2))
    assert not files(cache)


def test_of_many_shapes_the_latest_stay(
    dense: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_models, "MOST_SHAPES", 2)
    for count in (1, 2, 3):
        answers(dense, (count,))
        os.utime(shapes_file(cache, count), (count, count))
    assert not shapes_file(cache, 1).exists()
    assert shapes_file(cache, 2).exists()
    assert shapes_file(cache, 3).exists()


def test_programs_take_no_more_than_one_model_may(
    dense: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(dense, (1,))
    size = shapes_file(cache, 1).stat().st_size
    os.utime(shapes_file(cache, 1), (1, 1))
    monkeypatch.setattr(kept_models, "LIMIT_BYTES", 6 * size)
    answers(dense, (2,))
    assert not shapes_file(cache, 1).exists()
    assert shapes_file(cache, 2).exists()


def test_programs_that_are_too_large_are_not_even_written(
    dense: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def note(path: object, manifest: dict[str, object], *others: object) -> int:
        written.append(manifest["kind"])
        return write_container(path, manifest, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("armpy.model.save.write_container", note)
    answers(dense, (1,))
    assert written == ["model", "shapes"]
    size = shapes_file(cache, 1).stat().st_size
    monkeypatch.setattr(kept_models, "LIMIT_BYTES", size)  # of all models: this one has a quarter
    answers(dense, (2,))
    assert written == ["model", "shapes"]


@pytest.mark.slow
def test_more_shapes_than_stay_prepared_all_answer(dense: Path) -> None:
    counts = tuple(range(1, MOST_SHAPES + 3))
    with armpy.load(dense.read_bytes(), memory_limit_bytes=1 << 31) as model:
        expected = {count: bits(model, count) for count in counts}
    for count in counts:  # each in a load of its own, so that all are kept
        answers(dense, (count,))
    assert answers(dense, counts * 2) == expected


def save_expanded(path: Path) -> Path:
    """An ONNX model whose output has as many rows as its second input says."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Expand", ["x", "shape"], ["y"])],
        "expanded",
        [value("x", 1, ["columns"]), value("shape", 7, [2])],
        [value("y", 1, ["rows", "columns"])],
    )
    model_proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(model_proto, path)
    return path


def test_nothing_is_kept_where_shapes_follow_from_values(tmp_path: Path, cache: Path) -> None:
    path = save_expanded(tmp_path / "expanded.onnx")
    elements = np.arange(3, dtype=np.float32)
    for _ in range(2):
        with armpy.load(path) as model:
            assert not model.is_light
            for count in (2, 4):
                output = model(elements, np.array([count, 3]))
                np.testing.assert_array_equal(output, np.tile(elements, (count, 1)))
    assert not files(cache)


@NEEDS_REPLACEABLE_FILES
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "record",
    [
        5,
        [],
        {},
        {"inputs": [["x", [[None, 4], "FLOAT32"]]], "outputs": [], "default_shapes": []},
        {"inputs": [["x", [[None, 4], "NO_TYPE"]]], "outputs": [], "default_shapes": [None]},
        {"inputs": [[7, [[None, 4], "FLOAT32"]]], "outputs": [], "default_shapes": [None]},
    ],
    ids=repr,
)
def test_a_model_that_says_of_itself_what_cannot_be_costs_time_alone(
    dense: Path, cache: Path, record: object
) -> None:
    expected = answers(dense, (2,))
    (entry,) = set(files(cache)) - {shapes_file(cache, 2)}
    rewrite(entry, interface=record)
    with armpy.load(dense) as model:
        assert bits(model, 2) == expected[2]
        assert not model.is_light


@NEEDS_REPLACEABLE_FILES
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change",
    [
        {"shapes": [[3, 4]]},
        {"shapes": [[2]]},
        {"results": []},
        {"steps": [{}]},
        {"needed_bytes": 1 << 60},
        {"arena_bytes": -1},
    ],
    ids=repr,
)
def test_programs_that_say_of_themselves_what_cannot_be_cost_time_alone(
    dense: Path, cache: Path, change: dict[str, object]
) -> None:
    expected = answers(dense, (2,))
    path = shapes_file(cache, 2)
    quick = open_container(path).manifest["quick"]
    rewrite(path, quick={**quick, **change})
    with armpy.load(dense) as model:
        assert bits(model, 2) == expected[2]
        assert not model.is_light


def rewrite(path: Path, **changes: object) -> None:
    """Write a file again with another manifest; its checksums are right."""
    container = open_container(path)
    manifest = {name: value for name, value in container.manifest.items() if name != "sections"}
    sections = {name: container.section(name).tobytes() for name in container.sections}
    write_container(path, {**manifest, **changes}, sections)


def save_choice(path: Path) -> Path:
    """An ONNX model: x plus four numbers if a flag is set, else plus three."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node

    def branch(size: int) -> object:
        ones = onnx.numpy_helper.from_array(np.ones(size, np.float32), "ones")
        add = node("Add", ["x", "ones"], ["sum"])
        return onnx.helper.make_graph([add], "branch", [], [value("sum", 1, None)], [ones])

    choice = node("If", ["flag"], ["y"], then_branch=branch(4), else_branch=branch(3))
    inputs = [value("flag", 9, []), value("x", 1, ["rows", "columns"])]
    graph = onnx.helper.make_graph([choice], "choice", inputs, [value("y", 1, None)])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset), path)
    return path


def test_a_model_with_a_branch_for_other_shapes_starts_from_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, wide, narrow = save_choice(tmp_path / "choice.onnx"), rows(2), rows(2)[:, :3]
    with armpy.load(path) as model:
        for flag, x in ((True, wide), (False, narrow)):
            np.testing.assert_array_equal(model(np.array(flag), x), x + 1)
    read_no_more(monkeypatch)
    with armpy.load(path) as model:
        for flag, x in ((True, wide), (False, narrow)):
            np.testing.assert_array_equal(model(np.array(flag), x), x + 1)
            with pytest.raises(LayerValidationError, match=r"cannot run.*do not broadcast"):
                model(np.array(not flag), x)
        assert model.is_light
