"""Writes .onnx files of networks in their usual sizes, built in PyTorch, for `compare_peers`.

Usage::

    python -m lab.benchmarks.torch_files FOLDER [NAME...] [--quantised]

Names are those of `FACTORIES`; networks of images need torchvision. Weights are random. With
`--quantised`, networks of images are also written quantised by ONNX Runtime's tools (QDQ, int8,
weights per channel).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import torch
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from armpy.ops.operation import Array
from armpy_testing.models.torch_models import Reading


class _Samples(CalibrationDataReader):
    """Random inputs like a given one."""

    def __init__(self, name: str, values: Array) -> None:
        random = np.random.default_rng(3)
        shape = values.shape
        self._left = [{name: random.normal(size=shape).astype(values.dtype)} for _ in range(4)]

    def get_next(self) -> Mapping[str, Array] | None:
        """The next one."""
        return self._left.pop() if self._left else None


def quantized_file(path: Path, values: Array, *, kind: str) -> Path:
    """The file of a quantised network.

    `path`: of a network of float32 with one input.
    `values`: an input.
    `kind`: ``qdq``, ``qoperator`` or ``dynamic``.
    """
    file = path.with_name(f"{path.stem}_{kind}.onnx")
    if file.exists():
        return file
    if kind == "dynamic":
        quantize_dynamic(path, file, weight_type=QuantType.QUInt8)
        return file
    prepared = path.with_name(f"{path.stem}_prepared.onnx")
    quant_pre_process(path, prepared, skip_symbolic_shape=True)
    name = onnx.load(prepared).graph.input[0].name
    form = QuantFormat.QDQ if kind == "qdq" else QuantFormat.QOperator
    signed = QuantType.QInt8 if kind == "qdq" else QuantType.QUInt8
    quantize_static(
        prepared,
        file,
        _Samples(name, values),
        form,
        activation_type=signed,
        weight_type=signed,
        per_channel=kind == "qdq",
    )
    return file


_IMAGE = (1, 3, 224, 224)


def _of_images(name: str) -> Callable[[], torch.nn.Module]:
    """A network of torchvision, which is imported when it is made."""

    def make() -> torch.nn.Module:
        network: torch.nn.Module = getattr(import_module("torchvision.models"), name)()
        return network

    return make


_OTHERS_OF_IMAGES = (
    *("alexnet", "convnext_tiny", "densenet121", "efficientnet_v2_s", "maxvit_t", "mnasnet0_5"),
    *("mobilenet_v3_large", "regnet_y_400mf", "resnet50", "resnext50_32x4d", "swin_t", "vit_b_16"),
)
"""Networks that are named as torchvision names them."""

FACTORIES: Mapping[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = MappingProxyType(
    {
        "mobilenet_v2": (_of_images("mobilenet_v2"), _IMAGE),
        "mobilenet_v3_small": (_of_images("mobilenet_v3_small"), _IMAGE),
        "resnet18": (_of_images("resnet18"), _IMAGE),
        "shufflenet_v2": (_of_images("shufflenet_v2_x1_0"), _IMAGE),
        "squeezenet": (_of_images("squeezenet1_1"), _IMAGE),
        "efficientnet_b0": (_of_images("efficientnet_b0"), _IMAGE),
        **{name: (_of_images(name), _IMAGE) for name in _OTHERS_OF_IMAGES},
        "bert_128": (lambda: Reading(is_causal=False, width=256, layers=4), (1, 128)),
        "bert_512": (lambda: Reading(is_causal=False, width=256, layers=4), (1, 512)),
        "gpt_128": (lambda: Reading(is_causal=True, width=256, layers=4), (1, 128)),
    }
)
"""How each network is made, and the shape that it reads; token ids if there are two axes."""


def write(folder: Path, name: str, *, is_quantised: bool) -> None:
    """Export one network."""
    make, shape = FACTORIES[name]
    torch.manual_seed(7)
    model = make().eval()
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_var.uniform_(0.5, 1.5)
            layer.bias.data.normal_(0, 0.2)
    values = torch.randint(0, 50, shape) if len(shape) == 2 else torch.randn(shape)
    path = folder / f"{name}.onnx"
    torch.onnx.export(model, (values,), path, dynamo=False, opset_version=17)
    if is_quantised and len(shape) == 4:
        quantized_file(path, values.numpy(), kind="qdq")


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quantised", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or FACTORIES:
        write(arguments.folder, name, is_quantised=arguments.quantised)


if __name__ == "__main__":
    main()
