"""Plugins with hooks in real distributions: found, loaded, contained."""

from __future__ import annotations

import builtins
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import armpy
from armpy.errors import InvalidArgumentError, ParserError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import BackendRegistry, CandidateStatus, PluginOptions
from armpy.plugins.hooks import hookimpl
from armpy_testing.backends.fake_distributions import FakeSite, fake_site, third_party
from armpy_testing.models.networks import floats
from tests.support.pins import distribution_pin
from tests.support.toy_format import toy_plugin

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
X = floats(-1, 2, -3, 4)
RELU_X = floats(0, 2, 0, 4)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    with fake_site(tmp_path) as fake:
        yield fake


def run_toy(**options: object) -> np.ndarray:
    with armpy.load(b"TOY1 relu", **options) as model:  # type: ignore[arg-type]
        return model.run({"x": X})["y"]


def test_without_the_plugin_the_format_is_not_understood() -> None:
    with pytest.raises(ParserError, match=r"not a \.tflite file"):
        run_toy()


HOOK = "from armpy.plugins.hooks import FrontEnd, Magic, hookimpl\n@hookimpl\n"
FRONT_END = HOOK + "def armpy_register_front_end(): "

LEFT_OUT = {
    "raises at import": ("raise RuntimeError('no licence')", "failed", "RuntimeError: no licence"),
    "exits at import": ("raise SystemExit(3)", "failed", "SystemExit: 3"),
    "is no Python": ("def (", "failed", "SyntaxError"),
    "lacks a module": ("import acme_onnx", "failed", "No module named 'acme_onnx'"),
    "has no hook": ("x = 1", "rejected", "it implements no hook"),
    "has an unknown hook": (
        HOOK + "def armpy_register_frontend(): pass",
        "rejected",
        r"its armpy_register_frontend is not a hook\. Did you mean 'armpy_register_front_end'\?",
    ),
    "takes what no hook gives": (
        HOOK + "def armpy_register_front_end(model): pass",
        "rejected",
        "its armpy_register_front_end takes 'model'. Expected no arguments",
    ),
    "wraps others": (
        "from armpy.plugins.hooks import hookimpl\n@hookimpl(wrapper=True)\n"
        "def armpy_register_front_end():\n    yield\n    return []",
        "rejected",
        "its armpy_register_front_end is a wrapper",
    ),
}
"""What stands in a plugin that is left out, and as what."""

