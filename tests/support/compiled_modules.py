"""Backend modules in shared libraries, compiled for a test."""

from __future__ import annotations

import functools
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from armpy.backend import BACKEND_API_VERSION

EXTENSION_SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")
"""What a module made for this very Python ends in."""

SOURCE = r"""
#include <Python.h>

/* armpy's reference under another id, as Arm NN's RefDynamicBackend is. */
static PyObject *backend_factory(PyObject *self, PyObject *unused) {
    PyObject *reference = PyImport_ImportModule("armpy_reference");
    if (!reference) return NULL;
    PyObject *base = PyObject_GetAttrString(reference, "ReferenceBackend");
    Py_DECREF(reference);
    if (!base) return NULL;
    /* A built-in function is bound to no instance, so that it serves as the method, too. */
    PyObject *get_id = PyObject_GetAttrString(self, "get_backend_id");
    if (!get_id) return NULL;
    PyObject *derived = PyObject_CallFunction(
        (PyObject *)&PyType_Type, "s(O){s:O}", "Compiled", base, "get_id", get_id);
    if (!derived) {  /* its metaclass is another one */
        PyErr_Clear();
        derived = PyObject_CallFunction(
            (PyObject *)Py_TYPE(base), "s(O){s:O}", "Compiled", base, "get_id", get_id);
    }
    Py_DECREF(base);
    Py_DECREF(get_id);
    if (!derived) return NULL;
    PyObject *backend = PyObject_CallNoArgs(derived);
    Py_DECREF(derived);
    return backend;
}

static PyObject *get_backend_id(PyObject *self, PyObject *unused) {
    return PyUnicode_FromString(BACKEND_ID);
}

static PyObject *get_version(PyObject *self, PyObject *unused) {
    return Py_BuildValue("(ii)", MAJOR, MINOR);
}

static PyMethodDef functions[] = {
    {"get_backend_id", get_backend_id, METH_NOARGS, NULL},
    {"get_version", get_version, METH_NOARGS, NULL},
    {"backend_factory", backend_factory, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#ifdef SINGLE_PHASE
#define SLOTS NULL
#else
static int import_at_load(PyObject *module) { IMPORT; return 0; }
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, import_at_load},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};
#define SLOTS slots
#endif

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "compiled", NULL, 0, functions, SLOTS, NULL, NULL, NULL,
};

#define JOINED(prefix, name) prefix##name
#define INIT(name) JOINED(PyInit_, name)
PyMODINIT_FUNC INIT(MODULE)(void) {
#ifdef SINGLE_PHASE
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
#else
    return PyModuleDef_Init(&definition);
#endif
}
"""


def compile_library(path: Path, source: str, *, link: Sequence[str] = (), **macros: object) -> Path:
    """Compile a C source to a shared library; skips the test where that cannot be done.

    `path`: to write.
    `source`: of the language C; ``Python.h`` is found.
    `link`: last arguments of the compiler.
    `macros`: defined for the source; None for one without a value.
    """
    compiler = require_compiler()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f"{path.name}.c")
    file.write_text(source)
    definitions = [f"-D{name}" + ("" if v is None else f"={v}") for name, v in macros.items()]
    include = f"-I{sysconfig.get_paths()['include']}"
    flags = ["-shared", "-fPIC", "-O1", include, *definitions]
    subprocess.run([*compiler, *flags, str(file), "-o", str(path), *link], check=True)
    file.unlink()
    return path


def compile_backend(
    directory: Path,
    name: str,
    backend_id: str = "Compiled",
    *,
    ending: str = ".so",
    version: str = BACKEND_API_VERSION,
    **macros: Any,  # Any: passed on
) -> Path:
    """Compile a backend module that is armpy's reference under another id.

    `name`: of the module.
    `ending`: of the file's name.
    `version`: of the contract.
    `macros`: ``SINGLE_PHASE=None`` for the old way of initialisation.
    """
    major, minor = version.split(".")
    arguments: dict[str, Any] = {
        "IMPORT": "",
        "MODULE": name,
        "BACKEND_ID": f'"{backend_id}"',
    } | macros
    path = directory / f"{name}{ending}"
    return compile_library(path, SOURCE, MAJOR=major, MINOR=minor, **arguments)


def require_compiler() -> tuple[str, ...]:
    """The command of a C compiler; skips the test where there is none that finds ``Python.h``."""
    compiler = _compiler()
    if not compiler:
        pytest.skip("there is no C compiler, or no Python.h")
    return compiler


@functools.cache
def _compiler() -> tuple[str, ...]:
    """The command of a C compiler that finds ``Python.h``; empty without one."""
    command = shlex.split(sysconfig.get_config_var("CC") or "cc")
    compiler = shutil.which(command[0])
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return (compiler, *command[1:]) if compiler and header.is_file() else ()
