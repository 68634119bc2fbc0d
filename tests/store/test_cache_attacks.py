"""Whatever happens to a cache's files, results are right and the application sees no error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy import CompilationCaching
from armpy.backend import IPrograms, OptionValues, ProgramCheck, ProgramFit, SavedProgram
from armpy.compiler import OptimizerOptions
from armpy.compiler.compiled_cache import CompiledFiles, CompiledParts, Key, LookedUp
from armpy.execution import NetworkProperties
from armpy.graph import Graph, SubgraphView
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import (
    ScriptedBackend,
    declaration,
    log_of,
    write_scripted,
)
from armpy_testing.models.networks import ADD, MUL, f32, floats, placement_of

X = floats(1, 2, 3)


class Credulous(ScriptedBackend):
    """Believes its files: the constants that it computes with are those that it loads."""

    def __init__(self) -> None:
        super().__init__("Npu", declared=declaration(keeps_programs=True))

    def get_programs(self) -> IPrograms:
        return CredulousPrograms()


class CredulousPrograms(IPrograms):
    """Writes constants down, and takes whatever it is given."""

    def save(self, program: object, options: OptionValues) -> SavedProgram:
        assert isinstance(program, SubgraphView)
        factor, summand = (constant.tobytes() for constant in constants_of(program))
        return SavedProgram({"does": "multiply and add"}, {"factor": factor, "summand": summand})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)

    def load(self, saved: SavedProgram) -> SubgraphView:
        factor, summand = (
            np.frombuffer(saved.parts[name], np.float32) for name in ("factor", "summand")
        )
        graph = scaling(factor, summand)
        return SubgraphView.of(graph, graph.layers)


def constants_of(view: SubgraphView) -> list[Array]:
    return [v.data for layer in view.layers for v in layer.inputs if v and v.data is not None]


def scaling(factor: Array, summand: Array) -> Graph:
    """``y = factor x + summand``"""
    net = Network()
    x = net.add(MUL, net.input("x", f32(3)), net.constant(np.asarray(factor, np.float32)))
    net.output("y", net.add(ADD, x, net.constant(np.asarray(summand, np.float32))))
    return net.build()


def run(folder: Path, factor: float, token: bytes | None = None) -> tuple[Array, bool]:
    """The result of one model, and whether it came from files."""
    optimizer = OptimizerOptions(caching=CompilationCaching(folder, token))
    model = Model(
        scaling(floats(factor), floats(factor + 1)),
        runtime_of(Credulous()),
        properties=NetworkProperties(optimizer=optimizer),
    )
    assert placement_of(model).layers_by_backend == {"Npu": 2}
    (use,) = placement_of(model).cache_uses
    assert use.is_hit or use.reason
    return model(X), use.is_hit  # type: ignore[return-value]  # there is one output


def expected(factor: float) -> list[float]:
    return [factor * 1 + factor + 1, factor * 2 + factor + 1, factor * 3 + factor + 1]


Attack = Callable[[list[Path], st.DataObject], None]


def flip(files: list[Path], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files))
    contents = bytearray(path.read_bytes())
    if contents:
        place = data.draw(st.integers(0, len(contents) - 1))
        contents[place] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(contents)


def truncate(files: list[Path], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files))
    os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))


def extend(files: list[Path], data: st.DataObject) -> None:
    with data.draw(st.sampled_from(files)).open("ab") as file:
        file.write(data.draw(st.binary(min_size=1, max_size=80)))


def swap(files: list[Path], data: st.DataObject) -> None:
    first, two = data.draw(st.sampled_from(files)), data.draw(st.sampled_from(files))
    contents = first.read_bytes(), two.read_bytes()
    first.write_bytes(contents[1])
    two.write_bytes(contents[0])


def remove(files: list[Path], data: st.DataObject) -> None:
    data.draw(st.sampled_from(files)).unlink()


def put_something_else(files: list[Path], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files))
    path.unlink()
    kind = data.draw(st.sampled_from(["folder", "link", "text"]))
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(data.draw(st.sampled_from(files)))
    else:
        path.write_text("not ours")


def let_others_write(files: list[Path], data: st.DataObject) -> None:
    data.draw(st.sampled_from(files)).chmod(0o666)


ATTACKS: list[Attack] = [
    *(flip, truncate, extend, swap, remove, put_something_else, let_others_write),
]


@pytest.mark.slow
@settings(max_examples=80)
@given(st.data())
@pytest.mark.parametrize("token", [None, bytes(range(32))], ids=["automatic", "token"])
def test_no_attack_on_files_gives_a_wrong_result_or_an_error(
    token: bytes | None, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for factor in (2.0, 3.0):
            result, _ = run(folder, factor, token)
            np.testing.assert_array_equal(result, expected(factor))
        for attack in data.draw(st.lists(st.sampled_from(ATTACKS), min_size=1, max_size=4)):
            files = sorted(path for path in folder.iterdir() if path.is_file())
            if files:
                attack(files, data)
        for factor in (2.0, 3.0, 2.0):
            result, _ = run(folder, factor, token)
            np.testing.assert_array_equal(result, expected(factor))


def test_the_credulous_backend_would_be_wrong_without_checks(tmp_path: Path) -> None:
    """Or the test above could not fail."""
    parts = {"factor": floats(20).tobytes(), "summand": floats(3).tobytes()}
    factor, _ = constants_of(CredulousPrograms().load(SavedProgram({}, parts)))
    assert factor.tolist() == [20]


PIECE = {"layers": [0, 1], "shapes": [[3]], "working_bytes": 0, "code": [], "views": {}}
ODD_HEADS: list[object] = [
    *(None, {}, {"pieces": [], "untouched": []}, {"pieces": [], "untouched": [[9]]}),
    {"pieces": [PIECE | {"about": {}, "data": ["factor"]}], "untouched": []},
    {"pieces": [PIECE | {"about": {}, "data": None}], "untouched": []},
    {"pieces": [PIECE | {"about": {}, "data": [], "shapes": [3]}], "untouched": []},
]
"""What the files may say of a part in another layout."""


def with_head(head: object) -> Callable[[CompiledParts, Key], LookedUp]:
    """`CompiledParts.look_up`, finding a part whose files say something else of it."""
    look_up = CompiledParts.look_up

    def look_up_changed(parts: CompiledParts, key: Key) -> LookedUp:
        looked_up = look_up(parts, key)
        assert looked_up.files is not None
        model = [json.dumps(head).encode(), *looked_up.files.model[1:]]
        return looked_up._replace(files=CompiledFiles(model, looked_up.files.data))

    return look_up_changed


@pytest.mark.parametrize("head", ODD_HEADS, ids=str)
def test_what_is_kept_in_another_layout_is_compiled_anew(head: object, tmp_path: Path) -> None:
    run(tmp_path, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledParts, "look_up", with_head(head))
        result, is_hit = run(tmp_path, 2)
    assert not is_hit
    np.testing.assert_array_equal(result, expected(2))
    assert run(tmp_path, 2)[1]


def test_files_that_were_not_written_together_are_not_used(tmp_path: Path) -> None:
    """One of an older making of the same part is sound by itself."""
    run(tmp_path, 2)
    contents_by_path = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in contents_by_path:
        path.unlink()
    run(tmp_path, 2)
    path = min(contents_by_path)
    path.write_bytes(contents_by_path[path])
    result, is_hit = run(tmp_path, 2)
    assert not is_hit
    np.testing.assert_array_equal(result, expected(2))


PREPARER = """
import sys, time
from pathlib import Path
import armpy
from armpy.execution import Runtime, RuntimeOptions
from tests.store.test_cache_attacks import X, expected, scaling
from armpy_testing.models.networks import floats
folder, backends, start = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
options = RuntimeOptions(
    backends=["Npu", "CpuRef"], dynamic_backends_path=backends,
    caching=armpy.CompilationCaching(folder),
)
runtime = Runtime(options)
Path(start, sys.argv[4]).touch()
while len([*start.iterdir()]) < 8:
    time.sleep(0.005)
model = armpy.Model(scaling(floats(2), floats(3)), runtime)
assert model(X).tolist() == expected(2.0)
print(*model.placement.cache_uses)
"""


@pytest.mark.slow
def test_eight_processes_that_prepare_one_model_at_once_compile_it_once(tmp_path: Path) -> None:
    log, start = tmp_path / "log", tmp_path / "started"
    start.mkdir()
    how = f"ScriptedBackend('Npu', {{'optimize': sleeps(0.5)}}, log={str(log)!r}, "
    how += "declared=declaration(keeps_programs=True))"
    write_scripted(tmp_path / "backends", how)
    command = [sys.executable, "-c", PREPARER, str(tmp_path / "cache"), str(tmp_path / "backends")]
    processes = [
        subprocess.Popen(
            [*command, str(start), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    outputs = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        outputs.append(output)
    assert log_of(log).count("optimize") == 1
    assert log_of(log).count("load") == 7
    assert sum(": compiled" in text for text in outputs) == 1
    assert sum("another process has just compiled it" in text for text in outputs) >= 1
