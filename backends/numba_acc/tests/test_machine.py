"""A machine's figures: measured, kept, and what is chosen by them."""

from __future__ import annotations

import json
import logging
import random
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import F32, U8, ProductKind, Tile, product_ns, tile_of
from armpy_numba_acc.machine.cost_model.figures import BUILT_IN, SAPPHIRE_RAPIDS, ZEN4, typical
from armpy_numba_acc.machine.cost_model.measured import ImplausibleError, measured_model
from armpy_numba_acc.machine.cost_model.model import Level, MachineModel
from armpy_numba_acc.machine.cost_model.trials import NUM_ACCESSES, NUM_TOTALS, TimedLoop, trials_of
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.options import (
    ResolvedOptions,
    built_in_figures,
    figures_in_force,
    known_figures,
)
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.runtime import machine
from armpy_numba_acc.store import machine as store
from armpy_numba_acc.store.host import known_isas, processor
from armpy_numba_acc.store.settings import machine_entries
from armpy_numba_acc.tuning import figures

from armpy.backend import Progress, watch_progress
from armpy.core.symbolic import SymbolicTrace

from .support import ISAS

FEATURES = frozenset(
    {"sse4.2", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "popcnt", "avx512f", "avx512bw"}
    | {"avx512dq", "avx512vl", "avx512cd", "avx512vnni", "avx512bf16"}
)
WIDE = make_isa("avx512vnni", "x86_64-pc-linux-gnu", "generic", FEATURES)
SHAPES = [(12544, 32, 64), (3136, 128, 128), (196, 512, 512), (49, 1024, 960), (784, 240, 40)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    machine.this_machine.cache_clear()
    return tmp_path


def times_on(model: MachineModel, isa: Isa = WIDE) -> dict[TimedLoop, float]:
    """What trials take on a machine of some figures."""
    times = {}
    for trial in trials_of(isa):
        width = model.width(trial.vector_bytes)
        if trial.what in ("steps", "wait"):
            pace = model.products(trial.kind, isa, trial.vector_bytes)
            steps = trial.what == "steps"
            times[trial] = pace.step_ns * NUM_TOTALS if steps else pace.latency_ns
        elif trial.what == "tile":
            turn_ns = model.finish("f32").turn_ns
            computed_ns = model.products("f32", isa).step_ns * trial.rows * trial.vectors + turn_ns
            loaded_ns = trial.rows * width.broadcast_ns + trial.vectors * width.load_ns
            times[trial] = max(computed_ns, loaded_ns)
        elif trial.what == "chain":
            times[trial] = 12 * model.cycle_ns
        else:
            of = {"loads": width.load_ns, "stores": width.store_ns}
            times[trial] = NUM_ACCESSES * of.get(trial.what, width.broadcast_ns)
    return times


def tiles_by(model: MachineModel) -> list[Tile]:
    """The tiles of some layers."""
    tiles = []
    for pixels, columns, depth in SHAPES:
        for kind in (F32, U8):
            pitch = depth * kind.element_bytes
            patches = Patches(Buffer(Space.ARENA, 0), 1, 1, pixels, 0, 0, pitch, (0,), depth)
            tiles.append(tile_of(Choices(WIDE, model), kind, patches, columns))
    return tiles


@pytest.mark.parametrize("model", [ZEN4, SAPPHIRE_RAPIDS], ids=str)
def test_trials_find_the_most_similar_machine_and_use_its_choices(model: MachineModel) -> None:
    measured = measured_model(WIDE, times_on(model), model.levels)
    assert measured.name == f"measured, like {model.name}"
    assert measured.products("f32", WIDE).step_ns == pytest.approx(
        model.products("f32", WIDE).step_ns
    )
    assert tiles_by(measured) == tiles_by(model)


def test_the_same_machine_measured_twice_chooses_alike() -> None:
    chosen = set()
    for seed in range(5):
        noise = random.Random(seed)
        times = {t: ns * noise.uniform(1.0, 1.02) for t, ns in times_on(ZEN4).items()}
        chosen.add(tuple(tiles_by(measured_model(WIDE, times, ZEN4.levels))))
    assert len(chosen) == 1


def test_a_clock_that_is_twice_as_fast_halves_every_figure() -> None:
    times = {trial: ns / 2 for trial, ns in times_on(ZEN4).items()}
    measured = measured_model(WIDE, times, ZEN4.levels)
    assert measured.cycle_ns == pytest.approx(ZEN4.cycle_ns / 2)
    for kind in ("f32", "u8", "i16"):
        after = measured.finish(kind).after_steps_ns(7, 2)
        assert after == pytest.approx(ZEN4.finish(kind).after_steps_ns(7, 2) / 2)


@pytest.mark.parametrize(
    ("trial", "cycles", "message"),
    [
        (TimedLoop("chain"), 1200, "a cycle of 27"),
        (TimedLoop("steps", "f32", 64), 1000 * NUM_TOTALS, "steps f32 64 of 1e.03 cycles"),
        (TimedLoop("steps", "f32", 64), 0.4 * NUM_TOTALS, "steps f32 64 of 0.4 cycles"),
        (TimedLoop("wait", "f32", 64), 1.5, "wait f32 64 of 1.5 cycles"),
        (TimedLoop("wait", "u8", 32), 0.5, "wait u8 32 of 0.5 cycles"),
        (TimedLoop("loads", "", 64), 0.25 * NUM_ACCESSES, "loads 64 of 0.25 cycles"),
        (TimedLoop("stores", "", 64), 0.4 * NUM_ACCESSES, "stores 64 of 0.4 cycles"),
        (TimedLoop("broadcasts", "", 64), 0.25 * NUM_ACCESSES, "broadcasts 64 of 0.25 cycles"),
        (TimedLoop("tile", "f32", 64, 7, 2), 5, "tile f32 64 7x2 of 0.357 cycles"),
    ],
    ids=str,
)
def test_what_cannot_be_is_no_figure(trial: TimedLoop, cycles: float, message: str) -> None:
    """Times of a turn that no processor reaches, or far too long ones."""
    times = times_on(ZEN4)
    times[trial] = cycles * ZEN4.cycle_ns
    with pytest.raises(ImplausibleError, match=message):
        measured_model(WIDE, times, ZEN4.levels)


@pytest.mark.parametrize(
    ("name", "triple", "like"),
    [
        ("avx2", "x86_64-pc-linux-gnu", {"haswell"}),
        ("avx512", "x86_64-pc-linux-gnu", {"zen4", "sapphire-rapids"}),
        ("neon-basic", "aarch64-unknown-linux-gnu", {"neoverse", "neoverse-v"}),
        ("i8mm", "aarch64-unknown-linux-gnu", {"neoverse", "neoverse-v"}),
    ],
)
def test_a_machine_is_like_one_with_the_same_family_of_instruction_sets(
    name: str, triple: str, like: set[str]
) -> None:
    isa = make_isa(name, triple, "generic", FEATURES)
    times = times_on(typical(isa), isa)
    # Faster products than any built-in machine of the family has.
    times = {t: ns / 2 if t.kind == "u8" and t.what == "wait" else ns for t, ns in times.items()}
    measured = measured_model(isa, times, typical(isa).levels)
    assert measured.name.removeprefix("measured, like ") in like


@pytest.mark.parametrize("name", ["avx2", "avx512"])
def test_products_that_the_compiler_has_left_out_are_no_figure(name: str) -> None:
    isa = make_isa(name, "x86_64-pc-linux-gnu", "generic", FEATURES)
    times = times_on(typical(isa), isa)
    steps = TimedLoop("steps", "u8", isa.vector_bytes)
    times[steps] = 2 * NUM_TOTALS * 0.2 * typical(isa).cycle_ns
    with pytest.raises(ImplausibleError, match=r"steps u8 \d+ of 0\.2 cycles"):
        measured_model(isa, times, typical(isa).levels)


def test_products_of_16_bits_are_as_fast_as_those_of_bytes_where_only_these_are_known() -> None:
    """A processor with both may be limited to an instruction set that has the first only."""
    paces = tuple(pace for pace in ZEN4.paces if pace.instruction != "pmaddwd")
    known, assumed = (model.pace("pmaddwd", 32) for model in (ZEN4, replace(ZEN4, paces=paces)))
    assert (assumed.instruction, assumed.step_ns) == ("pmaddwd", known.step_ns)


def test_memory_is_not_faster_than_the_cache_before_it() -> None:
    levels = [Level(1 << 15, 100.0), Level(1 << 20, 50.0), Level(0, 150.0)]
    with pytest.raises(ImplausibleError, match="faster than the cache"):
        measured_model(WIDE, times_on(ZEN4), levels)


def test_a_machine_that_cannot_be_measured_gets_typical_figures(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Counter[tuple[int, int]]()

    def run(number: int, repeats: int, mask: int) -> int:
        runs[number, mask] += 1
        return repeats << runs[number, mask]  # twice as long as the last time, so no two agree

    monkeypatch.setattr(machine, "_runner", lambda *_: run)
    with caplog.at_level(logging.WARNING, "armpy.NumbaAcc"):
        assert machine.measure_machine(ISAS) == (typical(ISAS[0]), False)
    assert "could not be measured" in caplog.text
    assert machine.this_machine() in BUILT_IN.values()
    entries = machine_entries()
    assert entries is not None
    assert store.kept_model(entries) is None


def test_a_machine_that_was_disturbed_is_measured_once_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disturbed = [True, False]

    def measure(isa: Isa) -> MachineModel:
        if disturbed.pop(0):
            raise ImplausibleError("steps f32 64 of 0.447 cycles")
        return ZEN4

    monkeypatch.setattr(machine, "_measured", measure)
    assert machine.measure_machine(ISAS) == (ZEN4, True)
    assert not caplog.text


@pytest.mark.parametrize("is_permitted", [False, True])
def test_a_machine_is_measured_with_its_matrix_unit_where_the_system_permits_it(
    is_permitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_unit = ISAS[0]._replace(name="avx512amx", matrix_unit="amx")
    monkeypatch.setattr(machine, "may_use_matrix_unit", lambda: is_permitted)
    monkeypatch.setattr(machine, "_measured", lambda isa: replace(ZEN4, name=isa.name))
    model, _ = machine.measure_machine([with_unit, *ISAS])
    assert model.name == ("avx512amx" if is_permitted else ISAS[0].name)


def test_measuring_takes_one_kernel_and_less_than_a_second_on_any_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted on a clock that runs as the trials say; compiling the kernel takes the rest."""
    for model in BUILT_IN.values():
        spent_ns = 0.0
        times = [*times_on(model, ISAS[0]).values()]

        def runner(*_: object, times: list[float] = times) -> Any:  # Any: a callable
            noise = random.Random(0)

            def run(number: int, repeats: int, mask: int) -> int:
                nonlocal spent_ns
                turn_ns = times[number] * (8 if mask > 1 << 16 else 1)
                spent_ns += 1000 + repeats * turn_ns * noise.uniform(1, 3)  # far from idle
                return int(repeats * turn_ns * 100 * noise.uniform(1, 1.01))

            return run

        monkeypatch.setattr(machine, "_runner", runner)
        machine.measure_machine(ISAS)
        assert 0 < spent_ns < 1e9


@pytest.mark.slow
def test_this_machine_is_measured_once_kept_and_reported() -> None:
    steps: list[Progress] = []
    with watch_progress(steps.append):
        first = machine.this_machine()
        machine.this_machine.cache_clear()
        again = machine.this_machine()
    tasks = [step for step in steps if step.task == "measuring this machine"]
    assert [(step.done, step.total) for step in tasks][:2] == [(0, 1), (1, 1)]
    if first.name.startswith("measured"):
        assert len(tasks) == 2
        assert again == first
        assert again.digest == first.digest


def document(model: MachineModel = ZEN4) -> dict[str, Any]:  # Any: JSON
    entries = machine_entries()
    assert entries is not None
    store.keep_model(entries, model)
    parts = entries.read("machine", store._key())
    assert parts is not None
    fields: dict[str, Any] = json.loads(bytes(parts[0]))
    return fields


def kept(contents: object) -> MachineModel | None:
    entries = machine_entries()
    assert entries is not None
    text = contents if isinstance(contents, bytes) else json.dumps(contents).encode()
    entries.write("machine", store._key(), [text], "figures", "armpy itself")
    return store.kept_model(entries)


def test_kept_figures_are_those_that_were_measured() -> None:
    assert kept(document(SAPPHIRE_RAPIDS)) == SAPPHIRE_RAPIDS


def test_figures_of_another_processor_are_not_used() -> None:
    assert kept({**document(), "processor": "another"}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"cycle_ns": "fast"},
        {"paces": []},
        {"levels": []},
        {"finishes": []},
        {"widths": [{"vector_bytes": 64}]},
        {"cycle_ns": float("nan")},
        {"unit": 3},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_figures_are_not_used(change: Mapping[str, object]) -> None:
    whole = document()
    assert kept({**whole, "model": {**whole["model"], **change}}) is None


@pytest.mark.parametrize("contents", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_figures_is_not_used(contents: bytes) -> None:
    assert kept(contents) is None


def test_the_digest_is_of_the_figures_and_not_of_the_name() -> None:
    assert replace(ZEN4, name="other").digest == ZEN4.digest
    digests = {model.digest for model in BUILT_IN.values()}
    digests.add(replace(ZEN4, fork_ns=1.0).digest)
    assert len(digests) == len(BUILT_IN) + 1


def test_without_a_name_choices_are_made_by_this_machines_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ARMPY_NUMBA_MACHINE")
    kept({**document(), "processor": processor()})
    assert ResolvedOptions.of().model == ZEN4


def test_figures_that_choose_slower_kernels_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("ARMPY_NUMBA_MACHINE")
    built_in = typical(known_isas()[0])
    wrong = replace(typical(ISAS[0]), name="measured, like a wrong one", cycle_ns=0.2)
    entries = machine_entries()
    assert entries is not None
    store.keep_model(entries, wrong)
    assert machine.this_machine() == wrong
    assert "not compared with the built-in ones" in figures_in_force()
    with caplog.at_level(logging.WARNING, "armpy.NumbaAcc"):
        machine.judge_figures(lambda *_: {"float32 1x1": 1.4, "int8 1x1": 0.9})
    assert machine.this_machine() == built_in
    assert "built-in figures are used" in caplog.text
    assert figures_in_force() == (
        "built-in; time of kernels chosen by measured figures, by built-in ones: "
        "float32 1x1 1.40; int8 1x1 0.90"
    )
    assert known_figures().startswith("measured, like a wrong one: clock 5.00 GHz")
    assert built_in_figures().startswith(f"{built_in}: clock")


def test_figures_are_compared_once_and_again_when_they_change() -> None:
    entries = machine_entries()
    assert entries is not None
    compared: list[MachineModel] = []

    def compare(_: Isa, measured: MachineModel, built_in: MachineModel) -> dict[str, float]:
        compared.append(measured)
        return {"float32 1x1": 1.01}

    for cycle_ns in (0.3, 0.3, 0.25):
        store.keep_model(entries, replace(typical(ISAS[0]), name="measured", cycle_ns=cycle_ns))
        machine.judge_figures(compare)
    assert [model.cycle_ns for model in compared] == [0.3, 0.25]
    model = store.kept_model(entries)
    assert model is not None
    assert not machine.is_slower(store.kept_comparison(entries, model))
    entries.write("comparison", store._key(), [b"[]"], "comparison", "armpy itself")
    assert store.kept_comparison(entries, model) == {}


@pytest.mark.slow
def test_five_kernels_compare_figures_and_wrong_ones_are_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong figures: where spreading an element takes long, tiles have one row."""
    isa, built_in = ISAS[0], typical(ISAS[0])
    monkeypatch.setattr(figures, "_SECONDS", 0.1)
    assert figures.compared_figures(isa, built_in, built_in) == dict.fromkeys(figures.PRODUCTS, 1.0)
    widths = tuple(replace(w, broadcast_ns=20 * w.broadcast_ns) for w in built_in.widths)
    ratios = figures.compared_figures(isa, replace(built_in, widths=widths), built_in)
    assert ratios.keys() == figures.PRODUCTS.keys()
    assert machine.is_slower(ratios), ratios


@pytest.mark.parametrize("kind", [F32, U8])
@pytest.mark.parametrize("open_sizes", ["pixels", "pixels and steps"])
def test_a_tile_is_kept_for_sizes_for_which_it_is_good_in_the_mean(
    kind: ProductKind, open_sizes: str
) -> None:
    columns = 96
    choices = Choices(WIDE, ZEN4)

    def patches(pixels: int, depth: int) -> Patches:
        pitch = depth * kind.element_bytes
        return Patches(Buffer(Space.ARENA, 0), 1, 1, pixels, 0, 0, pitch, (0,), depth)

    def depth_of(size: int) -> int:
        return 64 if open_sizes == "pixels" else 4 * size

    for first, last, most in ((2, 4, 1.3), (5, 16, 1.2), (17, 400, 1.05)):
        trace = SymbolicTrace([min(last, 40)])
        size = cast("int", trace.given[0])
        tile = tile_of(choices, kind, patches(size, depth_of(size)), columns)
        formula = trace.formula([])
        losses = []
        for other in range(1, 401):
            shape = (1, other, columns, kind.steps(patches(other, depth_of(other))))
            every = {each: product_ns(choices, kind, each, shape) for each in kind.tiles(WIDE)}
            assert (formula([other]) is not None) == (first <= other <= last)
            if first <= other <= last:
                losses.append(every[tile] / min(every.values()))
        assert statistics.mean(losses) < most


@pytest.mark.parametrize(("tile", "takes_longer"), [(Tile(2, 8), True), (Tile(7, 2), False)])
def test_tiles_of_few_rows_wait_for_weights_that_the_first_cache_cannot_hold(
    tile: Tile, takes_longer: bool
) -> None:
    choices = Choices(WIDE, ZEN4)
    near_ns, far_ns = (product_ns(choices, F32, tile, (1, 56, 128, n)) / n for n in (64, 1024))
    assert (far_ns > 1.2 * near_ns) == takes_longer, (near_ns, far_ns)


@pytest.mark.parametrize("depth", [1024, 2048])
def test_rows_that_share_a_place_in_the_first_cache_are_few(depth: int) -> None:
    choices = Choices(WIDE, ZEN4)

    def tile_with(depth: int) -> Tile:
        pitch = depth * F32.element_bytes
        patches = Patches(Buffer(Space.ARENA, 0), 1, 1, 12, 0, 0, pitch, (0,), depth)
        return tile_of(choices, F32, patches, 512)

    assert tile_with(depth + 16).rows == 12
    assert tile_with(depth).rows <= 9