COMPLAINTS = {
    "raises": (FRONT_END + "raise ValueError('oops')", "ValueError: oops"),
    "exits": (FRONT_END + "raise SystemExit(4)", "SystemExit: 4"),
    "returns nonsense": (FRONT_END + "return 3", r"it returned 3\. Expected FrontEnd"),
    "returns nonsense among others": (FRONT_END + "return [None]", "it returned None"),
    "returns a generator": (FRONT_END + "return (x for x in [])", "it returned <generator"),
    "takes armpy's suffix": (
        FRONT_END + "return FrontEnd('a', 'A', print, suffixes=('.tflite',))",
        r"the suffix '\.tflite' is taken: front-end 'tflite' of armpy",
    ),
    "takes armpy's name": (
        FRONT_END + "return FrontEnd('tflite', 'A', print)",
        "the front-end name 'tflite' is taken: armpy",
    ),
    "takes armpy's magic number": (
        FRONT_END + "return FrontEnd('a', 'A', print, magic=(Magic(b'TFL3', 4),))",
        "the magic number b'TFL3' is taken",
    ),
    "has a field of a wrong type": (
        FRONT_END + "return FrontEnd('a', 'A', None)",
        "its parse cannot be used. Expected something that can be called; got None",
    ),
    "has a suffix without a dot": (
        FRONT_END + "return FrontEnd('a', 'A', print, suffixes=('a',))",
        r"its suffixes cannot be used. Expected ends such as '\.toy', lower case; got 'a'",
    ),
}
"""What stands in a plugin whose hook goes wrong, and what is said of it."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_plugin_that_cannot_be_loaded_stops_no_other(
    site: FakeSite, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    source, status, reason = LEFT_OUT[kind]
    module = site.install_plugin("bad", source)
    site.install_plugin("toy", toy_plugin())
    registry = BackendRegistry.discover()
    with Runtime(RuntimeOptions(registry=registry)) as runtime:
        np.testing.assert_array_equal(run_toy(runtime=runtime), RELU_X)
    bad, good = third_party(registry.plugins.candidates)
    assert (bad.status.value, good.status) == (status, CandidateStatus.REGISTERED)
    assert re.search(reason, bad.reason)
    assert [m for m in caplog.messages if m.startswith("plugin 'bad' from bad-plugin 1.0 is left")]
    assert len(caplog.records) == 1
    assert module not in sys.modules or status == "rejected"


@pytest.mark.parametrize("kind", COMPLAINTS)
def test_a_hook_that_goes_wrong_stops_no_other(
    site: FakeSite, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    source, reason = COMPLAINTS[kind]
    site.install_plugin("bad", source)
    site.install_plugin("toy", toy_plugin())
    registry = BackendRegistry.discover()
    with Runtime(RuntimeOptions(registry=registry)) as runtime:
        for _ in range(2):
            np.testing.assert_array_equal(run_toy(runtime=runtime), RELU_X)
        with armpy.load(DIGITS, runtime=runtime) as model:
            assert model.placement is not None
    ((candidate, hook, failure),) = registry.plugins.problems
    assert (candidate.backend_id, hook) == ("bad", "armpy_register_front_end")
    assert re.search(reason, failure.reason)
    (message,) = caplog.messages  # once, however often it is asked
    assert message.startswith(
        "armpy_register_front_end of plugin 'bad' from bad-plugin 1.0 is left"
    )


def test_a_plugin_that_cannot_be_used_leaves_its_name_to_the_next(site: FakeSite) -> None:
    for module, source in (
        ("one", "raise OSError"),
        ("three", toy_plugin()),
        ("two", toy_plugin()),
    ):
        name = f"{module}_vendor"
        site.install(name, {"toy": name}, source=source, group="armpy.plugins")
    plugins = BackendRegistry.discover().plugins
    plugins.load()
    first, second, third = third_party(plugins.candidates)
    assert (first.status, second.status) == (CandidateStatus.FAILED, CandidateStatus.REGISTERED)
    assert third.status is CandidateStatus.DUPLICATE
    assert third.reason == "another plugin has the name 'toy': three_vendor 1.0"


def test_a_plugin_of_one_hook_must_not_implement_another(site: FakeSite) -> None:
    site.install("toy", {"toy": "toy"}, source=toy_plugin(), group="armpy.commands")
    registry = BackendRegistry.discover()
    registry.plugins.load()
    (plugin,) = third_party(registry.plugins.candidates)
    assert plugin.status is CandidateStatus.REJECTED
    assert "armpy_register_front_end" in plugin.reason
    assert "armpy.plugins" in plugin.reason


def test_no_distribution_takes_the_name_of_armpys_own_plugin(site: FakeSite) -> None:
    site.install_plugin("armpy", toy_plugin())
    (plugin,) = third_party(BackendRegistry.discover().plugins.candidates)
    assert plugin.status is CandidateStatus.DUPLICATE


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are ended by signals")
@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("import os; os.abort()", CandidateStatus.CRASHED),
        ("import time; time.sleep(600)", CandidateStatus.HUNG),
        ("import os; os._exit(0)", CandidateStatus.CRASHED),
    ],
)
def test_a_probe_keeps_a_deadly_plugin_out_of_the_process(
    site: FakeSite,
    source: str,
    status: CandidateStatus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    module = site.install_plugin("bad", source)
    site.install_plugin("toy", toy_plugin())
    # Of the process's own time: how busy the machine is does not count.
    registry = BackendRegistry.discover(PluginOptions(probe=True, probe_timeout_s=6))
    registry.plugins.load()
    bad, good = third_party(registry.plugins.candidates)
    assert (bad.status, good.status) == (status, CandidateStatus.REGISTERED)
    assert module not in sys.modules


def trust(path: Path, text: str) -> PluginOptions:
    """Options with a trust file of this text."""
    file = path / "trust.toml"
    file.write_text(text)
    file.chmod(0o600)
    return PluginOptions(trust_file=file, trust_insecure_paths=True)


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ('allow = ["CpuRef", "toy"]', False),  # names of backends are not those of plugins
        ('plugins = ["other"]', False),
        ("plugins = []", False),
        ("require_pins = true", False),
        (f'[distributions]\ntoy-plugin = "{"0" * 64}"', False),
        ("", True),
        ('plugins = ["toy"]', True),
        ('allow = ["CpuRef"]\nplugins = ["toy"]', True),
    ],
)
def test_the_trust_file_says_which_plugins_are_loaded(
    site: FakeSite, tmp_path: Path, text: str, is_allowed: bool
) -> None:
    module = site.install_plugin("toy", toy_plugin(), record=True)
    registry = BackendRegistry.discover(trust(tmp_path, text))
    registry.plugins.load()
    (plugin,) = third_party(registry.plugins.candidates)
    assert (plugin.status is CandidateStatus.REGISTERED) == is_allowed
    assert (module in sys.modules) == is_allowed


def test_a_pinned_plugin_is_loaded_from_what_was_hashed(site: FakeSite, tmp_path: Path) -> None:
    site.install_plugin("toy", toy_plugin(), record=True)
    pin = distribution_pin("toy-plugin")
    options = trust(tmp_path, f'require_pins = true\n[distributions]\ntoy-plugin = "{pin}"')
    registry = BackendRegistry.discover(options)
    (tmp_path / "toy_plugin.py").write_text("raise RuntimeError('changed')")
    registry.plugins.load()
    (plugin,) = third_party(registry.plugins.candidates)
    assert plugin.status is CandidateStatus.REJECTED  # it has changed before it was imported
    assert "the trust file pins" in plugin.reason


@pytest.mark.parametrize("value", ['plugins = "toy"', "plugins = [1]"])
def test_a_malformed_list_of_plugins_stops_the_runtime(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a list of plugins' names"):
        BackendRegistry.discover(trust(tmp_path, value))


def test_two_threads_that_load_at_once_import_a_plugin_once(site: FakeSite) -> None:
    counter = "import builtins; builtins.toy_imports = getattr(builtins, 'toy_imports', 0) + 1\n"
    site.install_plugin("toy", counter + "import time; time.sleep(0.2)\n" + toy_plugin())
    registry = BackendRegistry.discover()
    start = threading.Barrier(4)

    def load(_: int) -> np.ndarray:
        start.wait()
        with Runtime(RuntimeOptions(registry=registry, backends=["CpuRef"])) as runtime:
            return run_toy(runtime=runtime)

    try:
        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(load, range(4)):
                np.testing.assert_array_equal(result, RELU_X)
        assert vars(builtins)["toy_imports"] == 1
    finally:
        vars(builtins).pop("toy_imports", None)
    assert registry.plugins.problems == ()


def test_a_plugin_that_makes_a_runtime_in_its_hook_is_not_asked_again_there(
    site: FakeSite,
) -> None:
    source = """
