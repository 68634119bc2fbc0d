"""Runs subjects in one source tree and writes down what comes out, to be compared as text.

Runs in a process that `trees.py` starts with the tree first on the path.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import pickle
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .subjects import BuiltNetwork, ModelFile, NnapiModel, Subject

Array = npt.NDArray[Any]  # Any: of every type
Answer = dict[str, Any]  # Any: goes to JSON

Run = tuple[list[Array], Any, Callable[[], Any]]  # Any: of the tree
"""Outputs of a call, its placement, and what gives the graph."""

FOREIGN_CODE = 3
"""Exit status where a module is not the tree's."""

LOOSE = "loose"
"""Name of the array that says which outputs rounding may move, among kept ones."""

_PACKAGES = ("armpy", "armpy_numba_acc", "armpy_reference")
_LOOP_TIMEOUT_S = 60.0


class Court:
    """Runs subjects on one backend, with CpuRef for what that does not take.

    Parameters
    ----------
    backend : str
    num_threads : int
    folder : Path, optional
        Where the outputs themselves are kept.
    root : str
        What goes ahead of the paths of models.
    is_relaxed : bool
        Whether NumbaAcc may round products of float32 to bfloat16.
    """

    def __init__(
        self,
        backend: str,
        num_threads: int,
        folder: Path | None,
        root: str = "",
        *,
        is_relaxed: bool = False,
    ) -> None:
        import armpy  # noqa: PLC0415 - the tree's own

        backends = list(dict.fromkeys([backend, "CpuRef"]))
        options = armpy.RuntimeOptions(
            backends=backends,
            num_threads=num_threads,
            backend_options={"NumbaAcc": {"fast_math_enabled": True}} if is_relaxed else {},
        )
        self._runtime = armpy.Runtime(replace(options, loop_timeout_s=_LOOP_TIMEOUT_S))
        self._folder = folder
        self._root = root
        self._options = options
        self._backends = backends

    def answer(self, subject: Subject) -> Answer:
        """Outputs of every call and placement; an error instead, where one comes out."""
        flat: list[Array] = []
        answer: Answer = {"name": subject.name, "outputs": [], "placement": [], "error": ""}
        loose: list[bool] = []
        run = {ModelFile: self._model, BuiltNetwork: self._network, NnapiModel: self._nnapi}
        try:
            for outputs, placement, graph in run[type(subject)](subject):  # type: ignore[operator]
                flat += outputs
                if self._folder is not None:
                    loose += _after_floats(graph())
                answer["outputs"].append([described(array) for array in outputs])
                answer["placement"] = placed(placement)
        except Exception as error:  # noqa: BLE001 - whatever comes out is the answer
            answer["error"] = f"{type(error).__name__}: {error}"
        if self._folder is not None:
            arrays = {f"output {number}": _plain(array) for number, array in enumerate(flat)}
            arrays[LOOSE] = np.array(loose, bool)
            np.savez(self._folder / kept_name(subject.name), **arrays)  # type: ignore[arg-type]
        return answer

    def _model(self, subject: ModelFile) -> Iterator[Run]:
        """A model file, call by call; variables keep their contents."""
        import armpy  # noqa: PLC0415

        with armpy.load(self._root + subject.path, runtime=self._runtime) as model:
            for arrays in subject.calls:
                shaped = [
                    np.reshape(array, ()) if spec.shape == () else array
                    for spec, array in zip(model.inputs, arrays, strict=True)
                ]
                got = model(*shaped)
                outputs = list(got) if isinstance(got, tuple) else [got]
                yield outputs, model.placement, lambda: model.graph

    def _network(self, subject: BuiltNetwork) -> Iterator[Run]:
        """A network of the conformance kit."""
        import armpy  # noqa: PLC0415

        with armpy.Model(subject.graph, self._runtime) as model:
            for feeds in subject.calls:
                outputs = list(model.run(feeds).values())
                yield outputs, model.placement, lambda: subject.graph

    @cached_property
    def _manager(self) -> Any:  # Any: of the tree
        """The devices of NNAPI, for models of it alone: the core stands without the extension."""
        from armpy_nnapi import DeviceManager  # noqa: PLC0415

        return DeviceManager(self._options)

    def _nnapi(self, subject: NnapiModel) -> Iterator[Run]:
        """A model of NNAPI."""
        from armpy_nnapi import Compilation, Model  # noqa: PLC0415
        from armpy_nnapi.lowering.lower_model import lower_model  # noqa: PLC0415

        manager = self._manager
        model = Model.from_description(subject.description, manager)
        devices = [manager.get_device_of_backend(name) for name in self._backends]
        with Compilation.create_for_devices(model, devices) as compilation:
            compilation.finish()
            outputs = compilation(*subject.inputs)
            omitted = [i for i, array in enumerate(subject.inputs) if array is None]
            lowered = partial(lower_model, subject.description, omitted)
            yield list(outputs), compilation.network(omitted).placement, lowered


