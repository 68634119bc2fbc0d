"""The measured search, what it keeps, and who uses it."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc.lowering import tiles
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices, Option
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.store import choices as kept
from armpy_numba_acc.store import keys
from armpy_numba_acc.store.host import processor
from armpy_numba_acc.store.keys import program_key, region_digest
from armpy_numba_acc.store.programs import compiled_program
from armpy_numba_acc.store.settings import disk_entries
from armpy_numba_acc.tuning import measuring, region
from armpy_numba_acc.tuning.measuring import TuningCandidate, Turns, take_turns
from armpy_numba_acc.tuning.region import tune_region
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy import Network
from armpy.backend import TuningRequest, TuningResult, request_tuning
from armpy.graph import SubgraphView
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .networks import convolutions, image, runtime_of, small
from .support import ISAS, forget_sources

ISA = ISAS[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    # The sources may change while their tests run.
    monkeypatch.setattr(keys, "_IMPORTED_NS", 1 << 63)
    forget_sources()
    # Fewer ways have to be compiled.
    monkeypatch.setattr(tiles, "_MOST_TRIED", 2)
    monkeypatch.setattr(tiles, "_HALVES", ())
    return tmp_path / "numba_acc"


def steady(times_us: Sequence[float]) -> Turns:
    """Times that were the same in every round."""
    return Turns(np.tile(np.array(times_us, np.float64), (7, 1)))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time is taken: what comes last is found to be fastest."""

    def pretended(candidates: Sequence[TuningCandidate], _: float) -> Turns:
        return steady([float(len(candidates) - number) for number in range(len(candidates))])

    monkeypatch.setattr(region, "take_turns", pretended)


def view_of_convolutions() -> SubgraphView:
    graph = convolutions(12, 20, 2).build()
    return SubgraphView.of(graph, graph.layers)


def tuned(view: SubgraphView, seconds: float = 100) -> TuningResult:
    request = TuningRequest(seconds)
    tune_region(view, ISA, 1, request)
    (result,) = request.results
    return result


def tiles_of(program: Program) -> set[tuple[object, ...]]:
    return {kernel.parameters for kernel in program.kernels if kernel.name == "convolution_f32"}


def write_table(view: SubgraphView, table: Mapping[str, Option]) -> None:
    entries = disk_entries()
    assert entries is not None
    kept.keep_choices(entries, program_key(region_digest(view), ISA, 1), table, "tuned")


def test_what_is_fastest_is_kept_and_used_from_then_on(quick: None) -> None:
    view = view_of_convolutions()
    before = compiled_program(view, ISA)
    result = tuned(view)
    first = result.choices[0]
    assert first.what.startswith(f"convolution_f32 tile {ISA.name} 144x20x300")
    assert (result.problem, result.before_us, result.after_us) == ("", 2, 1)
    assert first.measured != first.modelled
    after = compiled_program(view_of_convolutions(), ISA)
    assert tiles_of(before) != tiles_of(after)
    tile = tuple(map(int, re.findall(r"\d+", first.measured)[:2]))  # rows and vectors
    assert {tile} == {parameters[: len(tile)] for parameters in tiles_of(after)}
    entries = disk_entries()
    assert entries is not None
    kinds = [(e.name.split("-")[0], e.description.split(":")[0]) for e in entries.verify()]
    assert kinds.count(("tuned", "tuned")) == 1
    assert kinds.count(("program", "tuned")) == 1


@pytest.mark.slow
def test_another_process_uses_it(quick: None, folder: Path) -> None:
    tuned(view_of_convolutions())
    expected = compiled_program(view_of_convolutions(), ISA)
    script = (
        "from armpy_numba_acc.store import keys; keys._IMPORTED_NS = 1 << 63\n"
        f"from {__name__} import *\n"
        "print(sorted(tiles_of(compiled_program(view_of_convolutions(), ISA))))"
    )
    root = Path(__file__).parents[__name__.count(".")]  # from which the module is imported
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(sorted(tiles_of(expected))), done.stderr


def test_other_regions_and_options_are_not_affected(quick: None) -> None:
    view = view_of_convolutions()
    program = compiled_program(view, ISA, 2)
    tuned(view)
    assert tiles_of(compiled_program(view, ISA, 2)) == tiles_of(program)


def test_one_thread_may_be_fastest(quick: None) -> None:
    view = view_of_convolutions()
    assert compiled_program(view, ISA, 2).num_threads == 2
    request = TuningRequest(100)
    tune_region(view, ISA, 2, request)
    last = request.results[0].choices[-1]
    assert (last.layer, last.modelled, last.measured) == ("all of it", "2", "1")
    assert compiled_program(view, ISA, 2).num_threads == 1


