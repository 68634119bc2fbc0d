"""Packages export what their stubs say, when it is asked for."""

from __future__ import annotations

import ast
import compileall
import importlib
import pickle
import pkgutil
import shutil
import subprocess
import sys
import textwrap
import threading
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from armpy import ops

ROOT = Path(__file__).parents[2]
EXTENSIONS = sorted((ROOT / "extensions").glob("*/armpy_*"))
TREES = [ROOT / "armpy", *(tree for tree in EXTENSIONS if find_spec(tree.name))]
STUBS = [path for tree in TREES for path in sorted(tree.rglob("__init__.pyi"))]
PACKAGES = [
    ".".join(path.parent.relative_to(tree.parent).parts)
    for tree in TREES
    for path in sorted(tree.rglob("__init__.pyi"))
]
ENGINES = {
    "armpy_serving.kserve": "kserve",
    "armpy_serving.protocol_kit": "grpc",
    "armpy_serving.ray": "ray",
    "armpy_serving.triton": "triton_python_backend_utils",
}
"""What a package's modules import that few environments have."""


def _skip(name: str) -> pytest.MarkDecorator:
    """A mark that skips a package whose engine is not installed."""
    engine = ENGINES.get(name, "armpy")
    return pytest.mark.skipif(find_spec(engine) is None, reason=f"{engine} is not installed")


IMPORTED = [pytest.param(name, marks=_skip(name)) for name in PACKAGES]
USE = """
import sys
import armpy, armpy.backend, armpy.graph, armpy.ops, armpy.plugins
assert not {"numpy", "pluggy", "armpy.errors"} & set(sys.modules), "something was imported"
from armpy import Network, TensorInfo, DataType
from armpy.ops import Softmax
net = Network()
net.output("y", net.add(Softmax(), net.input("x", TensorInfo((1, 3), DataType.FLOAT32))))
assert "armpy.model.model" not in sys.modules and "armpy.ops.lstm" not in sys.modules
from armpy import Model
from armpy.ops import *
assert UnidirectionalSequenceLstm.__module__ == "armpy.ops.lstm"
from armpy.frontends.tflite.operators import CONVERTERS
assert CONVERTERS["CONV_2D"] and "NONSENSE" not in CONVERTERS
print(armpy.__file__)
"""


def modules_of(package: str) -> list[str]:
    """Modules and packages that lie in a package; none in one that only exports others' things."""
    folder = STUBS[PACKAGES.index(package)].parent
    return [name for _, name, _ in pkgutil.iter_modules([str(folder)]) if name[0] != "_"]


def stub_of(package: str) -> ast.Module:
    """What type checkers read."""
    return ast.parse(STUBS[PACKAGES.index(package)].read_text("utf-8"))


def exports(package: str) -> dict[str, object]:
    """What a stub exports, as type checkers understand it."""
    exported = {}
    for node in stub_of(package).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = importlib.import_module(node.module)
            names = [alias.name for alias in node.names]
            assert names == ["*"] or names == [alias.asname for alias in node.names]
            names = list(module.__all__) if names == ["*"] else names
            exported.update({name: getattr(module, name) for name in names})
    return exported


def run(code: str, path: Path) -> str:
    """What a process prints that imports armpy from somewhere."""
    code = f"import sys; sys.path.insert(0, {str(path)!r})\n" + code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", IMPORTED)
def test_a_package_exports_what_type_checkers_see(name: str) -> None:
    package = importlib.import_module(name)
    expected = exports(name)
    assert package.__all__ == sorted(expected)
    assert all(getattr(package, key) is value for key, value in expected.items())
    assert dir(package) == sorted(expected)


@pytest.mark.parametrize("name", IMPORTED)
def test_what_can_be_pickled_is_exported_by_the_module_that_defines_it(name: str) -> None:
    for node in stub_of(name).body:
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            for value in (getattr(module, alias.name, None) for alias in node.names):
                # Objects have their class's module, which is another matter.
                is_definition = hasattr(value, "__qualname__")
                if is_definition and str(getattr(value, "__module__", None)).startswith("armpy"):
                    assert value.__module__ == node.module
                    assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("name", IMPORTED)
