"""Modules of torchvision, timm and transformers with random weights, by ``torch.compile``.

Usage::

    python -m benchmarks.torch_compile [NAME...] [--threads 1,2] [--rounds 7] [--inductor]
                                       [--rows FILE]

Each module runs on armpy at three sizes: batches of images, or batches and lengths of texts. Dynamo
makes a graph for the first size and one with open sizes for the second, which has to serve the
third as well. A row has the largest difference of armpy's results from PyTorch's, relative to the
largest element of each output, the graphs that Dynamo captured, its graph breaks, the graphs that
did not run on armpy as a whole, and why.

Later calls are timed at the first size in rounds, in each of which PyTorch alone, armpy and, with
``--inductor``, PyTorch's own compiler run once, in turns. A row has the median of each in
milliseconds, and the median over rounds of how many times as long PyTorch and Inductor took as
armpy. ``--rounds 0`` leaves times of later calls out. Rows are printed as JSON and, with
``--rows``, appended to a file.

Notes
-----
torchvision's wheel does not import beside a PyTorch that it was not built for: its operators of
boxes are missing. The networks here have none of these, so that two of them are only declared.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import torch

import armpy_torch

Arguments = tuple[Any, ...]
"""Tensors; Any, as PyTorch has no types for the type checker."""

_VISION = (
    *("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "googlenet", "inception_v3"),
    *("maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "regnet_y_400mf", "resnet18"),
    *("resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "vgg11"),
    *("vit_b_32",),
)
_TIMM = (
    *("cait_xxs24_224", "convmixer_768_32", "convnext_atto", "deit_tiny_patch16_224", "dla34"),
    *("edgenext_xx_small", "efficientformer_l1", "efficientnet_lite0", "fastvit_t8", "gernet_s"),
    *("ghostnet_050", "hrnet_w18_small", "lcnet_050", "levit_128s", "mixer_s32_224", "mixnet_s"),
    *("mobilenetv4_conv_small", "mobileone_s0", "mobilevit_xxs", "pit_ti_224", "poolformer_s12"),
    *("repvgg_a0", "resmlp_12_224", "rexnet_100", "tinynet_e", "xcit_nano_12_p16_224"),
)
_SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_TEXTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "AlbertModel": {**_SMALL, "intermediate_size": 128},
        "BertModel": {**_SMALL, "intermediate_size": 128},
        "CamembertModel": {**_SMALL, "intermediate_size": 128},
        "DistilBertModel": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
        "ElectraModel": {**_SMALL, "intermediate_size": 128},
        "GPT2Model": {"n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False},
        "GPTNeoXModel": {**_SMALL, "intermediate_size": 128, "use_cache": False},
        "LlamaModel": {**_SMALL, "intermediate_size": 128, "use_cache": False},
        "MistralModel": {
            **_SMALL, "intermediate_size": 128, "num_key_value_heads": 2, "use_cache": False,
        },
        "MPNetModel": {**_SMALL, "intermediate_size": 128},
        "OPTModel": {
            **_SMALL, "ffn_dim": 128, "word_embed_proj_dim": 64, "use_cache": False,
        },
        "PhiModel": {**_SMALL, "intermediate_size": 128, "use_cache": False},
        "Qwen2Model": {
            **_SMALL, "intermediate_size": 128, "num_key_value_heads": 2, "use_cache": False,
        },
        "RobertaModel": {**_SMALL, "intermediate_size": 128},
        "SqueezeBertModel": {**_SMALL, "intermediate_size": 128, "embedding_size": 64},
        "T5EncoderModel": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},
    }
)  # fmt: skip
"""Language models by class, each with what makes it small."""


@dataclass
class Row:
    """What was measured of one module."""

    name: str
    threads: int
    worst: float = 0.0
    graphs: int = 0
    graph_breaks: int = 0
    not_whole: int = 0  # graphs of which PyTorch runs operators
    networks: int = 0
    is_open: bool = False  # whether the third size needed no other graph or network
    layers_elsewhere: int = 0
    reasons: list[str] = field(default_factory=list)
    first_s: dict[str, float] = field(default_factory=dict)  # by engine, as are the others
    later_ms: dict[str, float] = field(default_factory=dict)
    times_armpy: dict[str, float] = field(default_factory=dict)
    load: float = 0.0  # of the machine in the last minute


def modules() -> Iterator[tuple[str, Callable[[], tuple[Any, list[Arguments]]]]]:
    """Names, and functions that make a module and three sets of arguments."""
    for name in _VISION:
        yield f"torchvision/{name}", partial(_of_images, "torchvision.models", name)
    for name in _TIMM:
        yield f"timm/{name}", partial(_of_images, "timm", name)
    for name, sizes in _TEXTS.items():
        yield f"transformers/{name}", partial(_of_texts, name, sizes)


def _of_images(package: str, name: str) -> tuple[Any, list[Arguments]]:
    """A network of images, and batches."""
    library = import_module(package)
    module = library.create_model(name) if package == "timm" else library.get_model(name)
    size = 299 if name == "inception_v3" else 224
    _keep_signals(module, torch.rand(4, 3, size, size))
    return module.eval(), [(torch.rand(batch, 3, size, size),) for batch in (1, 3, 2)]


def _keep_signals(module: Any, images: Any) -> None:
    """Have the results of a network with random weights depend on its inputs.

    As it is made, some layers have no weights but zeros, and the statistics of batch normalisations
    are not those of what they see: signals fade until only the last layer's bias is left, which any
    wrong network would give, too.
    """
    for weights in module.parameters():
        if weights.ndim > 1 and not weights.any():
            torch.nn.init.normal_(weights, std=0.02)
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.momentum = 1.0
    module.train()
    module(images)


def _of_texts(name: str, sizes: Mapping[str, object]) -> tuple[Any, list[Arguments]]:
    """A language model, and texts of several lengths."""
    kind = getattr(import_module("transformers"), name)
    module = kind(kind.config_class(**sizes, vocab_size=1000)).eval()
    return module, [(torch.randint(5, 999, shape),) for shape in ((1, 16), (3, 24), (2, 31))]


def main() -> None:
    """Measure the modules that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    declare_box_operators()
    for name, make in modules():
        if options.names and not any(part in name for part in options.names):
            continue
        for threads in map(int, options.threads.split(",")):
            with torch.no_grad():
                row = measured(name, make, threads, options.rounds, with_inductor=options.inductor)
            print(json.dumps(asdict(row)), flush=True)
            if options.rows is not None:
                with options.rows.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")