def test_layers_that_are_written_otherwise_are_measured_as_they_are_lowered(quick: None) -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 20, 9, 9), DataType.FLOAT32))
    weights = net.constant(np.ones((17, 3, 2, 20), np.float32))
    net.output("y", net.add(Convolution2d(data_layout=DataLayout.NCHW), x, weights))
    graph = net.build()
    view = SubgraphView.of(graph, graph.layers)
    result = tuned(view)
    assert result.choices[0].what.startswith("convolution_f32 tile")
    assert result.choices[0].measured


@pytest.mark.slow
def test_results_stay_the_same() -> None:
    picture = image(12, 20)
    results: list[Array] = []
    for seconds in (0.0, 0.2, 0.0):
        with runtime_of(1) as runtime:
            if seconds:
                with request_tuning(seconds) as request:
                    network = runtime.load_network(convolutions(12, 20, 2))
                assert [result.backend_id for result in request.results] == ["NumbaAcc"]
            else:
                network = runtime.load_network(convolutions(12, 20, 2))
            results += runtime.enqueue_workload(network, picture).values()
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(results[1], results[2])


def test_what_is_slower_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretended(candidates: Sequence[TuningCandidate], seconds: float) -> Turns:
        times = [float(len(candidates) - number) for number in range(len(candidates))]
        return steady(times[::-1] if seconds == region._WHOLE_S else times)

    monkeypatch.setattr(region, "take_turns", pretended)
    view = view_of_convolutions()
    before = compiled_program(view, ISA)
    result = tuned(view)
    assert (result.problem, result.after_us) == ("", result.before_us)
    assert tiles_of(compiled_program(view, ISA)) == tiles_of(before)
    # No gain is reported that was not taken.
    assert {choice.measured_us - choice.modelled_us for choice in result.choices} == {0}
    assert any("is no faster in all" in choice.measured for choice in result.choices)


def test_what_saves_most_is_kept_where_all_of_it_together_is_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wholes: list[int] = []

    def pretended(candidates: Sequence[TuningCandidate], seconds: float) -> Turns:
        times = [float(len(candidates) - number) for number in range(len(candidates))]
        if seconds != region._WHOLE_S:
            return steady([time * 10 for time in times])
        wholes.append(len(candidates))
        return steady(times[::-1] if len(wholes) == 1 else times)

    monkeypatch.setattr(region, "take_turns", pretended)
    graph = convolutions(12, 20, 3).build()
    view = SubgraphView.of(graph, graph.layers)
    request = TuningRequest(100)
    tune_region(view, ISA, 2, request)
    (result,) = request.results
    assert len(wholes) == 2
    gains = [choice for choice in result.choices if choice.measured_us < choice.modelled_us]
    left = [choice for choice in result.choices if "is no faster in all" in choice.measured]
    assert gains
    assert left
    assert result.after_us < result.before_us
    saved = [choice.modelled_us - choice.measured_us for choice in result.choices]
    assert saved == sorted(saved, reverse=True)


def test_choices_of_the_whole_region_have_the_times_of_the_last_comparison(quick: None) -> None:
    view = view_of_convolutions()
    request = TuningRequest(100)
    tune_region(view, ISA, 2, request)
    (result,) = request.results
    (threads,) = [choice for choice in result.choices if choice.layer == "all of it"]
    assert threads.measured_us == result.after_us
    assert threads.modelled_us <= result.before_us


def test_a_gain_has_to_be_there_in_nearly_every_round() -> None:
    """By hand: of 100 sorted ratios the 37th bounds the median from below, at 99 %."""
    times = np.full((100, 2), 10.0)
    times[:36, 1] = 20.0
    times[36:, 1] = 5.0
    assert Turns(times).gain(1) == 2
    times[36, 1] = 20.0
    assert Turns(times).gain(1) == 0.5
    few = np.full((7, 2), 10.0)
    few[:6, 1] = 5.0
    assert Turns(few).gain(1) == 1
    assert Turns(few).medians_us == [10, 5]


def test_small_gains_are_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretended(candidates: Sequence[TuningCandidate], _: float) -> Turns:
        return steady([100 - number / len(candidates) for number in range(len(candidates))])

    monkeypatch.setattr(region, "take_turns", pretended)
    assert all(
        choice.measured == choice.modelled for choice in tuned(view_of_convolutions()).choices
    )


