"""Repository of models that are loaded, replaced and unloaded while others answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from kserve import ModelRepository

from armpy.errors import (
    InvalidArgumentError,
    ModelNotFoundError,
    UnimplementedError,
    did_you_mean,
    suggest_path,
)
from armpy_serving.health import HealthRules
from armpy_serving.kserve.model import ArmpyModel
from armpy_serving.metrics import ModelMetrics

SUFFIXES = (".tflite", ".onnx", ".armpy")
"""Endings of the files that are looked for in a folder of several."""


class ArmpyModelRepository(ModelRepository):
    """Models of a folder, by name.

    Parameters
    ----------
    models_dir : path
        A model file; or a folder with one file, or with several that end in one of `SUFFIXES`.
    model_name : str
        Name of the model of a single file. Several are called as the files are, without endings.
    options : mapping of str to object, optional
        Options for `armpy.load`.
    max_waiting : int
        Limit as for `ArmpyModel`.
    rules : HealthRules, optional
        Rules by which models are ready.

    Notes
    -----
    KServe calls `load` and `unload` for ``/v2/repository/models/NAME/load`` and gRPC's calls. A
    model that is loaded again is replaced at once: requests go to the old one until the new one can
    run, and the old one answers its running requests. Whether there is a single model, or several
    that are named after their files, depends on the folder when this is made; files that come and
    go later change no name.
    """

    def __init__(
        self,
        models_dir: str | Path,
        model_name: str = "model",
        options: Mapping[str, object] | None = None,
        *,
        max_waiting: int = 1024,
        rules: HealthRules | None = None,
    ) -> None:
        super().__init__(str(models_dir))
        self.is_open = True
        self._model_name = model_name
        files = _model_files(Path(models_dir))
        self._single = files[0] if len(files) == 1 else None
        self._options = dict(options or {})
        self._max_waiting = max_waiting
        self._rules = rules or HealthRules()
        self._loading = asyncio.Lock()
        self._metrics: dict[str, ModelMetrics] = {}  # of each name, however often it is loaded

    def __getstate__(self) -> dict[str, object]:
        """Return a worker process's copy: metrics count what their own process does."""
        return self.__dict__ | {"_metrics": {}}

    def load_models(self) -> list[ArmpyModel]:
        """Load all models of the folder.

        Raises
        ------
        ArmpyError
            If the folder does not exist, it has none, or one cannot be loaded.
        """
        files = self._found()
        if not files and not Path(self.models_dir).exists():
            raise InvalidArgumentError(
                "no such file or folder",
                where=f"--model_dir {self.models_dir}",
                expected="a model file, or a folder of models",
                fix=suggest_path(self.models_dir),
            )
        if not files:
            raise InvalidArgumentError(
                "there is no model",
                where=f"folder '{self.models_dir}'",
                expected=f"one file, or several that end in {', '.join(SUFFIXES)}",
                actual=_names(sorted(Path(self.models_dir).glob("*"))),
                fix="Pass the model file, or the folder that models are in, as --model_dir",
            )
        for name in files:
            self.update(self._loaded(name))
        return list(self.models.values())

    async def load(self, name: str) -> bool:
        """Load a model's file, on a thread, and put it in the place of the served one.

        Raises
        ------
        ModelNotFoundError
            If there is no file of this name.
        ArmpyError
            If it cannot be loaded; the model served so far goes on.
        """
        async with self._loading:  # one at a time, so that the file's last state is what stays
            loop = asyncio.get_running_loop()
            model = await loop.run_in_executor(None, self._loaded, name)
            replaced = self.models.get(name)
            self.update(model)
            if replaced is not None:
                replaced.successor = model
                replaced.stop()
        return True

    def unload(self, name: str) -> None:
        """Stop a model, which answers the requests that it has begun.

        Raises
        ------
        ModelNotFoundError
            If it is not loaded.
        """
        self.served_model(name)
        super().unload(name)

    def check_open(self) -> None:
        """Check that clients may load and unload models.

        Raises
        ------
        UnimplementedError
            If they may not.
        """
        if not self.is_open:
            raise UnimplementedError(
                "clients may not load or unload models of this server",
                fix="Start it with --repository_api true, behind a proxy that checks who may do so",
            )

    def served_model(self, name: str) -> ArmpyModel:
        """The model of a name.

        Raises
        ------
        ModelNotFoundError
            If there is none.
        """
        model: ArmpyModel | None = self.models.get(name)
        if model is None:
            raise ModelNotFoundError(
                "unknown model",
                where="request",
                expected=", ".join(self.models) or "none, as all are unloaded",
                actual=repr(name),
                fix=did_you_mean(name, self.models),
            )
        return model

    def is_foreign(self, name: str) -> bool:
        """Return whether a name's model is not armpy's, so that KServe's own functions serve it."""
        model = self.models.get(name)
        return model is not None and not isinstance(model, ArmpyModel)

    def index(self) -> list[dict[str, str]]:
        """Names and states of all models that are served or could be loaded."""
        names = {*self._found(), *self.models}
        return [
            {"name": name, "state": "READY", "reason": ""}
            if name in self.models and self.models[name].ready
            else {"name": name, "state": "UNAVAILABLE", "reason": "unloaded"}
            for name in sorted(names)
        ]

    def _loaded(self, name: str) -> ArmpyModel:
        path = self._found().get(name)
        if path is None:
            raise ModelNotFoundError("the folder has no such model", where=repr(name))
        model = ArmpyModel(
            name, path, self._options, max_waiting=self._max_waiting, rules=self._rules
        )
        model.metrics = self._metrics.setdefault(name, model.metrics)
        model.load()
        return model

    def _found(self) -> dict[str, Path]:
        """Model files by the names that they are served by."""
        files = _model_files(Path(self.models_dir))
        if self._single is not None:
            # The file that was there first, or else the one that has come in its place.
            stays = [self._single] if self._single.is_file() else files
            return {self._model_name: stays[0]} if len(stays) == 1 else {}
        by_stem = {path.stem: path for path in files}
        if len(by_stem) == len(files):
            return by_stem
        raise InvalidArgumentError(
            "two models have one name", where=f"folder '{self.models_dir}'", actual=_names(files)
        )


def _model_files(source: Path) -> list[Path]:
    """A model file itself; of a folder those that end in one of `SUFFIXES`, or its only file."""
    if source.is_file():
        return [source]
    files = [path for path in sorted(source.glob("*")) if path.is_file()]
    return [path for path in files if path.suffix in SUFFIXES] or files[: len(files) == 1]


def _names(files: Iterable[Path]) -> str:
    return ", ".join(path.name for path in islice(files, 10)) or "nothing"
