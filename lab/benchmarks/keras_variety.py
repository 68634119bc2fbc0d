"""Makes smaller networks of many sorts with Keras: .tflite files in every kind of numbers.

TensorFlow is no dependency of armpy: this script runs in an environment of its own, as
`lab/benchmarks/keras_models.py` does::

    tf/bin/python -m lab.benchmarks.keras_variety FOLDER [--only NAME,...] [--kinds KIND,...]

Nothing is downloaded: weights and the data that ranges are taken from are random, from a fixed
seed. Files that are there already stay; what TensorFlow cannot convert is named and left out.
`tests/differential/test_keras_files.py` compares the files with LiteRT,
`lab/benchmarks/compare_peers.py` times them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.lite.python.convert import ConverterError

from lab.benchmarks.keras_models import SEED, unet

NUM_SAMPLES = 4
NUM_WORDS = 1000
Network: TypeAlias = Any  # keras.Model: Keras has no types
Block: TypeAlias = Callable[[Any], Any]  # Any: symbolic tensors
layers = keras.layers


def _classifier(source: Any, value: Any, classes: int = 10) -> Network:  # Any: symbolic tensors
    """A network that ends in classes."""
    return keras.Model(source, layers.Dense(classes, activation="softmax")(value))


def digits() -> Network:
    """A convolutional network (CNN) for small images."""
    value = source = keras.Input((28, 28, 1))
    for width in (32, 64):
        value = layers.Conv2D(width, 3, activation="relu")(value)
        value = layers.MaxPooling2D()(value)
    return _classifier(source, layers.Dense(128, activation="relu")(layers.Flatten()(value)))


def residual(size: int = 32) -> Network:
    """A residual CNN with batch normalisation."""
    value = source = keras.Input((size, size, 3))
    for width, stride in ((32, 1), (64, 2), (128, 2)):
        short = layers.Conv2D(width, 1, strides=stride)(value)
        for step in (stride, 1):
            value = layers.Conv2D(width, 3, strides=step, padding="same", use_bias=False)(value)
            value = layers.BatchNormalization()(value)
            value = layers.ReLU()(value) if step != 1 or stride == 1 else value
        value = layers.ReLU()(layers.Add()([value, short]))
    return _classifier(source, layers.GlobalAveragePooling2D()(value))


def mobile() -> Network:
    """MobileNetV3Small at 96 x 96: depthwise convolutions, squeeze and excitation, hard swish."""
    return keras.applications.MobileNetV3Small(
        input_shape=(96, 96, 3), weights=None, classes=10, include_preprocessing=False
    )


def autoencoder() -> Network:
    """Convolutions down and transposed convolutions up."""
    value = source = keras.Input((64, 64, 3))
    for width in (16, 32, 64):
        value = layers.Conv2D(width, 3, strides=2, padding="same", activation="elu")(value)
    for width in (32, 16, 3):
        value = layers.Conv2DTranspose(width, 3, strides=2, padding="same")(value)
        value = layers.LeakyReLU(0.1)(value)
    return keras.Model(source, layers.Activation("sigmoid")(value))


def waves() -> Network:
    """Dilated causal convolutions over samples of sound, with gates."""
    source = keras.Input((256, 16))
    value = layers.Conv1D(32, 1)(source)
    for dilation in (1, 2, 4, 8):
        options = {"padding": "causal", "dilation_rate": dilation}
        gate = layers.Conv1D(32, 2, activation="sigmoid", **options)(value)
        filtered = layers.Conv1D(32, 2, activation="tanh", **options)(value)
        value = layers.Add()([value, layers.Multiply()([gate, filtered])])
    return _classifier(source, layers.GlobalMaxPooling1D()(value))


def volumes() -> Network:
    """Convolutions of three dimensions, as TensorFlow converts no pools of them."""
    value = source = keras.Input((8, 32, 32, 3))
    for width in (16, 32):
        value = layers.Conv3D(width, 3, strides=2, padding="same", activation="relu")(value)
    return _classifier(source, layers.Flatten()(value))


def recurrent(make: Callable[[int, bool], Block], length: int = 48) -> Callable[[], Network]:
    """Two recurrent layers over vectors."""

    def network() -> Network:
        source = keras.Input((length, 40))
        return _classifier(source, make(64, False)(make(64, True)(source)))

    return network


def words(make: Callable[[int, bool], Block]) -> Callable[[], Network]:
    """A recurrent layer over embedded words."""

    def network() -> Network:
        source = keras.Input((40,), dtype="int32")
        value = layers.Embedding(NUM_WORDS, 64)(source)
        return _classifier(source, layers.Dense(32, activation="relu")(make(48, False)(value)), 2)

    return network


def pictured() -> Network:
    """A recurrent layer over what convolutions see in columns, as text in images is read."""
    value = source = keras.Input((32, 64, 1))
    for width in (16, 32):
        value = layers.Conv2D(width, 3, padding="same", activation="relu")(value)
        value = layers.MaxPooling2D()(value)
    value = layers.Reshape((16, 8 * 32))(layers.Permute((2, 1, 3))(value))
    value = layers.Bidirectional(layers.LSTM(48, return_sequences=True))(value)
    return keras.Model(source, layers.Dense(37, activation="softmax")(value))


def transformer() -> Network:
    """An encoder of two layers with attention over embedded words."""
    source = keras.Input((64,), dtype="int32")
    value = layers.Embedding(NUM_WORDS, 64)(source)
    value = layers.Add()([value, layers.Embedding(64, 64)(tf.range(64)[tf.newaxis])])
    for _ in range(2):
        attended = layers.MultiHeadAttention(4, 16)(value, value)
        value = layers.LayerNormalization()(layers.Add()([value, attended]))
        wide = layers.Dense(128, activation="gelu")(value)
        value = layers.LayerNormalization()(layers.Add()([value, layers.Dense(64)(wide)]))
    return _classifier(source, layers.GlobalAveragePooling1D()(value))


def patches() -> Network:
    """A vision transformer: attention over patches of an image."""
    source = keras.Input((64, 64, 3))
    value = layers.Reshape((64, 96))(layers.Conv2D(96, 8, strides=8)(source))
    for _ in range(2):
        normal = layers.LayerNormalization()(value)
        value = layers.Add()([value, layers.MultiHeadAttention(4, 24)(normal, normal)])
        wide = layers.Dense(192, activation="gelu")(layers.LayerNormalization()(value))
        value = layers.Add()([value, layers.Dense(96)(wide)])
    return _classifier(source, layers.GlobalAveragePooling1D()(value))


def _layer(name: str) -> Callable[[int, bool], Block]:
    """Makes a recurrent layer of Keras."""

    def make(units: int, returns_all: bool) -> Block:
        block: Block = getattr(layers, name)(units, return_sequences=returns_all)
        return block

    return make


def _both_ways(make: Callable[[int, bool], Block]) -> Callable[[int, bool], Block]:
    """The same in both directions."""

    def both(units: int, returns_all: bool) -> Block:
        block: Block = layers.Bidirectional(make(units, returns_all))
        return block

    return both


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "digits": digits,
    "residual": residual,
    "mobile": mobile,
    "unet": lambda: unet(64, 8, 3),
    "autoencoder": autoencoder,
    "waves": waves,
    "volumes": volumes,
    "gru": recurrent(_layer("GRU")),
    "lstm": recurrent(_layer("LSTM")),
    "rnn": recurrent(_layer("SimpleRNN")),
    "bigru": words(_both_ways(_layer("GRU"))),
    "bilstm": words(_both_ways(_layer("LSTM"))),
    "pictured": pictured,
    "transformer": transformer,
    "patches": patches,
}
KINDS = ("float32", "float16", "dynamic", "int8", "int16x8")
RECURRENT = frozenset({"gru", "lstm", "rnn", "bigru", "bilstm", "pictured"})
"""Networks whose calibration ends TensorFlow's process: there are none of integers."""


