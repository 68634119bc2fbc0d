"""Options of loading: whatever treats them treats every one that there is."""

from __future__ import annotations

import inspect
import json
import pickle
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

import armpy
from armpy.model import LoadOptions, LoadRequest
from armpy.model import load as loading
from armpy.model.load_options import OPTIONS, differing_options, options_to_save
from armpy.model.pickling import FileRecipe, recipe_of
from armpy.model.provenance import Provenance

KEYS = [name for name, info in OPTIONS.items() if info.cache == "key"]
NOT_KEPT = [name for name, info in OPTIONS.items() if info.cache == "never"]
ANY = [name for name, info in OPTIONS.items() if info.cache == "any"]


def options(**given: Any) -> LoadOptions:
    return LoadOptions(**given)


def test_every_option_says_what_it_does_to_the_cache_and_has_a_help() -> None:
    assert [*OPTIONS] == [field.name for field in fields(LoadOptions)]
    assert {info.cache for info in OPTIONS.values()} == {"key", "never", "any"}
    assert all(info.help.endswith(".") for info in OPTIONS.values())


def test_load_takes_every_option_by_name_and_nothing_else() -> None:
    source, *others = inspect.signature(armpy.load).parameters.values()
    assert source.name == "source"
    assert {parameter.name for parameter in others} == set(OPTIONS)
    for parameter in others:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default == getattr(LoadOptions(), parameter.name)


@pytest.mark.parametrize("name", OPTIONS)
def test_load_hands_on_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class SeenError(Exception):
        pass

    def seen(request: LoadRequest) -> None:
        raise SeenError(request.options.given())

    monkeypatch.setattr(loading, "_loaded", seen)
    value: Any = object()
    with pytest.raises(SeenError) as caught:
        armpy.load(b"contents", **{name: value})
    assert caught.value.args[0] == {name: value}


@pytest.mark.parametrize("name", KEYS)
def test_an_option_that_decides_what_is_compiled_is_part_of_the_caches_key(name: str) -> None:
    keys = [options().cache_key(), *(options(**{name: v}).cache_key() for v in ("one", "two"))]
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_an_option_of_the_key_distinguishes_defaults_from_left_out_values() -> None:
    assert options(preference="preference").cache_key() != options().cache_key()


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_is_loaded_with_other_options_is_not_kept(name: str) -> None:
    assert options(**{name: "one"}).cache_key() is None
    usual = OPTIONS[name].neutral
    assert options(**{name: usual}).cache_key() == options().cache_key()


@pytest.mark.parametrize("name", ANY)
def test_an_option_that_decides_nothing_that_is_compiled_changes_no_key(name: str) -> None:
    assert options(**{name: True}).cache_key() == options().cache_key()


@pytest.mark.parametrize("name", [n for n, info in OPTIONS.items() if info.needs_network])
def test_a_compiled_model_is_loaded_as_a_network_for_what_its_programs_do_not_do(
    name: str,
) -> None:
    info = OPTIONS[name]
    assert options(**{name: "one"}).why_network({}) == info.needs_network
    assert options(**{name: "one"}).why_network({name: "one"}) == (
        "" if info.is_saved else info.needs_network
    )
    assert options().why_network({name: "one"}) == ""


def test_options_that_a_compiled_model_says_are_plain_and_compared_for_any_runtime() -> None:
    runtime_options = armpy.RuntimeOptions(backends=("A", "B"), preference=armpy.Preference.FASTEST)
    saved = options_to_save(runtime_options)
    assert saved == {"backends": ["A", "B"], "preference": "fastest"}
    assert json.loads(json.dumps(saved)) == saved
    assert saved.keys() == {name for name, info in OPTIONS.items() if info.is_saved}
    assert differing_options(runtime_options, saved) == []
    assert differing_options(armpy.RuntimeOptions(), saved) == ["preference"]
    assert differing_options(options(), saved) == []
    assert differing_options(armpy.RuntimeOptions(["B", "A"]), saved) == ["backends", "preference"]


def test_backends_that_a_compiled_model_was_made_for_are_compared_one_by_one() -> None:
    wanted = options(backends=("A", "B"))
    assert wanted.why_network({"backends": ["A", "B"]}) == ""
    assert wanted.why_network({"backends": ["B", "A"]}) == "other backends are wanted"
    assert wanted.why_network({"backends": None}) == "other backends are wanted"


@pytest.mark.parametrize(
    "name", [n for n, info in OPTIONS.items() if not info.allowed_with_runtime]
)
def test_an_option_of_the_runtime_is_refused_beside_one(name: str) -> None:
    with armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])) as runtime:
        with pytest.raises(
            armpy.InvalidArgumentError, match=rf"got {name}='one'\. Pass them to RuntimeOptions"
        ):
            options(runtime=runtime, **{name: "one"}).runtime_options()
        left = options(**{name: "one"}).on(runtime)
        assert left.given().keys() == options().given().keys() | {"runtime"}


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"runtime"}))
def test_a_model_is_made_again_with_every_option(name: str) -> None:
    provenance = Provenance()
    request = LoadRequest(b"contents", options(**{name: "one"}))
    provenance.complete(request, {}, armpy.load)
    handle = SimpleNamespace(check_open=lambda: None)  # nothing else is asked of it
    model: Any = SimpleNamespace(provenance=provenance, handle=handle)
    recipe = recipe_of(model).first
    assert isinstance(recipe, FileRecipe)
    assert recipe.arguments[name] == "one"
    assert pickle.loads(pickle.dumps(recipe)) == recipe
