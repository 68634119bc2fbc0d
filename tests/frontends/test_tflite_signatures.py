"""The signatures of one model: how the others are opened, and the variables that they share."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy
from armpy import Model, Runtime
from armpy.errors import InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration
from armpy_testing.models.networks import floats
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel


def read(graph: Subgraph, name: str) -> Tensor:
    """What a variable holds at this point."""
    handle = graph.tensor(f"{name}_handle", (), "RESOURCE")
    value = graph.tensor(f"{name}_value", (2,))
    graph.operator("VAR_HANDLE", [], [handle], {"shared_name": name})
    graph.operator("READ_VARIABLE", [handle], [value], {})
    return value


def assign(graph: Subgraph, name: str, value: Tensor) -> None:
    """Let a variable hold something else."""
    handle = graph.tensor(f"{name}_target", (), "RESOURCE")
    graph.operator("VAR_HANDLE", [], [handle], {"shared_name": name})
    graph.operator("ASSIGN_VARIABLE", [handle, value], [], {})


def counters(*, calls_once: bool = True, other_shape: bool = False) -> TfliteModel:
    """Signatures that look at two variables, add to the first, and let the second be the first."""
    model = TfliteModel()
    show, add, keep = (model.subgraph(name) for name in ("show", "add", "keep"))
    setup = model.subgraph("setup")
    for name, initial in (("total", (1, 2)), ("kept", (5, 6))):
        assign(setup, name, setup.tensor(f"{name}_initial", (2,), data=floats(*initial)))
    for graph in (show, add, keep) if calls_once else (show,):
        graph.operator("CALL_ONCE", [], [], {"init_subgraph_index": setup.index})
    total, stored = read(show, "total"), read(show, "kept")
    show.outputs(total, stored)
    model.signature("show", {}, {"total": total, "kept": stored})
    x, new = add.tensor("x", (2,)), add.tensor("new", (2,))
    add.operator("ADD", [read(add, "total"), x], [new], {})
    assign(add, "total", new)
    add.inputs(x)
    add.outputs(new)
    model.signature("add", {"x": x}, {"new": new})
    held = read(keep, "total")
    assign(keep, "kept", held)
    keep.outputs(held)
    model.signature("keep", {}, {"held": held})
    return model


def added(model: Model, *numbers: float) -> list[float]:
    """What the first variable holds after an addition."""
    total = model.signature("add").run({"x": floats(*numbers)})["new"]
    return [float(number) for number in total]


def shown(model: Model) -> dict[str, list[float]]:
    """What the variables hold."""
    return {name: array.tolist() for name, array in model.signature("show").run({}).items()}


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_signatures_share_variables(backend: str) -> None:
    with armpy.load(counters().to_bytes(), backends=[backend, "CpuRef"]) as model:
        assert shown(model) == {"total": [1, 2], "kept": [5, 6]}
        for turn in range(1, 6):
            assert added(model, 10, 20) == [1 + 10 * turn, 2 + 20 * turn]
        assert shown(model) == {"total": [51, 102], "kept": [5, 6]}
        model.signature("keep")()
        model.signature("add")(floats(1, 1))
        assert shown(model) == {"total": [52, 103], "kept": [51, 102]}


def test_resetting_the_state_of_one_resets_that_of_all() -> None:
    with armpy.load(counters().to_bytes(), backends=["CpuRef"], signature="add") as model:
        model(floats(1, 1))
        model.signature("keep")()
        model.signature("show").reset_state()
        assert shown(model) == {"total": [1, 2], "kept": [5, 6]}
        assert added(model, 1, 1) == [2, 3]


def test_closing_a_model_closes_those_of_its_other_signatures() -> None:
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    model = armpy.load(counters().to_bytes(), runtime=runtime)
    show = model.signature("show")
    show.close()
    assert model.signature("show") is not show  # opened again, with the variables as they are
    again, ids = model.signature("show"), [model.network_id, model.signature("show").network_id]
    model.close()
    for network_id in ids:
        with pytest.raises(
            InvalidArgumentError, match=f"no network is loaded under .* {network_id}"
        ):
            runtime.get_network(network_id)
    with pytest.raises(InvalidArgumentError, match="the model is closed"):
        again()
    with pytest.raises(InvalidArgumentError, match="the model is closed"):
        model.signature("show")


def test_a_variable_that_another_signature_initialises_can_be_used() -> None:
    with armpy.load(counters(calls_once=False).to_bytes(), backends=["CpuRef"]) as model:
        assert added(model, 1, 1) == [2, 3]
        model.signature("keep")()
        assert shown(model) == {"total": [2, 3], "kept": [2, 3]}


def doubled(*, reversed_edges: bool = False) -> bytes:
    """A model whose one signature calls the main subgraph with all of its inputs and outputs."""
    model = TfliteModel()
    graph = model.subgraph()
    a, b = graph.tensor("main_a:0", (2,)), graph.tensor("main_b:0", (2,))
    total, product = graph.tensor("total:0", (2,)), graph.tensor("product:0", (2,))
    graph.operator("ADD", [a, b], [total], {})
    graph.operator("MUL", [a, total], [product], {})
    graph.inputs(a, b)
    graph.outputs(total, product)
    inputs = {"a": a, "b": b}
    if reversed_edges:
        inputs = dict(reversed(inputs.items()))
    model.signature("serve", inputs, {"total": total, "product": product})
    return model.to_bytes()


def one_backend() -> tuple[ScriptedBackend, Runtime]:
    """A backend that compiles all layers and writes down what it is asked, alone on a runtime."""
    backend = ScriptedBackend("Npu", declared=declaration(keeps_programs=True))
    return backend, runtime_of(backend)


@pytest.mark.parametrize("first", [None, "serve"])
def test_the_main_subgraph_and_an_equal_signature_are_prepared_once(
    first: str | None, tmp_path: Path
) -> None:
    npu, runtime = one_backend()
    with armpy.load(doubled(), signature=first, runtime=runtime) as model:
        served = model.signature("serve")
        model.save(tmp_path / "model.armpy")
        assert npu.methods.count("optimize") == 1
        assert npu.methods.count("create_workload") == 1
        results = served.run({"a": floats(1, 2), "b": floats(3, 4)})
        assert {name: array.tolist() for name, array in results.items()} == {
            "total": [4, 6],
            "product": [4, 12],
        }
        assert served.title == model.title
        assert [spec.name for spec in served.inputs] == ["a", "b"]
        names = ["a", "b"] if first else ["main_a:0", "main_b:0"]
        assert [spec.name for spec in model.inputs] == names
        with pytest.raises(InvalidArgumentError, match="main_c"):
            served.run({"main_c": floats(1, 2), "b": floats(3, 4)})
