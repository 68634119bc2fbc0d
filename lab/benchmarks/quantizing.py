"""Compares `armpy_tools.quantize` with the quantising of TensorFlow's converter, on the same data.

``python -m lab.benchmarks.quantizing train DIR`` (with TensorFlow) trains small networks on digits,
and writes ``NAME_float.tflite``, calibration and test data, and what the converter makes of them.
``python -m lab.benchmarks.quantizing convert DIR MODEL...`` lets TensorFlow quantise float .tflite
files in the converter's own way, with data for each: ``DIR/NAME_data.npz`` with the arrays
``calibration`` and ``test``.
``python -m lab.benchmarks.quantizing compare DIR`` quantises each ``NAME_float.tflite`` with armpy
and prints, for each way, how far the outputs for the test data are from the float model's, and
accuracies where labels are known. Every file runs on the same engine: armpy's CpuRef.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_tools.quantize import QuantizeOptions, quantize

_Array = npt.NDArray[Any]  # Any: of several types

WAYS: dict[str, dict[str, object]] = {
    "default": {},
    "as the converter": {"method": "minmax", "correct_bias": False},
    "minmax": {"method": "minmax"},
    "percentile": {"method": "percentile"},
    "entropy": {"method": "entropy"},
    "equalize": {"equalize": True},
    "int16x8": {"scheme": "int16x8"},
}


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "convert", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--ways", default=",".join(WAYS), help="of armpy, with commas")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.what == "train":
        train_digits(arguments.folder)
    elif arguments.what == "convert":
        for model in arguments.models:
            convert_file(arguments.folder, model)
    else:
        compare(arguments.folder, arguments.ways.split(","))


def train_digits(folder: Path) -> None:
    """Train two networks on scikit-learn's digits and convert them, float and int8."""
    import tensorflow as tf  # noqa: PLC0415 - only this part needs it
    from sklearn.datasets import load_digits  # noqa: PLC0415

    tf.keras.utils.set_random_seed(1)
    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)[..., np.newaxis]
    order = np.random.default_rng(0).permutation(len(images))
    images, digits = images[order], bunch.target[order]
    layers = tf.keras.layers
    plain = [
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
    ]
    separable = [
        layers.Conv2D(16, 3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(6.0),
        layers.DepthwiseConv2D(3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(6.0),
        layers.Conv2D(32, 1, use_bias=False),
        layers.BatchNormalization(),
        layers.Activation("swish"),
        layers.MaxPooling2D(),
    ]
    for name, body in (("digits_plain", plain), ("digits_separable", separable)):
        end = [layers.Flatten(), layers.Dense(10), layers.Softmax()]
        model = tf.keras.Sequential([layers.Input((8, 8, 1), 1), *body, *end])
        trained = tf.keras.Sequential([layers.Input((8, 8, 1)), *body, *end])
        trained.compile("adam", "sparse_categorical_crossentropy")
        trained.fit(images[:1200], digits[:1200], batch_size=32, epochs=12, verbose=0)
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
        (folder / f"{name}_float.tflite").write_bytes(converter.convert())
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([image[np.newaxis]] for image in images[:100])
        (folder / f"{name}_converter.tflite").write_bytes(converter.convert())
        np.savez(
            folder / f"{name}_data.npz",
            calibration=images[:100, np.newaxis],
            test=images[1200:, np.newaxis],
            labels=digits[1200:],
        )


def convert_file(folder: Path, model: Path) -> None:
    """Quantise a float .tflite file as the converter does, and note what it took for it."""
    from tensorflow.lite.python.optimize import calibrator  # noqa: PLC0415
    from tensorflow.python.framework import dtypes  # noqa: PLC0415

    name = model.stem
    content = model.read_bytes()
    (folder / f"{name}_float.tflite").write_bytes(content)
    calibration = np.load(folder / f"{name}_data.npz")["calibration"]
    quantizer = calibrator.Calibrator(content)
    quantized = quantizer.calibrate_and_quantize(
        lambda: ([sample] for sample in calibration),
        dtypes.float32,
        dtypes.float32,
        True,  # layers may stay float
    )
    (folder / f"{name}_converter.tflite").write_bytes(quantized)


def compare(folder: Path, ways: list[str]) -> None:
    """Quantise every float file with armpy and print the figures of each way."""
    rows: list[dict[str, object]] = []
    for file in sorted(folder.glob("*_float.tflite")):
        name = file.name.removesuffix("_float.tflite")
        data = np.load(folder / f"{name}_data.npz")
        labels = data.get("labels")
        expected = outputs_of(file, data["test"])
        files = {"converter": folder / f"{name}_converter.tflite"}
        for way in ways:
            options = WAYS[way]
            path = folder / f"{name}_{way.replace(' ', '')}.tflite"
            quantized = quantize(
                file,
                [{input_name(file): sample} for sample in data["calibration"]],
                options=QuantizeOptions(**options),  # type: ignore[arg-type]
                backends=["CpuRef"],
                judge_limit=0,
            )
            quantized.save(path)
            files[way] = path
        for way, path in files.items():
            if not path.exists():
                continue
            actual = outputs_of(path, data["test"])
            row: dict[str, object] = {
                "model": name,
                "way": way,
                **figures(expected, actual, labels),
            }
            rows.append(row)
            print("  ".join(f"{value}" for value in row.values()), flush=True)
        if labels is not None:
            right = float((expected.argmax(-1).ravel() == labels).mean())
            print(f"{name}  float  accuracy {right:.4f}")
    (folder / "figures.json").write_text(json.dumps(rows, indent=1))


def input_name(file: Path) -> str:
    """Name of a model's only input."""
    import armpy  # noqa: PLC0415

    with armpy.load(file, backends=["CpuRef"]) as model:
        return model.inputs[0].name


def outputs_of(file: Path, samples: _Array) -> _Array:
    """What a model gives for each sample."""
    import armpy  # noqa: PLC0415

    def run() -> Iterator[_Array]:
        with armpy.load(file) as model:
            for sample in samples:
                output = model(sample)
                yield output if isinstance(output, np.ndarray) else output[0]

    return np.stack(list(run()))


def figures(expected: _Array, given: _Array, labels: _Array | None) -> dict[str, str]:
    """Signal to noise, greatest and mean error, agreement of classes, accuracy."""
    difference = given.astype(np.float64) - expected
    noise = (difference**2).sum()
    ratio = 10 * math.log10((expected.astype(np.float64) ** 2).sum() / noise) if noise else math.inf
    classes = [array.argmax(-1).ravel() for array in (expected, given)]
    row = {
        "sqnr_db": f"{ratio:.2f}",
        "max_error": f"{np.abs(difference).max():.4g}",
        "mean_error": f"{np.abs(difference).mean():.4g}",
        "agreement": f"{(classes[0] == classes[1]).mean():.4f}",
    }
    if labels is not None:
        row["accuracy"] = f"{(classes[1] == labels).mean():.4f}"
    return row


if __name__ == "__main__":
    main()
