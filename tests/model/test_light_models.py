"""A model from a compiled model is as any other in all that can be seen of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy_testing.backends.fake_distributions import fake_site
from tests.support.prepared_models import (
    BATCH,
    inputs_of,
    prepared_model,
    save_two_inputs,
    two_inputs,
)

pytest.importorskip("numba", reason="Numba is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_two_inputs(tmp_path_factory.mktemp("light") / "two.armpy")


@pytest.fixture
def light(path: Path) -> Model:
    model = armpy.load(path)
    assert model.is_light
    return model


@pytest.fixture
def ordinary() -> Model:
    return prepared_model(two_inputs())


def plain(value: object) -> object:
    """What can be compared with ``==``: arrays as their type, shape and bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def debugged(model: Model) -> list[str]:
    seen = []
    model.run(inputs_of(), debug=lambda value: seen.append(value.tensor))
    return sorted(seen)


def imported_input(model: Model) -> object:
    inputs = inputs_of()
    with model.import_inputs({"x": inputs["x"]})["x"] as x:
        return model.run({"x": x, "more": inputs["more"]})


def imported_output(model: Model) -> object:
    y = np.empty((BATCH, 3), np.float32)
    with model.import_outputs({"y": y})["y"] as imported:
        model.run(inputs_of(), {"y": imported})
    return y


def bound(model: Model) -> object:
    inputs = inputs_of()
    execution = model.bind(inputs)
    first = plain(execution())
    inputs["x"] *= -1
    return first, execution()


def in_memory(model: Model) -> object:
    with model.create_working_memory() as memory:
        return model.run(inputs_of(), memory=memory)


def with_other_shapes(model: Model) -> object:
    model.prepare({"x": (5, 4), "more": (5, 3)})
    return model.run(inputs_of(5)), model.run(inputs_of())


def closed(model: Model) -> object:
    model.close()
    model.close()
    return model.is_closed, error_of(lambda: model.run(inputs_of()))


def placed(model: Model) -> object:
    placement = model.placement
    assert placement is not None
    return [(layer.layer, layer.backend) for layer in placement.layers], placement.peak_bytes


def graph_of(model: Model) -> object:
    graph = model.graph
    names = [(layer.name, layer.operation.name) for layer in graph.layers]
    return names, [(value.name, value.info) for value in graph.values()]


def with_freed_memory(model: Model) -> object:
    model.free_working_memory()
    return model.run(inputs_of())


def warmed_up(model: Model) -> object:
    model.warm_up({"x": (5, 4), "more": (5, 3)})
    return model.run(inputs_of(5))


def reshaped(model: Model) -> object:
    with model.reshape({"x": (1, 4), "more": (1, 3)}) as other:
        return other.run(inputs_of(1)), model.run(inputs_of())


def with_one_output(model: Model) -> object:
    with model.with_outputs(["y"]) as other:
        return other.run(inputs_of()), model.run(inputs_of())


def with_reset_state(model: Model) -> object:
    model.reset_state()
    return model.run(inputs_of())


def saved_again(model: Model) -> object:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "again.armpy"
        assert model.save(path) == path.stat().st_size
        again = armpy.load(path)
        return again.is_light, again.run(inputs_of())


def error_of(call: Callable[[], object]) -> tuple[str, str]:
    """Type and text of the error of a call."""
    with pytest.raises(ArmpyError) as caught:
        call()
    return type(caught.value).__name__, str(caught.value)


MEMBERS: dict[str, Callable[[Model], object]] = {
    "inputs": lambda model: model.inputs,
    "outputs": lambda model: model.outputs,
    "placement": placed,
    "profiler": lambda model: model.profiler,
    "memory_limit_bytes": lambda model: model.memory_limit_bytes,
    "graph": graph_of,
    "run": lambda model: model.run(inputs_of()),
    "start": lambda model: model.start(inputs_of()).result(),
    "run_async": lambda model: asyncio.run(model.run_async(inputs_of())),
    "bind": bound,
    "import_inputs": imported_input,
    "import_outputs": imported_output,
    "prepare": with_other_shapes,
    "state": lambda model: error_of(model.state),
    "warm_up": warmed_up,
    "reshape": reshaped,
    "with_outputs": with_one_output,
    "create_working_memory": in_memory,
    "free_working_memory": with_freed_memory,
    "signatures": lambda model: model.signatures,
    "signature": lambda model: error_of(lambda: model.signature("none")),
    "metadata": lambda model: model.metadata,
    "save": saved_again,
    "reset_state": with_reset_state,
    "is_closed": lambda model: model.is_closed,
    "close": closed,
    "quantize_inputs": lambda model: model.quantize_inputs,
    "network_id": lambda model: model.network_id,
    "runtime": lambda model: model.runtime.options,
}
OTHERS = {"is_light", "default_shapes", "title"}
CALLS: dict[str, Callable[[Model], object]] = {
    "in order": lambda model: model(*inputs_of().values()),
    "lists": lambda model: model.run({n: a.tolist() for n, a in inputs_of().items()}),
    "not contiguous": lambda model: model.run({n: a[::-1] for n, a in inputs_of().items()}),
    "other shapes": lambda model: model.run(inputs_of(7)),
    "no rows": lambda model: model.run(inputs_of(0)),
    "outputs given": lambda model: model.run(inputs_of(), {"y": np.empty((2, 3), np.float32)}),
    "a deadline": lambda model: model.run(inputs_of(), deadline_s=60),
    "debugging": debugged,
    "with": lambda model: model.__enter__().run(inputs_of()),
    "all after each other": lambda model: [
        call(model)
        for name, call in MEMBERS.items()
        if name not in ("close", "network_id", "create_working_memory")
    ],
}
X = inputs_of()["x"]
WRONG: dict[str, Callable[[Model], object]] = {
    "a name": lambda model: model.run({"x": X, "mroe": X}),
    "a number of arrays": lambda model: model(X),
    "a shape": lambda model: model.run({"x": X[:, :3], "more": X[:, :3]}),
    "rows that differ": lambda model: model.run({"x": X, "more": X[[0, 1, 0], :3]}),
    "a type": lambda model: model.run({"x": X.astype(np.int64), "more": X[:, :3]}),
    "an output's shape": lambda model: model.run(inputs_of(), {"y": X}),
    "a shape to prepare": lambda model: model.prepare({"x": (1, 5)}),
    "memory to import": lambda model: model.import_inputs({"x": X[:1]}),
    "a signature": lambda model: model.signature("none"),
}


