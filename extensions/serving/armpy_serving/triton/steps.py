"""Steps of an ensemble, which Triton's Python backend calls: in front of a model, and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from armpy_serving.contents import Array
from armpy_serving.status import status_of, text_of
from armpy_serving.triton.ensemble import CLASSES, SCORES
from armpy_serving.triton.step_settings import StepSettings, best_of
from armpy_serving.triton.version_file import VersionFile, version_folder

Step = Callable[[dict[str, Array]], dict[str, Array]]


class TritonPreprocess:
    """Quantises real numbers or pixels to the types of a model's inputs."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the step's settings from the model version's folder."""
        self._settings = StepSettings.of(VersionFile.of(version_folder(args)).settings)

    def execute(self, requests: Sequence[Any]) -> list[Any]:  # Any: of the server's module
        """Answer requests, each by its outputs or its error."""
        return [_answer(request, self._prepare) for request in requests]

    def _prepare(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """All inputs, as the model stores them."""
        settings = self._settings
        return {s.name: settings.prepared(s, arrays[s.name]) for s in settings.tensors}


class TritonPostprocess:
    """Converts a model's outputs to real numbers, or selects the best classes."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the step's settings from the model version's folder."""
        self._settings = StepSettings.of(VersionFile.of(version_folder(args)).settings)

    def execute(self, requests: Sequence[Any]) -> list[Any]:  # Any: of the server's module
        """Answer requests, each by its outputs or its error."""
        return [_answer(request, self._read) for request in requests]

    def _read(self, stored: dict[str, Array]) -> dict[str, Array]:
        """Dequantised outputs, or the best classes of the first output if they are asked for."""
        settings = self._settings
        real = {
            s.name: stored[s.name] if s.quantization is None else s.dequantize(stored[s.name])
            for s in settings.tensors
        }
        if not settings.top:
            return real
        scores, classes = best_of(real[settings.tensors[0].name], settings.top)
        return {SCORES: scores, CLASSES: classes}


def _answer(request: Any, step: Step) -> Any:  # Any: of the server's module
    try:
        outputs = step({tensor.name(): tensor.as_numpy() for tensor in request.inputs()})
    except Exception as error:  # noqa: BLE001 - the answer of this request alone
        code = getattr(pb_utils.TritonError, status_of(error).triton)
        triton_error = pb_utils.TritonError(text_of(error), code)
        return pb_utils.InferenceResponse(output_tensors=[], error=triton_error)
    return pb_utils.InferenceResponse(
        output_tensors=[pb_utils.Tensor(name, array) for name, array in outputs.items()]
    )
