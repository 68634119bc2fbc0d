"""Compiled parts on disk, with a backend that follows a script."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import CompilationCaching
from armpy.backend import (
    BackendOption,
    CacheUse,
    IBackendInternal,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.compiler import OptimizerOptions
from armpy.errors import BackendCapabilityError, BackendError, InvalidArgumentError
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph, SubgraphView
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ActivationFunction
from armpy.types import Preference, Priority
from armpy_testing.backends.fake_backends import compiled, registry_of, runtime_of
from armpy_testing.backends.scripted_backend import (
    Call,
    Script,
    ScriptedBackend,
    Step,
    answers,
    declaration,
    raises,
)
from armpy_testing.models.networks import ADD, diamond, f32, floats, placement_of

X, EXPECTED = floats(-1, 0, 2, 5), floats(1, 1, 9, 21)  # 4 relu(x) + 1


def npu(script: Script | None = None, version: str = "1.0", **declared: object) -> ScriptedBackend:
    declarations: dict[str, object] = {"keeps_programs": True, **declared}
    said = declaration(version=version, **declarations)  # type: ignore[arg-type]  # each test's own
    return ScriptedBackend("Npu", script, declared=said)


def load(
    backend: ScriptedBackend, folder: Path, graph: Graph | None = None, **options: object
) -> Model:
    caching = CompilationCaching(folder)
    optimizer = OptimizerOptions(caching=caching, **options)  # type: ignore[arg-type]  # each test's own
    properties = NetworkProperties(optimizer=optimizer)
    model = Model(graph or diamond(), runtime_of(backend), properties=properties)
    if graph is None:
        np.testing.assert_array_equal(model(X), EXPECTED)
    return model


def only_use(model: Model) -> CacheUse:
    (use,) = placement_of(model).cache_uses
    return use


def asked(backend: ScriptedBackend) -> list[str]:
    """What it was asked about parts."""
    parts = ("optimize", "save", "check", "load")
    return [method for method in backend.methods if method in parts]


def renamed() -> Graph:
    net = Network()
    net.output("y", net.add(ADD, net.input("x", f32(4)), net.constant(np.float32(2)), name="top"))
    return net.build()


OTHERS: Mapping[str, Mapping[str, object]] = {
    "preference": {"preference": Preference.LEAST_POWER},
    "priority": {"priority": Priority.HIGH},
    "graph": {"graph": renamed()},
}


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_else_is_prepared_is_another_entry(what: str, tmp_path: Path) -> None:
    load(npu(), tmp_path)
    backend = npu()
    use = only_use(load(backend, tmp_path, **OTHERS[what]))  # type: ignore[arg-type]  # as above
    assert asked(backend) == ["optimize", "save"]
    assert use.reason == "there is none"
    backend = npu()
    load(backend, tmp_path)
    assert asked(backend) == ["check", "load"]  # and the first is still there


class Optional(ScriptedBackend):
    """Has an option of either scope."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return [
            BackendOption("units", 1, "of the device", OptionScope.RUNTIME),
            BackendOption("tiles", 1, "of a network", OptionScope.MODEL),
        ]

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        return super().optimize_subgraph_view(view, request)


def test_options_of_runtime_and_network_are_in_the_key(tmp_path: Path) -> None:
    hits = []
    for options in ({}, {"units": 2}, {"tiles": 2}, {"units": 2, "tiles": 2}, {"units": 2}, {}):
        backend = Optional("Npu", declared=declaration(keeps_programs=True))
        runtime = Runtime(
            RuntimeOptions(
                backends=["Npu"],
                registry=registry_of(backend, ReferenceBackend()),
                backend_options={"Npu": options},
                caching=CompilationCaching(tmp_path),
            )
        )
        hits.append(only_use(Model(diamond(), runtime)).is_hit)
    assert hits == [False, False, False, False, True, True]


