"""Code that the backends of one vendor in one directory share."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from armpy.errors import BackendUnavailableError
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    ProbeOutcome,
    probe_candidates,
)
from armpy.plugins.discovery.module_files import code_digest
from armpy.plugins.probe import fingerprint
from armpy_testing.backends.dynamic_modules import (
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.compiled_modules import compile_backend, compile_library
from tests.support.pins import file_pin

IN_A_FILE = "from .Acme_common import WHERE, register\nregister(get_backend_id())\n"
COMMON = """
WHERE = {where!r}
USERS = []
register = USERS.append
"""


@pytest.fixture(autouse=True)
def removed_modules() -> Iterator[None]:
    yield
    forget_private_modules()
    assert private_modules() == set()
    assert "Acme_common" not in sys.modules


def vendor(folder: Path, *ids: str, where: str = "here") -> Path:
    """A directory with backends of one vendor and the code that they share."""
    folder.mkdir(exist_ok=True)
    write_module(folder, "Acme_common", COMMON.format(where=where), part="NAME = 'part'")
    for backend_id in ids:
        write_module(
            folder, f"Acme_{backend_id}_backend", module_source(backend_id, extra=IN_A_FILE)
        )
    return folder


def discover(*folders: Path, **options: object) -> BackendRegistry:
    plugin_options = PluginOptions([str(path) for path in folders], **options)  # type: ignore[arg-type]
    return BackendRegistry.discover(plugin_options)


def pinned(folder: Path, *modules: str) -> BackendRegistry:
    """A registry over a folder, some of whose modules are pinned as they are now."""
    pins = {folder / name: file_pin(folder / name) for name in modules}
    trust = folder.parent / "trust.toml"
    lines = [f"'{path}' = '{digest}'" for path, digest in pins.items()]
    trust.write_text("\n".join(["[files]", *lines]))
    return discover(folder, trust_file=trust)


def module_of(registry: BackendRegistry, backend_id: str) -> ModuleType:
    """The module that a backend comes from."""
    return sys.modules[type(registry.get(backend_id)).__module__]


def commons() -> list[ModuleType]:
    """The modules with common code that there are, in order."""
    return [m for name, m in sys.modules.items() if name.endswith(".Acme_common")]


def candidates(registry: BackendRegistry) -> dict[str, Candidate]:
    registry.available()
    return {c.name: c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY}


def test_backends_of_one_directory_share_one_module(tmp_path: Path) -> None:
    registry = discover(vendor(tmp_path / "plugins", "Npu", "Dsp"))
    registry.available()
    (common,) = commons()
    assert sorted(common.USERS) == ["Dsp", "Npu"]


def test_two_directories_do_not_mix(tmp_path: Path) -> None:
    a = vendor(tmp_path / "a", "Npu", where="a")
    b = vendor(tmp_path / "b", "Dsp", where="b")
    registry = discover(a, b)
    assert module_of(registry, "Npu").WHERE == "a"
    assert module_of(registry, "Dsp").WHERE == "b"


def test_other_vendors_and_the_application_do_not_see_it(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu")
    other = module_source("Other", extra="from .Acme_common import WHERE")
    write_module(folder, "Other_Npu_backend", other)
    write_module(folder, "Third_Npu_backend", module_source("Third", extra="import Acme_common"))
    registry = discover(folder)
    by_name = candidates(registry)
    assert by_name["Acme_Npu_backend"].status is CandidateStatus.REGISTERED
    for name in ("Other_Npu_backend", "Third_Npu_backend"):
        assert by_name[name].status is CandidateStatus.FAILED
        assert by_name[name].reason == "ModuleNotFoundError: No module named 'Acme_common'"
    with pytest.raises(ModuleNotFoundError):
        __import__("Acme_common")


def test_what_goes_wrong_in_it_is_every_backends_own_failure(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu", "Dsp")
    (folder / "Acme_common" / "__init__.py").write_text("raise OSError('no device')")
    write_module(folder, "Good_Npu_backend", module_source("Good"))
    by_name = candidates(discover(folder))
    reasons = {name: candidate.reason for name, candidate in by_name.items()}
    assert reasons == {
        "Acme_Dsp_backend": "OSError: no device",
        "Acme_Npu_backend": "OSError: no device",
        "Good_Npu_backend": "",
    }


@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_backend_that_fails_later_takes_nothing_from_those_that_share_it(
    tmp_path: Path, is_pinned: bool
) -> None:
    folder = vendor(tmp_path / "plugins")
    failing = "def backend_factory(): raise OSError('no device')\n"
    write_module(folder, "Acme_A_backend", module_source("A", extra=IN_A_FILE + failing))
    lazy = "def late():\n    from .Acme_common.part import NAME\n    return NAME\n"
    write_module(folder, "Acme_B_backend", module_source("B", extra=IN_A_FILE + lazy))
    registry = discover(folder)
    if is_pinned:
        registry = pinned(folder, "Acme_A_backend.py", "Acme_B_backend.py", "Acme_common")
    by_name = candidates(registry)
    assert by_name["Acme_A_backend"].reason == "OSError: no device"
    module = module_of(registry, "B")
    if is_pinned:
        (folder / "Acme_common" / "part.py").write_text("NAME = 'swapped'")
    assert module.late() == "part"


def test_pinned_libraries_of_the_same_bytes_are_copied_once(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu")
    path = compile_backend(folder, "Acme_Dsp_backend", "Dsp")

    def place() -> Path:
        registry = pinned(folder, "Acme_Npu_backend.py", path.name, "Acme_common")
        registry.available()
        (name,) = (name for name in sys.modules if name.endswith(".Acme_Dsp_backend"))
        copied = Path(str(sys.modules[name].__file__))
        registry.close()
        return copied

    first, second = place(), place()
    assert first == second
    assert first.read_bytes() == path.read_bytes()
    (folder / "Acme_common" / "part.py").write_text("NAME = 'other'")
    third = place()
    assert third != first  # it lies beside other code
    assert third.read_bytes() == path.read_bytes()


def test_nothing_is_copied_where_no_library_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    folder = vendor(tmp_path / "plugins", "Npu")
    pinned(folder, "Acme_Npu_backend.py", "Acme_common").get("Npu")
    assert list(temporary.iterdir()) == []


def test_pinned_code_is_what_was_hashed_now_and_later(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu")
    registry = pinned(folder, "Acme_Npu_backend.py", "Acme_common")
    module = module_of(registry, "Npu")
    (folder / "Acme_common" / "part.py").write_text("NAME = 'swapped'")
    (folder / "Acme_common" / "late.py").write_text("")
    exec("from .Acme_common.part import NAME", vars(module))
    assert module.NAME == "part"
    with pytest.raises(ModuleNotFoundError, match="is among the files that its pin covers"):
        exec("from .Acme_common.late import x", vars(module))


def test_a_backend_is_refused_whose_common_code_is_not_what_is_pinned(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu", "Dsp")
    registry = pinned(folder, "Acme_Npu_backend.py", "Acme_common")
    (folder / "Acme_common" / "part.py").write_text("NAME = 'swapped'")
    for backend_id in ("Npu", "Dsp"):  # one with a pin of its own, one without
        with pytest.raises(BackendUnavailableError, match="Acme_common, the common code beside it"):
            registry.get(backend_id)
    assert private_modules() == set()


def test_a_pinned_backend_needs_pinned_common_code(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu", "Dsp")
    by_name = candidates(pinned(folder, "Acme_Npu_backend.py"))
    assert "has a pin for it, but none for" in by_name["Acme_Npu_backend"].reason
    assert by_name["Acme_Dsp_backend"].status is CandidateStatus.REGISTERED


def test_pinned_backends_share_nothing_with_those_that_are_not(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu", "Dsp")
    registry = pinned(folder, "Acme_Npu_backend.py", "Acme_common")
    registry.available()
    assert sorted(common.USERS for common in commons()) == [["Dsp"], ["Npu"]]


NEEDS_A_LIBRARY = """
#include <Python.h>
int acme_answer(void);
static PyObject *id(PyObject *self, PyObject *unused) { return PyUnicode_FromString("Npu"); }
static PyObject *version(PyObject *self, PyObject *unused) { return Py_BuildValue("(ii)", 2, 0); }
static PyObject *make(PyObject *self, PyObject *unused) { return PyLong_FromLong(acme_answer()); }
static PyMethodDef functions[] = {
    {"get_backend_id", id, METH_NOARGS, NULL},
    {"get_version", version, METH_NOARGS, NULL},
    {"backend_factory", make, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "x", NULL, -1, functions};
PyMODINIT_FUNC PyInit_Acme_Npu_backend(void) {
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_pinned", [False, True])
def test_libraries_find_those_of_the_common_code_beside_them(
    tmp_path: Path, is_pinned: bool
) -> None:
    folder = tmp_path / "plugins"
    common = write_module(folder, "Acme_common", "", part="")
    name = f"libacme{is_pinned:d}.so"  # a process has one library of each name
    compile_library(common / name, "int acme_answer(void) { return 42; }")
    link = [f"-L{common}", f"-l:{name}", "-Wl,-rpath,$ORIGIN/Acme_common"]
    compile_library(folder / "Acme_Npu_backend.so", NEEDS_A_LIBRARY, link=link)
    registry = discover(folder)
    if is_pinned:
        registry = pinned(folder, "Acme_Npu_backend.so", "Acme_common")
    # The factory makes a number, which is not a backend: the reason shows that it was called.
    reason = candidates(registry)["Acme_Npu_backend"].reason
    assert reason == "its factory made int, not an IBackendInternal"
    maps = Path("/proc/self/maps")
    if maps.exists():
        lines = [line for line in maps.read_text().splitlines() if name in line]
        assert lines
        assert any(str(folder) in line for line in lines) is not is_pinned


@NEEDS_OWNERS
def test_others_must_not_be_able_to_write_to_it(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu")
    (folder / "Acme_common" / "part.py").chmod(0o666)
    reason = candidates(discover(folder))["Acme_Npu_backend"].reason
    assert reason.startswith("of the common code beside it, its file")
    assert "can be written by everybody" in reason


@pytest.mark.slow
def test_a_probe_finds_it_and_forgets_its_result_when_that_changes(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "plugins", "Npu")
    (candidate,) = candidates(discover(folder)).values()
    (result,) = probe_candidates([candidate], timeout_s=60)
    assert (result.outcome, result.reason) == (ProbeOutcome.OK, "")
    before = fingerprint(candidate, {})
    (folder / "Acme_common" / "part.py").write_text("NAME = 'other'")
    assert fingerprint(candidate, {}) != before


@pytest.mark.parametrize(
    ("line", "has_hint"),
    [
        ("import Acme_common", True),
        ("from Acme_common.part import NAME", True),
        ("from .Other_common import NAME", False),
    ],
)
def test_an_import_of_common_code_that_is_not_relative_says_so(
    line: str, has_hint: bool, tmp_path: Path
) -> None:
    vendor(tmp_path, "Npu")
    write_module(tmp_path, "Acme_Npu_backend", module_source("Npu", extra=line))
    registry = discover(tmp_path)
    with pytest.raises(BackendUnavailableError):
        registry.get("Npu")
    (candidate,) = [c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY]
    assert candidate.reason.startswith("ModuleNotFoundError: No module named")
    assert candidate.reason.endswith("from .Acme_common import NAME") is has_hint


def test_common_code_is_part_of_the_digest_that_keys_compiled_parts(tmp_path: Path) -> None:
    digests = []
    for name, where in (("one", "here"), ("other", "elsewhere")):
        folder = vendor(tmp_path / name, "Npu", where=where)
        for file in folder.rglob("*"):
            os.utime(file, (1, 1))
        registry = discover(folder)
        digests.append(code_digest(type(registry.get("Npu"))))
    assert digests[0]
    assert digests[0] != digests[1]


MADE = """
class Text(Backend):
    text = "{text}"

Made = type("Made", (Text,), {{}})

def backend_factory():
    return Made()
"""


def test_the_digest_of_a_class_made_by_a_call_is_of_the_package_that_makes_it(
    tmp_path: Path,
) -> None:
    digests = []
    for text in ("short", "longer"):
        source = module_source("Npu", extra=MADE.format(text=text))
        write_module(tmp_path / text, "acme_npu_backend", source)
        registry = discover(tmp_path / text)
        kind = type(registry.get("Npu"))
        assert (kind.__name__, kind.__module__) == ("Made", "abc")
        digests.append(code_digest(kind))
    assert digests[0]
    assert digests[0] != digests[1]
