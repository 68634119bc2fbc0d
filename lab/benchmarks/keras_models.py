"""Makes the larger networks of the benchmark with Keras: .tflite files, float32 and int8.

TensorFlow is no dependency of armpy: this script runs in an environment of its own and imports
nothing of armpy::

    python -m venv tf && tf/bin/pip install tensorflow-cpu
    tf/bin/python lab/benchmarks/keras_models.py FOLDER [--only NAME,...] [--kinds float32,int8]
    tf/bin/python lab/benchmarks/keras_models.py FOLDER --common

``--common`` makes those of `keras.applications` whose files are below some 120 MB instead, at the
sizes that they are published for: `lab/build_kernels.py` finds in them which kernels common
networks need.

Nothing is downloaded: weights are random, from a fixed seed. Statistics of batch normalisations
are those of a forward pass over seeded images, so that activations neither vanish nor grow from
layer to layer. Files that are there already stay.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

SEED = 0
NUM_CALIBRATION_IMAGES = 8
KINDS = ("float32", "int8")
Network = Any  # keras.Model: Keras has no types


def applied(name: str, size: int = 224, **options: Any) -> Callable[[], Network]:  # Any: as above
    """One of `keras.applications`, with random weights."""

    def make() -> Network:
        network = getattr(keras.applications, name)
        return network(weights=None, input_shape=(size, size, 3), **options)

    return make


def unet(size: int = 256, channels: int = 16, depth: int = 4) -> Network:
    """U-Net: `depth` halvings with doubled channels, and their way back by transposed products."""
    layers = keras.layers

    def block(value: Any, width: int) -> Any:  # Any: symbolic tensors
        for _ in range(2):
            value = layers.Conv2D(width, 3, padding="same", use_bias=False)(value)
            value = layers.ReLU()(layers.BatchNormalization()(value))
        return value

    value = image = keras.Input((size, size, 3))
    skipped = []
    for level in range(depth):
        value = block(value, channels << level)
        skipped.append(value)
        value = layers.MaxPooling2D()(value)
    value = block(value, channels << depth)
    for level in reversed(range(depth)):
        value = layers.Conv2DTranspose(channels << level, 2, strides=2)(value)
        value = block(layers.Concatenate()([value, skipped[level]]), channels << level)
    return keras.Model(image, layers.Conv2D(2, 1, activation="softmax")(value))


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "resnet50_224": applied("ResNet50"),
    "mobilenet_v3_large_224": applied("MobileNetV3Large", include_preprocessing=False),
    "densenet121_224": applied("DenseNet121"),
    "inception_v3_299": applied("InceptionV3", 299),
    "convnext_tiny_224": applied("ConvNeXtTiny", include_preprocessing=False),
    "efficientnet_v2_b0_224": applied("EfficientNetV2B0", include_preprocessing=False),
    "nasnet_mobile_224": applied("NASNetMobile"),
    "unet_256": unet,
    "xception_299": applied("Xception", 299),
}


def common() -> dict[str, Callable[[], Network]]:
    """Networks of `keras.applications` by name and size, each size and width that is published."""
    plain = {"include_preprocessing": False}
    families: list[tuple[str, tuple[int, ...], tuple[float, ...], dict[str, Any]]] = [
        ("MobileNet", (128, 160, 192, 224), (0.25, 0.5, 0.75, 1.0), {}),
        ("MobileNetV2", (96, 128, 160, 192, 224), (0.35, 0.5, 0.75, 1.0, 1.3, 1.4), {}),
        ("MobileNetV3Small", (224,), (0.75, 1.0), plain),
        ("MobileNetV3Large", (224,), (0.75, 1.0), plain),
        ("NASNetMobile", (224,), (), {}),
        *((f"EfficientNetB{n}", (size,), (), {}) for n, size in enumerate((224, 240, 260, 300))),
        *(
            (f"EfficientNetV2B{n}", (size,), (), plain)
            for n, size in enumerate((224, 240, 260, 300))
        ),
        ("EfficientNetV2S", (384,), (), plain),
        *((f"DenseNet{depth}", (224,), (), {}) for depth in (121, 169, 201)),
        *((f"ResNet{depth}", (224,), (), {}) for depth in ("50", "50V2", "101", "101V2")),
        ("InceptionV3", (299,), (), {}),
        ("Xception", (299,), (), {}),
        ("ConvNeXtTiny", (224,), (), plain),
    ]
    networks = {}
    for name, sizes, widths, options in families:
        for size in sizes:
            for width in widths or (None,):
                scaled = options if width is None else {**options, "alpha": width}
                label = name if width is None else f"{name}_{width}"
                networks[f"{label}_{size}".lower()] = applied(name, size, **scaled)
    return networks


def images(shape: tuple[int, ...], count: int) -> Iterator[np.ndarray]:
    """Seeded images in [-1, 1): coarse blotches with noise on them, float32 (1, h, w, c)."""
    random = np.random.default_rng(SEED)
    height, width, channels = shape
    for _ in range(count):
        coarse = random.uniform(-1, 1, (1, 8, 8, channels)).astype(np.float32)
        smooth = tf.image.resize(coarse, (height, width)).numpy()
        noise = random.normal(0, 0.2, smooth.shape).astype(np.float32)
        yield np.clip(smooth + noise, -1, np.nextafter(np.float32(1), np.float32(0)))


def randomize(network: Network) -> None:
    """Give normalisations seeded scales and shifts, and statistics of a forward pass."""
    random = np.random.default_rng(SEED)
    for layer in network._flatten_layers():
        if type(layer).__name__ == "LayerScale":  # 1e-6 at first: its block would be nothing
            layer.gamma.assign(random.uniform(0.1, 0.4, layer.gamma.shape))
        elif isinstance(layer, keras.layers.BatchNormalization | keras.layers.LayerNormalization):
            if layer.gamma is not None:
                layer.gamma.assign(random.uniform(0.8, 1.2, layer.gamma.shape))
            if layer.beta is not None:
                layer.beta.assign(random.normal(0, 0.1, layer.beta.shape))
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0  # the moving statistics become those of the pass
        elif isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    network(np.concatenate([*images(network.input_shape[1:], 4)]), training=True)


def converted(network: Network, kind: str) -> bytes:
    """The network as a .tflite file of one kind: a batch of one image, fixed."""
    shape = tuple(network.input_shape[1:])
    with tempfile.TemporaryDirectory() as folder:
        archive = keras.export.ExportArchive()
        archive.track(network)
        archive.add_endpoint(
            "serve",
            lambda image: network(image, training=False),
            input_signature=[keras.InputSpec(shape=(1, *shape), dtype="float32")],
        )
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if kind == "int8":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: (
                [image] for image in images(shape, NUM_CALIBRATION_IMAGES)
            )
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = converter.inference_output_type = tf.int8
        model: bytes = converter.convert()
        return model


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--common", action="store_true")
    arguments = parser.parse_args()
    networks = common() if arguments.common else NETWORKS
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(",") if arguments.only else networks:
        paths = {
            kind: arguments.folder / f"{name}_{kind}.tflite" for kind in arguments.kinds.split(",")
        }
        if all(path.exists() for path in paths.values()):
            continue
        keras.utils.set_random_seed(SEED)
        network = networks[name]()
        randomize(network)
        for kind, path in paths.items():
            if not path.exists():
                part = path.with_suffix(".part")
                part.write_bytes(converted(network, kind))
                part.replace(path)  # others never see half a file
                print(f"{path} {path.stat().st_size / 1e6:.1f} MB", flush=True)
        del network
        keras.backend.clear_session()
        gc.collect()


if __name__ == "__main__":
    main()