def test_changed_code_of_the_same_version_compiles_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "acme"
    package.mkdir()
    for name in ("__init__.py", "backend.py", "convert.py"):
        (package / name).write_text("\n")
    backend_class = type("Npu", (ScriptedBackend,), {"__module__": "acme.backend"})

    def is_hit(file: object = str(package / "backend.py"), *, imports: bool = True) -> bool:
        if imports:
            module = ModuleType("acme.backend")
            vars(module)["__file__"] = file
            monkeypatch.setitem(sys.modules, module.__name__, module)
        backend = npu()
        backend.__class__ = backend_class
        return only_use(load(backend, tmp_path)).is_hit

    assert [is_hit(), is_hit()] == [False, True]
    (package / "convert.py").write_text("# now\n")
    assert is_hit(imports=False)  # what was imported before compiles as it did
    assert [is_hit(), is_hit()] == [False, True]
    # Of these nothing is known but the version.
    assert [is_hit(file) for file in (3, "a\0b", "")] == [False, True, True]


def test_what_was_compiled_is_loaded_the_next_time(tmp_path: Path) -> None:
    first, second = npu(), npu()
    use = only_use(load(first, tmp_path))
    assert asked(first) == ["optimize", "save"]
    assert use == CacheUse("Npu", "4 layers from 'top'", False, "there is none")
    assert len([*tmp_path.glob("*.entry")]) == 2  # code, and data
    use = only_use(load(second, tmp_path))
    assert asked(second) == ["check", "load"]
    assert use == CacheUse("Npu", "4 layers from 'top'", True)
    saved = first.calls_of("save")[0].right()
    loaded = second.calls_of("load")[0].arguments["saved"]
    assert isinstance(saved, SavedProgram)
    assert (loaded.about, loaded.code) == (saved.about, saved.code)
    assert {name: bytes(part) for name, part in loaded.parts.items()} == saved.parts


def test_another_version_of_the_backend_compiles_anew(tmp_path: Path) -> None:
    load(npu(), tmp_path)
    backend = npu(version="1.1")
    assert not only_use(load(backend, tmp_path)).is_hit


def test_another_machine_compiles_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(npu(), tmp_path)
    monkeypatch.setattr("armpy.compiler.compiled_cache.machine_identity", lambda: "another")
    assert not only_use(load(npu(), tmp_path)).is_hit


def says(fit: object, reason: str) -> Step:
    return answers(ProgramCheck(fit, reason))  # type: ignore[arg-type]  # of any type


