"""Ensembles: a model between a step that prepares what clients send and one that reads scores.

Clients of a quantised model send real numbers, or pixels, and get real numbers, or the best
classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_serving.triton.config import LABELS_FILE, TritonOptions, model_config, tensor_fields
from armpy_serving.triton.step_settings import StepSettings, is_real

SCORES, CLASSES = "scores", "classes"
"""Outputs of the best classes."""


@dataclass(frozen=True, slots=True)
class EnsembleOptions:
    """Steps around a model."""

    # Of pixels, one for all channels or one for each: inputs of ``UINT8`` become ``(pixel - mean) /
    # std``. Empty if real numbers are sent.
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    top: int = 0
    """Number of the best classes of the first output that are answered, in place of all scores; 0
    for the outputs themselves.
    """

    def names(self, name: str) -> list[str]:
        """Names of the ensemble, the model, and the steps in front of it and after it."""
        return [name, f"{name}_model", f"{name}_preprocess", f"{name}_postprocess"]


@dataclass(frozen=True, slots=True)
class EnsemblePart:
    """Part of an ensemble, as it is written."""

    options: TritonOptions
    config: Mapping[str, object]
    class_name: str = ""  # of the class that the server calls; empty for the ensemble itself
    settings: Mapping[str, object] = field(default_factory=dict)  # for its instances


def ensemble_parts(
    ensemble: EnsembleOptions,
    options: TritonOptions,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
) -> list[EnsemblePart]:
    """All of an ensemble but the model, itself the last.

    Raises
    ------
    InvalidArgumentError
        If there are no classes of which some could be the best.
    """
    _, _, before, after = ensemble.names(options.name)
    plain = TritonOptions("", options.version, options.instances, options.max_batch)
    front = _front(ensemble, replace(plain, name=before), inputs)
    back = _back(ensemble, replace(plain, name=after, labels=options.labels), outputs)
    whole = {
        "name": options.name,
        "platform": "ensemble",
        "max_batch_size": options.max_batch,
        "input": front.config["input"],
        "output": back.config["output"],
        "ensemble_scheduling": {"step": _steps(ensemble, options.name, inputs, outputs)},
    }
    return [front, back, EnsemblePart(options, whole)]


def _front(
    ensemble: EnsembleOptions, options: TritonOptions, inputs: Sequence[TensorSpec]
) -> EnsemblePart:
    """The step in front of the model."""
    settings = StepSettings(tuple(inputs), ensemble.mean, ensemble.std)
    config = model_config(options, inputs, inputs)
    sent = "UINT8" if ensemble.mean else "FP32"
    config["input"] = _outer(inputs, "input", options, sent)
    return EnsemblePart(options, config, "TritonPreprocess", settings.document())


def _back(
    ensemble: EnsembleOptions, options: TritonOptions, outputs: Sequence[TensorSpec]
) -> EnsemblePart:
    """The step after the model."""
    settings = StepSettings(tuple(outputs), top=ensemble.top)
    config = model_config(options, outputs, outputs)
    if ensemble.top:
        _check_classes(ensemble, outputs[0], options)
        info = TensorInfo((None, ensemble.top), DataType.FLOAT32)
        classes = TensorInfo((None, ensemble.top), DataType.SIGNED32)
        outputs = [TensorSpec(SCORES, info), TensorSpec(CLASSES, classes)]
    fields = _outer(outputs, "output", options, "FP32")
    if options.labels and not ensemble.top:
        fields[0]["label_filename"] = LABELS_FILE
    config["output"] = fields
    return EnsemblePart(options, config, "TritonPostprocess", settings.document())


def _outer(
    specs: Iterable[TensorSpec], kind: str, options: TritonOptions, sent: str
) -> list[dict[str, object]]:
    """Tensors as clients see them."""
    return [
        tensor_fields(spec, kind, options.max_batch > 0, sent if is_real(spec) else "")
        for spec in specs
    ]


def _check_classes(ensemble: EnsembleOptions, spec: TensorSpec, options: TritonOptions) -> None:
    """Check that the best classes of an output can be selected."""
    row = tuple((spec.shape or ())[1:])
    count = row[-1] if len(row) == 1 else None
    if not options.max_batch or count is None or count < ensemble.top:
        raise InvalidArgumentError(
            "the best classes cannot be selected",
            where=f"output '{spec.name}'",
            expected=f"rows of {ensemble.top} scores or more, and max_batch",
            actual=str(spec.info),
        )


def _steps(
    ensemble: EnsembleOptions,
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
) -> list[dict[str, object]]:
    """The steps: the model of each, and the names of its tensors in the ensemble."""
    _, inner, before, after = ensemble.names(name)
    sent = {spec.name: spec.name for spec in inputs}
    prepared = {spec.name: f"prepared:{spec.name}" for spec in inputs}
    stored = {spec.name: f"stored:{spec.name}" for spec in outputs}
    named = [SCORES, CLASSES] if ensemble.top else [spec.name for spec in outputs]
    return [
        _step(before, sent, prepared),
        _step(inner, prepared, stored),
        _step(after, stored, {name: name for name in named}),
    ]


def _step(name: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> dict[str, object]:
    return {
        "model_name": name,
        "model_version": -1,
        "input_map": [{"key": key, "value": value} for key, value in inputs.items()],
        "output_map": [{"key": key, "value": value} for key, value in outputs.items()],
    }