def _after_floats(graph: Any) -> list[bool]:  # Any: of the tree
    """Which outputs follow from floating point, so that rounding may move them."""
    try:
        rules = importlib.import_module("armpy_conformance.comparison.exact_layers")
    except ImportError:  # a tree from before these rules were moved
        rules = importlib.import_module("armpy_conformance.differences.diff")
    inexact = rules.after_floats(graph.layers)
    return [value in inexact for value in graph.outputs]


def _plain(array: Array) -> Array:
    """The same elements in a type that files of NumPy have."""
    if array.dtype.kind == "O":
        return array.astype(str)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)


def described(array: Array) -> str:
    """Type, shape and a digest of the bytes: NaNs differ if their payloads do."""
    array = np.asarray(array)
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"{array.dtype} {array.shape} {digest}"


def placed(placement: Any) -> list[str]:  # Any: of the tree
    """Which backend ran each layer, with the model's layers that it was made of."""
    if placement is None:
        return []
    return [
        f"{item.inside}/{item.layer} {item.operation} [{', '.join(item.origins)}] on {item.backend}"
        for item in placement.layers
    ]


def kept_name(subject: str) -> str:
    """Name of the file with a subject's outputs."""
    return hashlib.sha256(subject.encode()).hexdigest()[:24] + ".npz"


class SubjectReader(pickle.Unpickler):
    """Reads subjects that another tree has made, in which classes may stand in other modules."""

    def find_class(self, module: str, name: str) -> Any:  # Any: whatever is called so
        """The class of a name, wherever this tree defines it."""
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return super().find_class(_module_with(name, module), name)


@cache
def _module_with(name: str, before: str) -> str:
    """The module of this tree that defines a class, which stood elsewhere before."""
    package = before.partition(".")[0]
    (folder,) = importlib.import_module(package).__path__
    head = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
    modules = [
        ".".join((package, *path.relative_to(folder).with_suffix("").parts))
        for path in sorted(Path(folder).rglob("*.py"))
        if head.search(path.read_text("utf-8"))
    ]
    # Operations and NNAPI's descriptions have some names in common.
    alike = Counter(
        {module: len({*module.split(".")} & {*before.split(".")}) for module in modules}
    )
    most = [module for module, number in alike.items() if number == max(alike.values())]
    if len(most) != 1:
        raise ImportError(f"{before}.{name} is defined in {modules or 'no module'} of this tree")
    return most[0]


def read_subjects(path: Path) -> Iterator[Subject]:
    """What `comparison.subjects` wrote."""
    with path.open("rb") as file:
        while True:
            try:
                yield SubjectReader(file).load()
            except EOFError:
                return


def foreign_modules(tree: Path, files: Mapping[str, str]) -> list[str]:
    """Modules, by name with their files, that are not a tree's own."""
    return [
        f"{name} is {file}"
        for name, file in files.items()
        if not Path(file).resolve().is_relative_to(tree.resolve())
    ]


def loaded_files(backends: Iterable[object]) -> dict[str, str]:
    """Files of armpy's packages and of the modules that loaded backends are defined in."""
    names = {*_PACKAGES, *(type(backend).__module__ for backend in backends)}
    names |= {name for name in sys.modules if name.partition(".")[0] in _PACKAGES}
    return {
        name: str(sys.modules[name].__file__)
        for name in sorted(names)
        if name in sys.modules and getattr(sys.modules[name], "__file__", None)
    }


def main() -> None:
    """Answer what standard input asks for, one line of JSON after the other."""
    job = json.loads(sys.stdin.read())
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # placements report fallbacks
    tree, folder = Path(job["tree"]), job["folder"] and Path(job["folder"])
    court = Court(
        job["backend"],
        job["num_threads"],
        folder or None,
        job["root"],
        is_relaxed=job["relaxed"],
    )
    check_modules(tree, job["backend"])
    wanted = frozenset(job["numbers"])
    with Path(job["answers"]).open("a", encoding="utf-8") as file:
        for number, subject in enumerate(read_subjects(Path(job["subjects"]))):
            if number in wanted:
                file.write(json.dumps(court.answer(subject) | {"number": number}) + "\n")
                file.flush()
    check_modules(tree, job["backend"])


def check_modules(tree: Path, backend: str) -> None:
    """End the process if any module is not the tree's."""
    from armpy.plugins import BackendRegistry  # noqa: PLC0415

    instance = BackendRegistry.discover().get(backend)
    foreign = foreign_modules(tree, loaded_files([instance]))
    if foreign:
        print(f"not of {tree}: {'; '.join(foreign)}", file=sys.stderr)
        sys.exit(FOREIGN_CODE)