REFUSALS: Mapping[str, tuple[str, Step, str]] = {
    "foreign": ("check", says(ProgramFit.FOREIGN, "a gpu's"), "foreign: a gpu's"),
    "of old": ("check", says(ProgramFit.REBUILD, "of 0.9"), "needs rebuild: of 0.9"),
    "odd fit": ("check", says("yes", "odd"), "'yes': odd"),
    "says nothing": ("check", answers(None), "wrong type"),
    "check raises": ("check", raises(ValueError("broken")), "raised ValueError"),
    "cannot": ("load", raises(BackendCapabilityError("made by another driver")), "another driver"),
    "fails": ("load", raises(BackendError("broken")), "broken"),
    "raises": ("load", raises(ValueError("broken")), "raised ValueError"),
    "gives none": ("load", answers(None), "it gives no program"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_the_backend_does_not_take_is_compiled_anew(refusal: str, tmp_path: Path) -> None:
    method, step, reason = REFUSALS[refusal]
    load(npu(), tmp_path)
    backend = npu({method: step})
    use = only_use(load(backend, tmp_path))
    tried = ["check"] if method == "check" else ["check", "load"]
    assert asked(backend) == [*tried, "optimize", "save"]
    assert not use.is_hit
    assert "the backend does not take the stored part" in use.reason
    assert reason in use.reason
    backend = npu()
    assert only_use(load(backend, tmp_path)).is_hit, "what was made anew was not kept"


WIDE = np.zeros(3, np.float32)
UNKEPT: Mapping[str, tuple[object, str]] = {
    "no program": ("files", "wrong type"),
    "no notes": (SavedProgram(None, {}), "no mappings"),  # type: ignore[arg-type]  # the test's point
    "no parts": (SavedProgram({}, [b"code"]), "no mappings"),  # type: ignore[arg-type]  # as above
    "notes of no file": (SavedProgram({"seen": object()}, {}), "not JSON serializable"),
    "code that is not there": (SavedProgram({}, {"code": b""}, ("kernel",)), "no part 'kernel'"),
    "code without names": (SavedProgram({}, {}, None), "code is None, not a tuple"),  # type: ignore[arg-type]  # as above
    "no name": (SavedProgram({}, {b"code": b""}), "a part is called b'code'"),  # type: ignore[dict-item]  # as above
    "text": (SavedProgram({}, {"code": "text"}), "the part 'code' is 'text', neither bytes"),  # type: ignore[dict-item]  # as above
    "a number": (SavedProgram({}, {"code": 3}), "the part 'code' is 3, neither bytes"),  # type: ignore[dict-item]  # as above
    "floats": (SavedProgram({}, {"code": WIDE}), "the part 'code' is .*, neither bytes"),  # type: ignore[dict-item]  # as above
}


@pytest.mark.parametrize("unkept", UNKEPT)
def test_what_cannot_be_written_is_compiled_every_time(unkept: str, tmp_path: Path) -> None:
    answer, reason = UNKEPT[unkept]
    _check_unkept(answers(answer), f"it is not kept: .*{reason}", tmp_path)


def test_what_the_backend_does_not_keep_is_compiled_every_time(tmp_path: Path) -> None:
    _check_unkept(answers(None), "the backend keeps nothing of it", tmp_path)


def _check_unkept(step: Step, reason: str, folder: Path) -> None:
    for _ in range(2):
        use = only_use(load(npu({"save": step}), folder))
        assert not use.is_hit
        assert re.search(reason, use.reason)
    assert [*folder.iterdir()] == []


def test_what_was_given_back_in_part_is_compiled_every_time(tmp_path: Path) -> None:
    def half(call: Call) -> OptimizationViews:
        view: SubgraphView = call.arguments["view"]
        if len(view.layers) < 4:
            return OptimizationViews(untouched=[view])
        views = OptimizationViews(untouched=[view.part(view.layers[:2])])
        views.fail(view.part(view.layers[2:]), "it is too busy")
        return views

    for _ in range(2):
        backend = npu({"optimize": half})
        placement = load(backend, tmp_path).placement
        assert placement is not None
        titles = [(use.what, use.is_hit) for use in placement.cache_uses]
        assert titles == [("4 layers from 'top'", False), ("2 layers from 'top'", False)]


def test_layers_that_were_left_as_they_are_come_back_like_that(tmp_path: Path) -> None:
    def half(call: Call) -> OptimizationViews:
        view: SubgraphView = call.arguments["view"]
        views = OptimizationViews(untouched=[view.part(view.layers[:1])])
        views.substitutions.append(compiled(view.part(view.layers[1:])))
        return views

    names = []
    for is_hit in (False, True):
        backend = npu({"optimize": half})
        model = load(backend, tmp_path)
        assert only_use(model).is_hit is is_hit
        executed = [call.arguments["name"] for call in backend.calls_of("execute")]
        names.append(executed)
    assert names[0] == names[1]
    assert len(names[0]) == 2
    assert names[0][0] == "top"


def test_the_report_sums_up(tmp_path: Path) -> None:
    assert str(load(npu(), tmp_path).placement).endswith("; made now: 4 layers")
    placement = load(npu(), tmp_path).placement
    assert placement is not None
    assert str(placement).endswith("; found on disk: 4 layers")
    assert '"is_hit": true' in placement.to_json()


def test_caching_that_is_switched_off_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_COMPILED_CACHE", "off")
    load(npu(), tmp_path)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"folder": "x", "token": b"short"}, "token"),
        ({"token": bytes(32)}, "folder"),
        ({"limit_bytes": 0}, "limit_bytes"),
        ({"folder": "null\0byte"}, "folder"),
        ({"folder": 3}, "folder"),
    ],
)
def test_settings_that_cannot_be_are_refused(fields: dict[str, object], where: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^{where}: "):
        CompilationCaching(**fields)  # type: ignore[arg-type]  # the test's point


class Slope(float):
    """A number of a vendor's own type, which may have more than its value."""


def test_parts_that_their_contents_do_not_identify_are_always_compiled(tmp_path: Path) -> None:
    net = Network("own")
    x = net.input("x", f32(4))
    net.output("y", net.add(Activation(ActivationFunction.LEAKY_RELU, Slope(0.25)), x))
    use = only_use(load(npu(), tmp_path, net.build()))
    assert (use.is_hit, use.reason) == (False, "the contents of a Slope cannot be identified")
    assert [*tmp_path.iterdir()] == []