def test_nothing_is_tried_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region, "_WHOLE_S", 0.01)
    result = tuned(view_of_convolutions(), seconds=0)
    assert {choice.measured for choice in result.choices} == {""}
    assert result.problem == ""


def test_ways_that_give_something_else_are_not_taken(
    quick: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(TuningCandidate, "agrees_with", lambda *_: False)
    result = tuned(view_of_convolutions())
    assert all(choice.measured == choice.modelled for choice in result.choices)
    assert "is not right for convolution_f32" in caplog.text


def test_nothing_is_measured_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    assert tuned(view_of_convolutions()).problem == "nothing can be kept on disk"


def test_regions_without_a_choice_are_not_reported() -> None:
    graph = small().build()
    request = TuningRequest(1)
    tune_region(SubgraphView.of(graph, ()), ISA, 1, request)
    assert request.results == []


def test_what_does_not_fit_any_more_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    view = view_of_convolutions()
    before = compiled_program(view, ISA)
    write_table(view, {f"convolution_f32 tile {ISA.name} 144x20x300": (99, 1)})
    with caplog.at_level(logging.INFO, "armpy.NumbaAcc"):
        assert tiles_of(compiled_program(view, ISA)) == tiles_of(before)
    assert "does not fit and is not used" in caplog.text


def test_what_was_measured_on_another_processor_is_not_used(
    quick: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    view = view_of_convolutions()
    before = compiled_program(view, ISA)
    tuned(view)
    monkeypatch.setattr(kept, "processor", lambda: "another")
    with caplog.at_level(logging.INFO, "armpy.NumbaAcc"):
        assert tiles_of(compiled_program(view, ISA)) == tiles_of(before)
    assert "are not used here" in caplog.text


DOCUMENTS = ["", "nonsense", "[]", "{}", '{"processor": 1}', '{"choices": {}}', "[" * 100_000]
PROCESSOR = json.dumps(processor())
DOCUMENTS += [
    f'{{"processor": {PROCESSOR}, "choices": {choices}}}'
    for choices in ("[]", "7", '{"a": 7}', '{"a": ["x"]}', '{"a": [null]}', '{"a": [[1]]}')
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("document", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_other_bytes_are_no_measurements(document: str) -> None:
    view = view_of_convolutions()
    entries = disk_entries()
    assert entries is not None
    entries.write("tuned", program_key(region_digest(view), ISA, 1), [document.encode()], "tuned")
    assert kept.kept_choices(entries, program_key(region_digest(view), ISA, 1)) == {}
    compiled_program(view, ISA)


def test_what_the_disk_does_not_take_is_a_problem(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "replace", full)
    result = tuned(view_of_convolutions())
    assert result.problem == "the results could not be stored on disk"


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_a_damaged_table_is_as_good_as_none(data: st.DataObject) -> None:
    view = view_of_convolutions()
    key = f"convolution_f32 tile {ISA.name} 144x20x300"
    write_table(view, {})
    plain = tiles_of(compiled_program(view, ISA))
    entries = disk_entries()
    assert entries is not None
    (path,) = Path(entries.location).glob("tuned-*")
    empty = path.read_bytes()
    tried = {parameters[:2] for parameters in plain}
    option = next(option for option in options_of(view, key) if option[:2] not in tried)
    write_table(view, {key: option})
    assert tiles_of(compiled_program(view, ISA)) != plain
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    damages = [
        whole[:place],
        whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :],
        whole + b"x",
        next(Path(entries.location).glob("program-*")).read_bytes(),
        empty,
    ]
    path.write_bytes(data.draw(st.sampled_from(damages)))
    assert tiles_of(compiled_program(view, ISA)) == plain


def options_of(view: SubgraphView, key: str) -> Sequence[Option]:
    choices = Choices(ISA, typical(ISA))
    lower_region(view, ISA, 1, choices)
    return choices.made[key].options


def test_candidates_take_turns_on_memory_of_their_own() -> None:
    view = view_of_convolutions()
    pair = [TuningCandidate(view, ISA, number, typical(ISA), {}) for number in (1, 2)]
    times = take_turns(pair, 0.01).medians_us
    assert len(times) == 2
    assert min(times) > 0
    assert pair[0].agrees_with(pair[1])
    pair[1].outputs[0][...] += 1
    assert not pair[0].agrees_with(pair[1])


def test_what_an_edge_costs_is_not_counted() -> None:
    graph = convolutions(12, 20, 1).build()
    program = compiled_program(SubgraphView.of(graph, graph.layers), ISA)
    assert not measuring._crosses_edge(program).any()
