"""Compiled models that were changed are refused, compiled again, or right; nothing else is mapped.

A failure names the number of the file, which makes it again: ``mutation(seeds, number)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Model, Network
from armpy.errors import ArmpyError, BackendError, ParserError
from armpy.graph import Graph
from armpy.ops import ReverseSequence
from armpy_testing.effort import effort
from armpy_testing.models.control_flow import doubling
from armpy_testing.models.networks import diamond, f32
from tests.support.prepared_fuzz import KINDS, NEVER, mutation
from tests.support.prepared_layouts import read_plainly
from tests.support.prepared_models import SHAPES, quantized, two_inputs

files = pytest.importorskip("armpy_numba_acc.files", reason="Numba is not installed")
pytest.importorskip("numba", reason="Numba is not installed")

COUNT = effort(300)
LIMIT_BYTES = 1 << 24


def reversed_rows() -> Graph:
    """A layer that NumbaAcc leaves to CpuRef."""
    net = Network()
    lengths = net.constant(np.array([3, 1], np.int32))
    net.output("y", net.add(ReverseSequence(1, 0), net.input("x", f32(2, 3)), lengths))
    return net.build()


GRAPHS: dict[str, Callable[[], Graph]] = {
    "two inputs": two_inputs,
    "quantized": quantized,
    "plain": diamond,
    "choices": lambda: doubling(3),
    "another backend": reversed_rows,
}


class Sound:
    """Sound files, what they give, and the code that is in them."""

    def __init__(self, folder: Path) -> None:
        self.contents: list[bytes] = []
        self.results: list[list[bytes]] = []
        self.code: set[bytes] = set()
        self.foreign: list[bytes] = []
        for name, make in GRAPHS.items():
            path = folder / f"{name}.armpy"
            graph = make()
            with Model(graph) as model:
                model.prepare(SHAPES if name == "two inputs" else None)
                model.save(path)
                self.results.append(results_of(model, graph))
            self.contents.append(path.read_bytes())
            plain = read_plainly(self.contents[-1])
            self.code |= {data for n, data in plain.sections.items() if n.endswith("/code")}
        self.inputs = [make() for make in GRAPHS.values()]


def results_of(model: Model, graph: Graph) -> list[bytes]:
    """Outputs of a model on small numbers."""
    shapes = SHAPES if None in {n for v in graph.inputs for n in v.info.shape or ()} else {}
    feeds = {
        v.name: np.arange(np.prod(shape), dtype=np.int64)
        .reshape(shape)
        .astype(v.info.data_type.dtype)
        for v in graph.inputs
        for shape in [shapes.get(v.name) or v.info.known_shape]
    }
    return [array.tobytes() for array in model.run(feeds).values()]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return Sound(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def mapped(sound: Sound, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sound]:
    """Whatever code is to be mapped is looked at first: there is none but that of sound files."""
    load_image = files.load_image

    def watched(image: object) -> object:
        code = image.code  # type: ignore[attr-defined]
        if bytes(code) not in sound.code:
            sound.foreign.append(bytes(code))
            raise ParserError("this code is in no sound file")
        return load_image(image)

    monkeypatch.setattr(files, "load_image", watched)
    sound.foreign.clear()
    yield sound
    assert not sound.foreign


def outcome(sound: Sound, number: int, path: Path) -> tuple[str, str]:
    """The kind of a mutation, and what came of it."""
    kind, mutated = mutation(sound.contents, number)
    path.write_bytes(mutated.contents)
    graph = sound.inputs[mutated.seed]
    options = (
        {"backends": ["CpuRef"]} if mutated.code == NEVER and not mutated.is_same_graph else {}
    )
    try:
        model = armpy.load(path, code=mutated.code, memory_limit_bytes=LIMIT_BYTES, **options)  # type: ignore[arg-type]
    except ParserError:
        return kind, "refused"
    except ArmpyError as error:
        if mutated.is_same_graph or isinstance(error, BackendError):
            raise
        return kind, "another graph"
    with model:
        try:
            model.metadata  # noqa: B018
        except ParserError:
            return kind, "refused"
        was_light = model.is_light
        try:
            results = results_of(model, graph)
        except ArmpyError as error:
            if mutated.is_same_graph or isinstance(error, BackendError):
                raise
            return kind, "another graph"
        if mutated.is_same_graph:
            assert results == sound.results[mutated.seed]
        assert mutated.code != NEVER or not was_light
    return kind, "light" if was_light else "compiled again"


@pytest.mark.slow
def test_sound_files_are_light_or_right(mapped: Sound, tmp_path: Path) -> None:
    path = tmp_path / "model.armpy"
    are_light = []
    for contents, graph, expected in zip(
        mapped.contents, mapped.inputs, mapped.results, strict=True
    ):
        path.write_bytes(contents)
        with armpy.load(path) as model:
            are_light.append(model.is_light)
            assert results_of(model, graph) == expected
    assert are_light == [True, True, True, True, False]
    assert mapped.code


@pytest.mark.slow
def test_changed_files_are_refused_compiled_again_or_right(mapped: Sound, tmp_path: Path) -> None:
    path = tmp_path / "model.armpy"
    outcomes: Counter[tuple[str, str]] = Counter()
    for number in range(COUNT):
        try:
            outcomes[outcome(mapped, number, path)] += 1
        except BaseException as error:
            error.add_note(f"in file {number}")
            raise
    print(*sorted(outcomes.items()), sep="\n")
    if COUNT >= 1000:
        assert {kind for kind, _ in outcomes} == KINDS.keys()
        assert {outcome_text for _, outcome_text in outcomes} >= {
            "refused",
            "light",
            "compiled again",
        }
