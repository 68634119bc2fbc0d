"""Defaults that plugins give to a runtime's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from armpy.backend import BackendOption
from armpy.errors import BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins.hooks import hookimpl
from armpy.types import Preference
from tests.support.fake_backends import FakeBackend, registry_of


class Plugin:
    """Answers with some options."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.seen: list[Mapping[str, object]] = []

    @hookimpl
    def armpy_configure_runtime(self, options: Mapping[str, object]) -> object:
        self.seen.append(options)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Configurable(FakeBackend):
    """A backend with options."""

    @property
    def options(self) -> tuple[BackendOption, ...]:
        size = BackendOption("size", 1, "How large.", minimum=0)
        return (size, BackendOption("name", "n", "Whose."))

    def create_backend_context(self, options: Mapping[str, object]) -> None:
        return None


def runtime(*answers: object, **options: Any) -> Runtime:
    """A runtime with two backends that is configured by plugins with these answers."""
    registry = registry_of(Configurable("A"), FakeBackend("B"))
    for number, answer in enumerate(answers):
        plugin = answer if isinstance(answer, Plugin) else Plugin(answer)
        registry.plugins.register(f"p{number}", plugin)
    return Runtime(RuntimeOptions(registry=registry, **options))


def problems(made: Runtime) -> list[tuple[str, str]]:
    """Plugin and reason of all that went wrong."""
    return [(c.backend_id, failure.reason) for c, _, failure in made.registry.plugins.problems]


def test_what_nobody_has_set_is_the_plugins() -> None:
    made = runtime({"num_threads": 3, "backends": ["B"]}, {"plan_cache_size": 7})
    assert made.options.num_threads == 3
    assert made.options.plan_cache_size == 7
    assert made.get_device_spec().supported_backends == ("B",)
    assert problems(made) == []


def test_a_plugin_may_say_what_placement_goes_by() -> None:
    assert runtime({"preference": "low_power"}).options.preference is Preference.LOW_POWER
    assert runtime({"preference": "quickest"}).options.preference is Preference.ORDER


def test_what_the_application_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"num_threads": 3, "backends": ["B"]}
    made = runtime(answer, num_threads=2, backends=["A"])
    assert (made.options.num_threads, made.options.backends) == (2, ["A"])
    monkeypatch.setenv("ARMPY_BACKENDS", "A")
    made = runtime(answer)
    assert made.options.num_threads == 3
    assert made.get_device_spec().supported_backends == ("A",)


def test_of_two_plugins_the_first_counts() -> None:
    assert runtime({"num_threads": 3}, {"num_threads": 4}).options.num_threads == 3


def test_options_of_backends_are_joined_one_by_one() -> None:
    made = runtime(
        {"backend_options": {"A": {"size": 5, "name": "plugin"}}},
        backend_options={"A": {"name": "mine"}},
    )
    assert made.options.backend_options == {"A": {"size": 5, "name": "mine"}}


def test_a_plugin_is_shown_what_it_may_answer_and_nothing_else() -> None:
    plugin = Plugin(None)
    runtime(plugin, num_threads=2)
    (shown,) = plugin.seen
    assert shown["num_threads"] == 2
    assert not {"registry", "trust_file", "dynamic_backends_path", "memory_limit_bytes"} & {*shown}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"backends": ["C"]}, "no runtime can be set up with its answer: there is no backend 'C'"),
        ({"backends": []}, "no runtime can be set up with its answer: the list of backends is emp"),
        ({"backend_options": {"A": {"size": -1}}}, "no runtime can be set up with its answer: A"),
        ({"trust_insecure_paths": True}, "trust_insecure_paths: this option is none that plugins"),
        ({"registry": None}, "registry: this option is none that plugins answer"),
        ({"memory_limit_bytes": 1 << 60}, "memory_limit_bytes: this option is none that plugins"),
        ({"num_threads": "4"}, "num_threads: the number of threads cannot be used"),
        ({"num_threads": 0}, "num_threads: the number of threads cannot be used"),
        ({"backend_options": 3}, "backend_options: the option has the wrong type"),
        (["num_threads"], "it returned 'num_threads'. Expected Mapping"),
        (SystemExit(1), "SystemExit: 1"),
    ],
)
def test_a_wrong_answer_is_left_out_and_takes_no_other_along(answer: object, reason: str) -> None:
    made = runtime({"on_fallback": "warn"}, answer, {"plan_cache_size": 7})
    assert (made.options.on_fallback, made.options.plan_cache_size) == ("warn", 7)
    assert made.get_device_spec().supported_backends == ("A", "B")
    ((plugin, told),) = problems(made)
    assert plugin == "p1"
    assert told.startswith(reason)


def test_the_applications_own_mistake_is_not_a_plugins() -> None:
    plugin = Plugin({"num_threads": 3})
    with pytest.raises(BackendUnavailableError, match="there is no backend 'C'"):
        runtime(plugin, backends=["C"])


def test_what_a_plugin_does_to_what_it_is_shown_is_not_done_to_the_application() -> None:
    class Scribbles(Plugin):
        def __init__(self, *names: str) -> None:
            super().__init__(None)
            self.names = names

        @hookimpl
        def armpy_configure_runtime(self, options: Mapping[str, object]) -> object:
            target: Any = options  # Any: of any shape
            for name in self.names:
                target = target[name]
            if isinstance(target, list):
                target.append("CpuRef")
            else:
                target["size"] = {"size": 5}
            return None

    given = {"backends": ["A"], "backend_options": {"A": {"size": 2}}}
    plugins = [
        Scribbles(*names)
        for names in ((), ("backends",), ("backend_options",), ("backend_options", "A"))
    ]
    made = runtime(*plugins, {"num_threads": 3}, **given)
    assert given == {"backends": ["A"], "backend_options": {"A": {"size": 2}}}
    assert (made.options.backends, made.options.num_threads) == (["A"], 3)
    assert [name for name, _ in problems(made)] == ["p0", "p2", "p3"]


class ExitingText(str):
    """Text that leaves the process when it is looked for among others."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise SystemExit(3)


class ExitingOptions(dict[str, object]):
    """Options that leave the process when they are joined with others."""

    def keys(self) -> Any:  # Any: never
        raise SystemExit(4)

    def __iter__(self) -> Any:  # or `keys` is not asked
        raise SystemExit(5)


@pytest.mark.parametrize(
    "answer",
    [
        {"backends": [ExitingText("A")]},
        {"backend_options": {"A": ExitingOptions(size=2)}},
    ],
)
def test_an_answer_that_is_code_is_not_run_without_a_guard(answer: object) -> None:
    made = runtime(answer, {"plan_cache_size": 7})
    assert made.options.plan_cache_size == 7