def test_every_public_member_is_compared() -> None:
    assert {name for name in dir(Model) if name[0] != "_"} | {"quantize_inputs"} == (
        MEMBERS.keys() | OTHERS
    )


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", [*MEMBERS, *CALLS])
def test_a_light_model_is_as_an_ordinary_one(name: str, light: Model, ordinary: Model) -> None:
    call = (MEMBERS | CALLS)[name]
    expected = plain(call(ordinary))
    assert plain(call(light)) == expected
    if not light.is_closed:  # the same thing once more, on whatever it has become
        assert plain(call(light)) == plain(call(ordinary))


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("is_loaded", [False, True], ids=["light", "become ordinary"])
def test_errors_are_the_same_to_the_letter(
    name: str, is_loaded: bool, light: Model, ordinary: Model
) -> None:
    if is_loaded:
        assert graph_of(light)
        assert not light.is_light
    assert error_of(lambda: WRONG[name](light)) == error_of(lambda: WRONG[name](ordinary))


@pytest.mark.parametrize(
    ("group", "is_light"),
    [
        ("armpy.backends", True),  # the file says where layers run
        ("armpy.commands", True),
        ("armpy.custom_operators", True),
        ("armpy.front_ends", True),
        ("armpy.placement", True),
        ("armpy.plugins", False),  # it may set options of runtimes
    ],
)
def test_only_a_plugin_that_may_have_any_hook_prevents_a_light_start(
    group: str, is_light: bool, path: Path, tmp_path: Path
) -> None:
    with fake_site(tmp_path) as site:
        site.install("other", {"other": "other"}, group=group)
        with armpy.load(path) as model:
            assert model.is_light == is_light


def test_what_was_asked_for_other_shapes_is_ordinary_and_stays_so(light: Model) -> None:
    light.run(inputs_of(3))
    assert not light.is_light
    network = light.handle.loaded
    light.run(inputs_of())
    assert light.handle.loaded is network


def test_many_threads_that_need_the_whole_network_load_it_once(path: Path) -> None:
    import armpy.model.archive.reload as loading

    models: list[Model] = []
    load_ordinary = loading.load_ordinary

    def counted(file: Any) -> Model:
        models.append(load_ordinary(file))
        return models[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load_ordinary", counted)
        model = armpy.load(path)
        expected = plain(prepared_model(two_inputs()).run(inputs_of(3)))
        results: list[object] = []
        start = threading.Barrier(8)

        def work() -> None:
            start.wait()
            results.append(plain(model.run(inputs_of(3))))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [expected] * 8
    assert len(models) == 1


def test_closing_while_the_whole_network_is_loaded_closes_it(path: Path) -> None:
    import armpy.model.archive.reload as loading

    load_ordinary = loading.load_ordinary
    is_loading, may_go_on = threading.Event(), threading.Event()
    models: list[Model] = []

    def slow(file: Any) -> Model:
        is_loading.set()
        may_go_on.wait(60)
        models.append(load_ordinary(file))
        return models[-1]

    def prepare() -> None:
        with suppress(InvalidArgumentError):  # it may be closed before it begins with that
            model.prepare({"x": (5, 4), "more": (5, 3)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load_ordinary", slow)
        model = armpy.load(path)
        loader = threading.Thread(target=prepare)
        loader.start()
        assert is_loading.wait(60)
        closer = threading.Thread(target=model.close)
        closer.start()
        may_go_on.set()
        loader.join()
        closer.join()
    assert model.is_closed
    assert models[0].runtime.is_closed


def test_a_whole_network_that_cannot_be_loaded_leaves_the_light_one(path: Path) -> None:
    import armpy.model.archive.reload as loading

    model = armpy.load(path)
    expected = plain(model.run(inputs_of()))
    with pytest.MonkeyPatch.context() as patch:

        def fail(file: Any) -> Model:
            raise armpy.BackendUnavailableError("there is none today")

        patch.setattr(loading, "load_ordinary", fail)
        with pytest.raises(armpy.BackendUnavailableError, match="none today"):
            model.run(inputs_of(3))
        assert plain(model.run(inputs_of())) == expected
    assert len(model.run(inputs_of(3))["y"]) == 3
