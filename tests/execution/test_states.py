"""States: past inputs that are filled from present outputs, step after step."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Model, Network, ops
from armpy.execution import Runtime, RuntimeOptions
from armpy.ops.operation import Array
from armpy_testing.models.networks import ADD, f32

PAIRS = {"past": "present"}


def model_of(net: Network) -> Model:
    return Model(net, Runtime(RuntimeOptions(["CpuRef"])), closes_runtime=True)


def growing() -> Model:
    """The rows of all steps, joined, and their sum."""
    net = Network()
    rows, past = net.input("rows", f32(1, None, 3)), net.input("past", f32(1, None, 3))
    present = net.add(ops.Concat(1), past, rows)
    net.output("present", present)
    net.output("total", net.add(ops.Reduce(ops.ReduceOperation.SUM, (1,)), present))
    return model_of(net)


def counting() -> Model:
    """A sum of fixed shape that is its own past."""
    net = Network()
    x, past = net.input("x", f32(1, 2)), net.input("sum", f32(1, 2))
    total = net.add(ADD, x, past)
    net.output("sum", total)
    net.output("twice", net.add(ADD, total, total))
    return model_of(net)


def rows(count: int, value: float = 1.0) -> Array:
    return np.full((1, count, 3), value, np.float32)


def test_steps_equal_calls_that_are_given_the_past() -> None:
    model = growing()
    state, past = model.state(PAIRS), rows(0)
    for step, count in enumerate([3, 1, 1, 2, 40, 1]):
        new = rows(count, step)
        expected = model.run({"rows": new, "past": past})
        outputs = state.run({"rows": new})
        assert outputs.keys() == {"total"}
        np.testing.assert_array_equal(outputs["total"], expected["total"])
        past = expected["present"]
        assert state.length == past.shape[1]


def test_the_limit_holds_before_anything_is_computed() -> None:
    state = growing().state(PAIRS, limit=4)
    state(rows(3))
    with pytest.raises(armpy.InvalidArgumentError, match=r"at most 4 \(limit\).*of 3, and 2 more"):
        state(rows(2))
    np.testing.assert_array_equal(state(rows(1)), [[4, 4, 4]])


def test_a_failed_step_changes_nothing() -> None:
    state = growing().state(PAIRS)
    state(rows(2))
    for wrong in (np.ones((1, 1, 4), np.float32), np.ones((1, 1, 3), np.int64), "text"):
        with pytest.raises(armpy.InvalidArgumentError, match="rows"):
            state(wrong)
    with pytest.raises(armpy.InvalidArgumentError, match="unknown 'row'"):
        state.run({"row": rows(1)})
    # A past that lies about its length replaces the state's own for a step that fails.
    with pytest.raises(armpy.InvalidArgumentError, match="past"):
        state.run({"rows": rows(1), "past": np.ones((1, 5), np.float32)})
    assert state.length == 2
    np.testing.assert_array_equal(state(rows(1)), [[3, 3, 3]])


def test_forks_go_on_by_themselves() -> None:
    state = growing().state(PAIRS)
    for _ in range(3):
        state(rows(1))
    fork = state.fork()
    for step in range(1, 5):
        np.testing.assert_array_equal(state(rows(1)), [[3 + step] * 3])
        np.testing.assert_array_equal(fork(rows(1, 2)), [[3 + 2 * step] * 3])


@pytest.mark.parametrize("size", [-1, 0, 5, 2**31, 2**62, 2**70, "1"])
def test_a_file_that_lies_about_its_sizes_is_refused(size: object, tmp_path: Path) -> None:
    state, path = growing().state(PAIRS), tmp_path / "talk.state"
    state(rows(2))
    state.save(path)
    contents = path.read_bytes()
    text = repr(size).replace("'", '"').encode()
    for damaged in (contents.replace(b"[1, 2, 3]", b"[1, %b, 3]" % text), contents[:-1], b"", b"1"):
        path.write_bytes(damaged)
        with pytest.raises(armpy.ParserError, match="state cannot be read"):
            state.load(path)
    np.testing.assert_array_equal(state(rows(1)), [[3, 3, 3]])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"{", b"[" * 100_000),
        (b'"length": 2', b'"length": 11'),
        (b'[["past", [1, 2, 3]]]', b'[["past", [1, 2, 3]], ["past", [1, 0, 3]]]'),
    ],
    ids=["nested", "length", "twice"],
)
def test_a_damaged_header_is_refused(before: bytes, after: bytes, tmp_path: Path) -> None:
    state, path = growing().state(PAIRS, limit=10), tmp_path / "talk.state"
    state(rows(2))
    state.save(os.fsencode(path))
    assert before in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(before, after, 1))
    with pytest.raises(armpy.ParserError, match="state cannot be read"):
        state.load(path)
    np.testing.assert_array_equal(state(rows(1)), [[3, 3, 3]])


def test_a_state_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sum.state"
    other = counting().state()
    other(np.ones((1, 2), np.float32))
    other.save(path)
    with pytest.raises(armpy.ParserError, match="'past'"):
        growing().state(PAIRS).load(path)
    with pytest.raises(armpy.ParserError, match="No such file"):
        growing().state(PAIRS).load(tmp_path / "none")


def test_closed_states_and_models_are_refused() -> None:
    model = growing()
    with model.state(PAIRS) as state:
        state(rows(1))
    with pytest.raises(armpy.InvalidArgumentError, match="the state is closed"):
        state(rows(1))
    other = model.state(PAIRS)
    model.close()
    with pytest.raises(armpy.InvalidArgumentError, match="the model is closed"):
        other(rows(1))


def test_a_second_thread_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = growing()
    state = model.state(PAIRS)
    entered, leave = threading.Event(), threading.Event()
    prepared_for = model.handle.loaded.prepared_for

    def slow(*arguments: object) -> object:
        entered.set()
        assert leave.wait(10)
        return prepared_for(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(model.handle.loaded, "prepared_for", slow)
    thread = threading.Thread(target=state, args=(rows(1),))
    thread.start()
    assert entered.wait(10)
    for use in (lambda: state(rows(1)), state.fork):
        with pytest.raises(armpy.InvalidArgumentError, match="in use already"):
            use()
    leave.set()
    thread.join()
    np.testing.assert_array_equal(state(rows(1)), [[2, 2, 2]])


class FailingArray:
    """An object that is no array after all."""

    def __array__(self, *args: object, **named: object) -> Array:
        raise OSError("the device is gone")


@pytest.mark.parametrize("value", [[[1.0], [1.0, 2.0]], FailingArray(), None, {}])
@pytest.mark.parametrize("earlier_steps", [0, 1])
def test_wrong_arrays_are_refused_alike_in_every_step(value: object, earlier_steps: int) -> None:
    state = growing().state(PAIRS)
    for _ in range(earlier_steps):
        state(rows(1))
    with pytest.raises(armpy.InvalidArgumentError, match="input 'rows'"):
        state.run({"rows": value})
    with pytest.raises(armpy.InvalidArgumentError, match="'nothing'"):
        state.run({"nothing": value})
    state(rows(1))
    assert state.length == earlier_steps + 1


@pytest.mark.parametrize("pairs", [{"past": ["present"]}, {"past": None}, {"past": {}}, 3])
def test_pairs_of_other_things_than_names_are_refused(pairs: object) -> None:
    with pytest.raises(armpy.InvalidArgumentError, match=re.escape(str(pairs))):
        growing().state(pairs)  # type: ignore[arg-type]


def test_a_buffer_needs_a_limit() -> None:
    with pytest.raises(armpy.InvalidArgumentError, match=r"state\.limit"):
        growing().state(PAIRS, share_buffers=True)


@pytest.mark.parametrize(
    "pairs", [None, {}, {"past": "total"}, {"rows": "none"}, {"x": "present"}, "past"]
)
def test_pairs_that_do_not_fit_are_refused_with_those_that_do(pairs: dict[str, str] | None) -> None:
    with pytest.raises(armpy.InvalidArgumentError, match=r"pairs.*'past: present'"):
        growing().state(pairs)
