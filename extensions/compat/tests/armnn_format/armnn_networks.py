"""Small .armnn files of one layer, in the form of old and new versions of Arm NN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from armpy.ops.operation import Array
from armpy.plugins.hooks.flatbuffers import write_flatbuffer
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA

from ..armnn_texts import Json, table_of

Tensor = Mapping[str, Json]

_STORED = {1: ("ByteData", np.int8), 2: ("ShortData", np.int16), 4: ("IntData", np.int32)}


def tensor(shape: Sequence[int], kind: str = "Float32", **more: Json) -> Tensor:
    """A description of a tensor."""
    return {"dimensions": list(shape), "dataType": kind, **more}


def stored(data: Array, kind: str = "Float32", **more: Json) -> Tensor:
    """A constant with its description."""
    name, dtype = _STORED[data.itemsize]
    elements = np.ascontiguousarray(data).reshape(-1).view(dtype).tolist()
    return {
        "info": tensor(data.shape, kind, **more),
        "data_type": name,
        "data": {"data": elements},
    }


@dataclass(frozen=True)
class OneLayer:
    """A file with one layer between its inputs and outputs."""

    kind: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    descriptor: Mapping[str, Json] | None = None
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Of the layer, besides base and descriptor."""
    versions: Mapping[str, int] | None = None
    """The schemes; None leaves them out."""
    slots: Mapping[int, Mapping[str, Json]] = field(default_factory=dict)
    """More of an input slot, by its number."""
    constants: Mapping[int, Tensor] = field(default_factory=dict)
    """Inputs that are Constant layers."""

    def text(self) -> Mapping[str, Json]:
        """The graph, whose layers have the indices 10, 11, ... in another order than they run."""
        layers: list[Json] = []
        sources, input_ids, output_ids = [], [], []
        is_new = bool((self.versions or {}).get("bindingIdsScheme"))
        for number, info in enumerate(self.inputs):
            index = 10 + number
            sources.append(index)
            is_constant = number in self.constants
            kind = "Constant" if is_constant else "Input"
            base = self._base(index, kind, f"in{number}", [], [info])
            if is_constant:
                layers.append(_layer(kind, {"base": base, "input": self.constants[number]}))
                continue
            input_ids.append(70 + number if is_new else index)
            bound = {"base": base, "layerBindingId": 70 + number}
            layers.append(_layer(kind, {"base": bound}))
        main = 10 + len(self.inputs)
        base = self._base(main, self.kind, "main", [(index, 0) for index in sources], self.outputs)
        for number, more in self.slots.items():
            base["inputSlots"][number].update(more)
        fields: dict[str, Json] = {"base": base, **self.fields}
        if self.descriptor is not None:
            fields["descriptor"] = self.descriptor
        for number in range(len(self.outputs)):
            index = main + 1 + number
            output = self._base(index, "Output", f"out{number}", [(main, number)], [])
            output_ids.append(90 + number if is_new else index)
            bound = {"base": output, "layerBindingId": 90 + number}
            layers.insert(0, _layer("Output", {"base": bound}))
        layers.append(_layer(self.kind, fields))
        graph: dict[str, Json] = {
            "layers": layers,
            "inputIds": input_ids,
            "outputIds": output_ids,
        }
        if self.versions is not None:
            graph["featureVersions"] = self.versions
        return graph

    def data(self, identifier: bytes = b"ARMN") -> bytes:
        """The file."""
        return write_flatbuffer(table_of("SerializedGraph", self.text()), identifier, ARMNN_SCHEMA)

    def _base(
        self,
        index: int,
        kind: str,
        name: str,
        sources: Sequence[tuple[int, int]],
        infos: Sequence[Tensor],
    ) -> dict[str, Json]:
        return {
            "index": index,
            "layerName": name,
            "layerType": kind,
            "inputSlots": [
                {
                    "index": number,
                    "connection": {"sourceLayerIndex": source, "outputSlotIndex": slot},
                }
                for number, (source, slot) in enumerate(sources)
            ],
            "outputSlots": [
                {"index": number, "tensorInfo": info} for number, info in enumerate(infos)
            ],
        }


def _layer(kind: str, fields: Mapping[str, Json]) -> Json:
    return {"layer_type": f"{kind}Layer", "layer": fields}


NEW = {"bindingIdsScheme": 1, "weightsLayoutScheme": 1, "constantTensorsAsInputs": 1}

_KERNEL = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)

OLD_FILES = (
    OneLayer("Equal", [tensor([2]), tensor([2])], [tensor([2], "Boolean")]),
    OneLayer("Greater", [tensor([2]), tensor([2])], [tensor([2], "Boolean")]),
    OneLayer("Rsqrt", [tensor([2])], [tensor([2])]),
    OneLayer(
        "Merger",
        [tensor([1, 2]), tensor([2, 2])],
        [tensor([3, 2])],
        {
            "concatAxis": 0,
            "numViews": 2,
            "numDimensions": 2,
            "viewOrigins": [{"data": [0, 0]}, {"data": [1, 0]}],
        },
    ),
    OneLayer(
        "Convolution2d",
        [tensor([1, 2, 3, 3])],
        [tensor([1, 1, 2, 2])],
        {"strideX": 1, "strideY": 1, "biasEnabled": True, "dataLayout": "NCHW"},
        {"weights": stored(_KERNEL), "biases": stored(np.array([0.5], np.float32))},
    ),
    OneLayer(
        "DepthwiseConvolution2d",
        [tensor([1, 3, 3, 2])],
        [tensor([1, 2, 2, 4])],
        {"strideX": 1, "strideY": 1, "dataLayout": "NHWC"},
        {"weights": stored(np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2))},
    ),
    OneLayer(
        "FullyConnected",
        [tensor([1, 2])],
        [tensor([1, 3])],
        {"transposeWeightsMatrix": False},
        {"weights": stored(np.arange(6, dtype=np.float32).reshape(2, 3))},
    ),
    OneLayer(
        "BatchNormalization",
        [tensor([1, 2, 1, 1])],
        [tensor([1, 2, 1, 1])],
        {"eps": 0.0, "dataLayout": "NCHW"},
        {
            "mean": stored(np.array([1, 2], np.float32)),
            "variance": stored(np.array([4, 16], np.float32)),
            "beta": stored(np.array([0, 1], np.float32)),
            "gamma": stored(np.array([2, 4], np.float32)),
        },
    ),
)
"""Layers of old versions, and weights as fields."""