def declare_box_operators() -> None:
    """Declare what torchvision expects of its own library when it is imported."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    _KEPT.append(library)  # it ends its operators when it is collected


_KEPT: list[object] = []


def measured(
    name: str,
    make: Callable[[], tuple[Any, list[Arguments]]],
    threads: int,
    rounds: int,
    *,
    with_inductor: bool,
) -> Row:
    """Measure one module."""
    torch.manual_seed(7)
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    row = Row(name, threads)
    module, sizes = make()
    seen = {report.number for report in armpy_torch.reports()}
    fast = torch.compile(module, backend="armpy", options={"num_threads": threads})
    engines = {"pytorch": module, "armpy": fast}
    row.first_s = {engine: seconds(engines[engine], sizes[0]) for engine in engines}
    row.worst = max(difference(fast(*part), module(*part)) for part in sizes[:2])
    before = _new_reports(seen)
    row.worst = max(row.worst, difference(fast(*sizes[2]), module(*sizes[2])))
    reports = _new_reports(seen)
    row.is_open = [len(report.placements) for report in before] == [
        len(report.placements) for report in reports
    ]
    row.graphs = len(reports)
    row.graph_breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    row.reasons = [report.reason for report in reports if report.reason]
    row.not_whole = len(row.reasons)
    placements = [placement for report in reports for placement in report.placements]
    row.networks = len(placements)
    row.layers_elsewhere = sum(placement.fallbacks for placement in placements)
    if with_inductor:
        engines["inductor"] = torch.compile(module, dynamic=False)
        row.first_s["inductor"] = seconds(engines["inductor"], sizes[0])
    _time_in_turns(row, engines, sizes[0], rounds)
    return row


def _new_reports(seen: set[int]) -> list[armpy_torch.GraphReport]:
    """Reports of graphs that are not among those seen before."""
    return [report for report in armpy_torch.reports() if report.number not in seen]


def _time_in_turns(
    row: Row, engines: Mapping[str, Callable[..., object]], arguments: Arguments, rounds: int
) -> None:
    """Time later calls, one of each engine in a round."""
    times: dict[str, list[float]] = {engine: [] for engine in engines}
    for number in range(rounds + 1):
        for engine, function in engines.items():
            duration = seconds(function, arguments)
            if number:  # the first round warms up
                times[engine].append(duration)
    if rounds:
        row.later_ms = {engine: 1e3 * median(part) for engine, part in times.items()}
        row.times_armpy = {
            engine: median(a / b for a, b in zip(part, times["armpy"], strict=True))
            for engine, part in times.items()
            if engine != "armpy"
        }
    row.load = os.getloadavg()[0]


def seconds(function: Callable[..., object], arguments: Arguments) -> float:
    """Duration of a call."""
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def difference(actual: Any, expected: Any) -> float:
    """The largest difference of two results, of the largest element."""
    actual, expected = (torch.utils._pytree.tree_leaves(part) for part in (actual, expected))
    pairs = [(a, e) for a, e in zip(actual, expected, strict=True) if isinstance(e, torch.Tensor)]
    return max(float((a - e).abs().max() / e.abs().max().clamp(min=1e-6)) for a, e in pairs)


if __name__ == "__main__":
    main()