def samples(source: Any) -> Iterator[list[Any]]:  # Any: a symbolic tensor, arrays
    """Seeded inputs of a network: words, or numbers in [-1, 1)."""
    random = np.random.default_rng(SEED)
    for _ in range(NUM_SAMPLES):
        shape = (1, *source.shape[1:])
        if source.dtype == "int32":
            yield [random.integers(0, NUM_WORDS, shape, np.int32)]
        else:
            yield [random.uniform(-1, 1, shape).astype(np.float32)]


def randomize(network: Network) -> None:
    """Give biases and normalisations seeded numbers, as 0 and 1 would hide mistakes."""
    random = np.random.default_rng(SEED)
    for variable in network.weights:
        if variable.path.endswith(("bias", "beta", "moving_mean")):
            variable.assign(random.normal(0, 0.1, variable.shape))
        elif variable.path.endswith(("gamma", "moving_variance")):
            variable.assign(random.uniform(0.6, 1.4, variable.shape))


def converted(network: Network, kind: str) -> bytes:
    """The network as a .tflite file of one kind of numbers, with a batch of one."""
    source = network.inputs[0]
    with tempfile.TemporaryDirectory() as folder:
        archive = keras.export.ExportArchive()
        archive.track(network)
        archive.add_endpoint(
            "serve",
            lambda value: network(value, training=False),
            input_signature=[keras.InputSpec(shape=(1, *source.shape[1:]), dtype=source.dtype)],
        )
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if kind != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if kind.startswith("int"):
            sets = tf.lite.OpsSet
            builtins = {
                "int8": sets.TFLITE_BUILTINS_INT8,
                "int16x8": (sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8),
            }
            converter.representative_dataset = lambda: samples(source)
            converter.target_spec.supported_ops = [builtins[kind], sets.TFLITE_BUILTINS]
        model: bytes = converter.convert()
        return model


def make(folder: Path, name: str, kinds: Sequence[str]) -> None:
    """Make the files of one network that are not there."""
    keras.utils.set_random_seed(SEED)
    network = NETWORKS[name]()
    randomize(network)
    for kind in kinds:
        path = folder / f"{name}_{kind}.tflite"
        if path.exists() or (name in RECURRENT and kind.startswith("int")):
            continue
        try:
            model = converted(network, kind)
        except (ConverterError, RuntimeError, ValueError) as error:
            print(f"{path.name} left out: {str(error)[:300]}", flush=True)
            continue
        path.write_bytes(model)
        print(f"{path} {len(model) / 1e3:.0f} kB", flush=True)
    keras.backend.clear_session()


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(NETWORKS), help="names, with commas between")
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        make(arguments.folder, name, arguments.kinds.split(","))


if __name__ == "__main__":
    main()