from armpy.plugins.hooks import hookimpl

calls = []


@hookimpl
def armpy_configure_runtime(options):
    from armpy.execution import Runtime

    calls.append(1)
    Runtime().close()
"""
    module = site.install_plugin("nested", source)
    Runtime().close()
    assert len(sys.modules[module].calls) == 1


def test_a_plugin_that_loads_a_model_while_it_is_imported_is_no_problem(site: FakeSite) -> None:
    source = f"import armpy\narmpy.load({str(DIGITS)!r}, backends=['CpuRef']).close()\n"
    site.install_plugin("eager", source + toy_plugin("eager", "EAG1"))
    site.install_plugin("toy", toy_plugin())
    np.testing.assert_array_equal(run_toy(), RELU_X)


def test_an_application_registers_a_plugin_by_hand() -> None:
    seen = []

    class Configuring:
        @hookimpl
        def armpy_configure_runtime(self, options: object) -> None:
            seen.append(options)

    registry = BackendRegistry()
    registry.plugins.register("mine", Configuring())
    with pytest.raises(InvalidArgumentError, match="another plugin has the name 'mine': code"):
        registry.plugins.register("mine", Configuring())
    with pytest.raises(InvalidArgumentError, match="it is the class Configuring"):
        registry.plugins.register("other", Configuring)
    with pytest.raises(InvalidArgumentError, match="it implements no hook"):
        registry.plugins.register("other", SimpleNamespace())
    assert [c.backend_id for c in third_party(registry.plugins.candidates)] == ["mine"]
    registry.plugins.ask("armpy_configure_runtime", dict, options={"num_threads": None})
    assert seen == [{"num_threads": None}]


def test_a_hook_of_another_version_is_passed_over_if_it_says_so() -> None:
    class Newer:
        @hookimpl(optionalhook=True)
        def armpy_of_tomorrow(self) -> None:
            raise AssertionError("it is never called")

        @hookimpl(specname="armpy_register_front_end")
        def front_end(self) -> None:
            return None

    registry = BackendRegistry()
    registry.plugins.register("newer", Newer())
    registry.plugins.load()
    assert registry.plugins.problems == ()