def test_no_export_is_called_like_a_module_that_importing_would_put_in_its_place(name: str) -> None:
    package = importlib.import_module(name)
    names = {name for _, name, _ in pkgutil.iter_modules(package.__path__)} & set(package.__all__)
    assert all(isinstance(getattr(package, name), ModuleType) for name in names)


@pytest.mark.parametrize("name", [stub for stub in IMPORTED if modules_of(str(stub.values[0]))])
def test_a_packages_modules_can_be_asked_for(name: str) -> None:
    package = importlib.import_module(name)
    module = modules_of(name)[0]
    vars(package).pop(module, None)
    assert getattr(package, module) is sys.modules[f"{name}.{module}"]


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_not_there_is_an_attribute_error(name: str) -> None:
    for missing_name in ("nonsense", "_private", "__wrapped__", "not a name"):
        message = f"module '{name}' has no attribute '{missing_name}'"
        with pytest.raises(AttributeError, match=message):
            getattr(importlib.import_module(name), missing_name)


def test_a_module_that_lacks_a_dependency_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text(
        "from armpy.core.lazy import offer\n__getattr__, __dir__ = offer(__name__)\n"
    )
    (tmp_path / "room" / "__init__.pyi").write_text("from room.broken import Broken as Broken\n")
    (tmp_path / "room" / "broken.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    room = importlib.import_module("room")
    for name in ("Broken", "broken"):
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            getattr(room, name)


def test_every_family_of_operations_is_exported() -> None:
    starred = {
        node.module
        for node in stub_of("armpy.ops").body
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    }
    modules = [
        importlib.import_module(f"armpy.ops.{n}") for _, n, _ in pkgutil.iter_modules(ops.__path__)
    ]
    assert starred == {m.__name__ for m in modules if hasattr(m, "__all__")}


def test_importing_packages_imports_only_what_is_used() -> None:
    run(USE, ROOT)


@pytest.mark.slow
def test_armpy_can_be_used_from_a_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "armpy.zip", "w") as archive:
        for path in (ROOT / "armpy").rglob("*.py*"):
            if path.suffix in {".py", ".pyi"}:
                archive.write(path, path.relative_to(ROOT))
    assert "armpy.zip" in run(USE, tmp_path / "armpy.zip")


@pytest.mark.slow
def test_armpy_can_be_used_without_its_text(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "armpy", tmp_path / "armpy", ignore=shutil.ignore_patterns("*.pyc"))
    assert compileall.compile_dir(tmp_path, quiet=2, legacy=True)
    for path in (tmp_path / "armpy").rglob("*.py"):
        path.unlink()
    code = USE.replace('and "armpy.ops.lstm" not in sys.modules', "")
    assert run(code, tmp_path).endswith("__init__.pyc")


def test_a_name_of_a_module_that_another_thread_imports_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lazy_and_slow"
    package.mkdir()
    begin = "from armpy.core.lazy import offer\n__getattr__, __dir__ = offer(__name__)\n"
    (package / "__init__.py").write_text(begin)
    (package / "__init__.pyi").write_text("from lazy_and_slow.family import *\n")
    slow = """
    __all__ = ["late"]

    import time

    import lazy_and_slow

    lazy_and_slow.begun.set()
    time.sleep(0.2)
    late = 1
    """
    (package / "family.py").write_text(textwrap.dedent(slow))
    monkeypatch.syspath_prepend(str(tmp_path))
    lazy_and_slow = importlib.import_module("lazy_and_slow")
    begun = threading.Event()
    monkeypatch.setattr(lazy_and_slow, "begun", begun, raising=False)
    importing = threading.Thread(target=importlib.import_module, args=["lazy_and_slow.family"])
    importing.start()
    assert begun.wait(10)
    assert lazy_and_slow.late == 1
    importing.join()
