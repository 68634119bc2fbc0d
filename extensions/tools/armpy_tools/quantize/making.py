"""`quantize`: a model of small integers of a float model."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.frontends.tflite.source import is_tflite
from armpy.frontends.tflite_writer.tflite import read_extras, write_tflite
from armpy.graph import Graph, Layer
from armpy.graph.network import Network
from armpy.model import Model
from armpy.model.model_files import parse
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_tools.comparison.trace import TensorTrace
from armpy_tools.quantize.bias_correction import corrected_biases
from armpy_tools.quantize.calibrating import calibrate
from armpy_tools.quantize.cross_layer_equalization import equalized
from armpy_tools.quantize.data import Data, fault_of, read_samples
from armpy_tools.quantize.options import QuantizeOptions
from armpy_tools.quantize.planning import QuantizationPlan, choose_scales, make_plan, whole_names
from armpy_tools.quantize.preparing import prepared_graph
from armpy_tools.quantize.report import Pair, QuantizeReport, constant_bytes, judge, judged_values
from armpy_tools.quantize.rewriting import IntegerNetwork
from armpy_tools.quantize.weights import with_small_weights

if TYPE_CHECKING:
    from armpy.plugins.hooks.model_file import ModelSource

_log = logging.getLogger("armpy_tools.quantize")

_ACTIVATIONS = {"int8": DataType.QASYMM_S8, "int16x8": DataType.QSYMM_S16}


class QuantizedModel:
    """A quantised network, and how accurate it is.

    Attributes
    ----------
    graph : Graph
    report : QuantizeReport
    source : path or None
        Of the file that it was made of.
    """

    def __init__(
        self,
        graph: Graph,
        report: QuantizeReport,
        source: str | os.PathLike[str] | None = None,
    ) -> None:
        self.graph = graph
        self.report = report
        self.source = source

    def __repr__(self) -> str:
        num_float = len(self.report.kept_float)
        return f"QuantizedModel({self.graph!r}, {self.report.scheme}, {num_float} layers float)"

    def load(self, runtime: Runtime | None = None) -> Model:
        """The model, ready to be called."""
        return Model(self.graph, runtime)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        runtime: Runtime | None = None,
        like: str | os.PathLike[str] | None = None,
    ) -> int:
        """Write it: as ``.tflite`` if the name ends so, else as compiled model, for `armpy.load`.

        Parameters
        ----------
        runtime : Runtime, optional
            Whose backends it is prepared for; every installed one if left out.
        like : path, optional
            A .tflite file whose metadata and packed files, such as labels, a .tflite file gets; the
            one that the model was made of if left out.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        InvalidArgumentError
            If it cannot be written.
        UnimplementedError
            If an operation cannot be written to such a file.
        """
        if Path(path).suffix.lower() == ".tflite":
            like = self.source if like is None else like
            extras = read_extras(like) if like is not None and is_tflite(like) else None
            return write_tflite(self.graph, path, f"armpy: {self.report.scheme}", extras)
        with self.load(runtime) as model:
            model.prepare()
            return model.save(path)


def quantize(
    source: ModelSource | Network | Graph,
    data: Data | None = None,
    *,
    options: QuantizeOptions | None = None,
    backends: Sequence[str] | None = None,
    runtime: Runtime | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    limit: int | None = None,
    judge_limit: int = 32,
    keep_open: bool | None = None,
    progress: Callable[[str], object] | None = None,
) -> QuantizedModel:
    """Make a model of small integers of a float model, after training and without it.

    Parameters
    ----------
    source : path, bytes-like, Network or Graph
        Any model file that `armpy.load` takes, but prepared ones; or a network.
    data : path, mapping of str to array_like, or iterable of mappings
        Typical inputs of the model: some 100 samples. A mapping of inputs per sample; or one
        with N samples along the first axis of each array; or the path of an ``.npz`` file that
        holds the latter, or of a folder of ``.npy`` files. Not needed for ``float16`` and
        ``dynamic``; there it serves the report.
    backends : sequence of str, optional
        That run the models; every installed one if left out.
    runtime : Runtime, optional
        In the place of `backends`.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs that the model leaves open.
    limit : int, optional
        How many samples are used.
    judge_limit : int
        How many of them the report is made with; 0 for none.
    keep_open : bool, optional
        Whether dimensions that the model and `shapes` leave open stay so. Otherwise they become
        those of the default shape, or 1, and more can be simplified. If left out, those of
        ``.tflite`` files stay open.
    progress : callable, optional
        Receives the name of each step.

    Returns
    -------
    QuantizedModel
        To be saved, loaded, and asked for its report.

    Raises
    ------
    InvalidArgumentError
        If the data do not fit, or there is nothing to quantise.
    ParserError
        If the file cannot be read.

    Examples
    --------
    >>> made = quantize("model.tflite", "calibration.npz")        # doctest: +SKIP
    >>> made.report.outputs[0].top1_agreement                           # doctest: +SKIP
    1.0
    >>> made.save("model_int8.tflite")                                  # doctest: +SKIP
    """
    options = options or QuantizeOptions()
    if not isinstance(options, QuantizeOptions):
        raise InvalidArgumentError(
            "the argument has the wrong type",
            where="options",
            expected="QuantizeOptions",
            actual=repr(options),
            fix="Write options=QuantizeOptions(...)",
        )
    if runtime is not None and backends is not None:
        raise InvalidArgumentError(
            "a runtime has its own backends",
            where="quantize",
            expected="a runtime or backends",
            actual=f"both, with backends={list(backends)}",
        )
    if runtime is None:
        with Runtime(RuntimeOptions(backends=backends)) as own:
            return quantize(
                source,
                data,
                options=options,
                runtime=own,
                shapes=shapes,
                limit=limit,
                judge_limit=judge_limit,
                keep_open=keep_open,
                progress=progress,
            )
    if keep_open is None:
        keep_open = not isinstance(source, Network | Graph) and is_tflite(source)
    quantizing = _QuantizationRun(runtime, options, progress)
    graph = quantizing.read(source, shapes, keep_open=keep_open)
    quantized = quantizing.run(graph, data, limit, judge_limit)
    quantized.source = source if isinstance(source, str | os.PathLike) else None
    return quantized


class _QuantizationRun:
    """One model's way from float to integers."""

    def __init__(
        self,
        runtime: Runtime,
        options: QuantizeOptions,
        progress: Callable[[str], object] | None,
    ) -> None:
        self._runtime = runtime
        self._options = options
        self._report = progress or (lambda _: None)

    def run(
        self, graph: Graph, data: Data | None, limit: int | None, judge_limit: int
    ) -> QuantizedModel:
        """Calibrate, rewrite and judge."""
        names = whole_names(graph, self._options.keep_float)
        self._options = replace(self._options, keep_float=names)
        samples: list[list[Array]] = []
        if data is not None:
            samples = read_samples(graph, data, limit)
        elif self._options.needs_data:
            raise InvalidArgumentError(
                "ranges of activations need data",
                where=self._options.scheme,
                fix="Give samples of the model's inputs, or choose 'float16' or 'dynamic'",
            )
        if self._options.equalize and self._options.needs_data:
            graph = equalized(graph)
        plan = self._plan(graph)
        judged = samples[:judge_limit]
        shown = [*(plan.observed if plan else ()), *(judged_values(graph) if judged else ())]
        with TensorTrace(self._runtime, graph, shown) as before:
            pair = self._quantized(graph, plan, before, samples)
            self._report("judge")
            layers, outputs = judge(self._runtime, before, pair, judged) if judged else ((), ())
        report = QuantizeReport(
            self._options.scheme,
            self._options.method if self._options.needs_data else "none",
            len(samples),
            len(judged),
            layers,
            outputs,
            constant_bytes(graph),
            constant_bytes(pair.after),
            fault_of(samples),
        )
        for warning in report.data_warnings():
            _log.warning("%s.", warning)
        return QuantizedModel(pair.after, report)

    def read(
        self,
        source: ModelSource | Network | Graph,
        shapes: Mapping[str, tuple[int, ...]] | None,
        *,
        keep_open: bool,
    ) -> Graph:
        """The float graph."""
        self._report("read")
        if isinstance(source, Network):
            graph = source.build()
        elif isinstance(source, Graph):
            graph = source
        else:
            graph = parse(source, self._runtime.registry)
        prepared = prepared_graph(graph, self._runtime, shapes, keep_open=keep_open)
        if not any(value.info.data_type is DataType.FLOAT32 for value in prepared.values()):
            raise InvalidArgumentError(
                "the model has no float32 tensors", where="quantize", fix="Give a float model"
            )
        return prepared

    def _plan(self, graph: Graph) -> QuantizationPlan | None:
        """Return the plan of each layer; None where weights alone change."""
        options = self._options
        if not options.needs_data:
            return None
        plan = make_plan(graph, _ACTIVATIONS[options.scheme], options.keep_float)
        if not plan.rules:
            raise InvalidArgumentError(
                "no layer of the model can be quantised",
                where="quantize",
                actual="; ".join(sorted(set(plan.refused.values()))) or "no float layers",
            )
        return plan

    def _quantized(
        self,
        graph: Graph,
        plan: QuantizationPlan | None,
        before: TensorTrace,
        samples: list[list[Array]],
    ) -> Pair:
        """The network of integers, with where its tensors are from."""
        options = self._options
        if plan is None:
            return with_small_weights(graph, options.scheme, options.keep_float)
        self._report("calibrate")
        calibration = calibrate(before, samples, plan.observed, options)
        scales = choose_scales(graph, plan, calibration.ranges)
        biases: dict[Layer, Array] = {}
        if options.correct_bias:
            biases = dict(
                corrected_biases(plan, scales, calibration.means, per_channel=options.per_channel)
            )
        network = IntegerNetwork(
            graph, plan, scales, per_channel=options.per_channel, io=options.io, biases=biases
        )
        rewritten = network.build()
        return Pair(graph, rewritten.graph, rewritten.values, {**plan.refused, **rewritten.refused})
