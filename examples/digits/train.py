"""Train the int8 digits model: a small convolutional TFLite network for 16x16 pictures.

Run ``python examples/digits/train.py`` to write ``digits_int8.tflite`` and ``labels.txt`` next to
this file and to print the accuracy of the float and of the int8 model. Takes about a minute on two
CPU cores.

The model in the repository was made on Python 3.11 with TensorFlow 2.21.0 (Keras 3.15.1),
scikit-learn 1.9.1, NumPy 2.4.6 and Pillow 13.0.0. They are needed for training only.

It learns from two sources: handwritten digits (scikit-learn's `load_digits`), and the strokes in
``drawing.py``, drawn many times with a random pen, place, size, slant and bend. All
pictures have light ink on a dark ground.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from drawing import DRAWINGS, LABELS, Point, draw_digit, draw_lines, stroke_points
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
INPUT_SIZE = 16
HANDWRITTEN_MAXIMUM = 16
HANDWRITTEN_TEST_PART = 0.2
WARPS_PER_HANDWRITTEN = 8
DRAWN_SIZE = 48
DRAWN_PER_DIGIT = 800
DRAWN_TEST_PER_DIGIT = 100
CALIBRATION_COUNT = 400
BATCH_SIZE = 64
LEARNING_RATE = 2e-3
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Samples:
    """Pictures of digits and what they show.

    Parameters
    ----------
    pixels : ndarray, uint8, shape (N, INPUT_SIZE, INPUT_SIZE, 1)
    digits : ndarray, int64, shape (N,)
    """

    pixels: npt.NDArray[np.uint8]
    digits: npt.NDArray[np.int64]

    @property
    def reals(self) -> npt.NDArray[np.float32]:
        """The pixels as the real values that the model sees, 0 to 1."""
        return self.pixels.astype(np.float32) / np.float32(255)

    def joined(self, other: Samples) -> Samples:
        """Return these samples followed by those of `other`."""
        pixels = np.concatenate([self.pixels, other.pixels])
        return Samples(pixels, np.concatenate([self.digits, other.digits]))


def to_pixels(picture: Image.Image) -> npt.NDArray[np.uint8]:
    """Bring a grey-scale picture to the model's input size.

    Parameters
    ----------
    picture : Image
        Mode "L".

    Returns
    -------
    ndarray, uint8, shape (INPUT_SIZE, INPUT_SIZE, 1)

    Notes
    -----
    Pillow's bilinear filter grows with the reduction, so that every pixel of the picture counts.
    """
    resized = picture.resize((INPUT_SIZE, INPUT_SIZE), Image.Resampling.BILINEAR)
    return np.asarray(resized, dtype=np.uint8)[..., np.newaxis]


def load_handwritten() -> tuple[Samples, Samples]:
    """Load the handwritten digits and hold a part of them out.

    Returns
    -------
    train, test : Samples
        Split at random, with the same part of each digit held out.
    """
    bunch = load_digits()
    levels = np.rint(bunch.images * (255 / HANDWRITTEN_MAXIMUM)).astype(np.uint8)
    pixels = np.stack([to_pixels(Image.fromarray(image)) for image in levels])
    digits = bunch.target.astype(np.int64)
    train_pixels, test_pixels, train_digits, test_digits = train_test_split(
        pixels, digits, test_size=HANDWRITTEN_TEST_PART, random_state=SEED, stratify=digits
    )
    return Samples(train_pixels, train_digits), Samples(test_pixels, test_digits)


def random_affine(generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Choose a small turn, slant, change of size and shift of the unit square about its centre.

    Parameters
    ----------
    generator : Generator

    Returns
    -------
    ndarray, float64, shape (3, 3)
        Maps columns (x, y, 1).
    """
    angle = math.radians(generator.uniform(-12, 12))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    slant = np.array([[1, generator.uniform(-0.25, 0.25)], [0, 1]])
    size = np.diag(generator.uniform(0.7, 1.1) * generator.uniform(0.9, 1.1, 2))
    affine = np.eye(3)
    affine[:2, :2] = turn @ slant @ size
    affine[:2, 2] = 0.5 - affine[:2, :2] @ (0.5, 0.5) + generator.uniform(-0.06, 0.06, 2)
    return affine


def warp(pixels: npt.NDArray[np.uint8], generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the picture moved by a random affine map, with black where nothing is known.

    Parameters
    ----------
    pixels : ndarray, uint8, shape (INPUT_SIZE, INPUT_SIZE, 1)
    generator : Generator

    Returns
    -------
    ndarray, uint8, shape (INPUT_SIZE, INPUT_SIZE, 1)
    """
    to_pixel_places = np.diag([INPUT_SIZE, INPUT_SIZE, 1])
    to_unit_square = np.linalg.inv(to_pixel_places)
    backwards = to_pixel_places @ np.linalg.inv(random_affine(generator)) @ to_unit_square
    moved = Image.fromarray(pixels[..., 0]).transform(
        (INPUT_SIZE, INPUT_SIZE),
        Image.Transform.AFFINE,
        tuple(backwards[:2].ravel()),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(moved, dtype=np.uint8)[..., np.newaxis]


def with_warps(samples: Samples, generator: np.random.Generator) -> Samples:
    """Return the samples and `WARPS_PER_HANDWRITTEN` warped copies of each.

    Parameters
    ----------
    samples : Samples
    generator : Generator

    Returns
    -------
    Samples
    """
    copies = np.repeat(samples.pixels, WARPS_PER_HANDWRITTEN, axis=0)
    warped = np.stack([warp(pixels, generator) for pixels in copies])
    return samples.joined(Samples(warped, np.repeat(samples.digits, WARPS_PER_HANDWRITTEN)))


def bend(
    points: npt.NDArray[np.float64], generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Move points along smooth random waves, as an unsteady hand does.

    Parameters
    ----------
    points : ndarray, float64, shape (N, 2)
    generator : Generator

    Returns
    -------
    ndarray, float64, shape (N, 2)
    """
    waves = generator.uniform(-5, 5, (2, 2))
    phases = generator.uniform(0, 2 * math.pi, 2)
    return points + generator.uniform(0, 0.04, 2) * np.sin(points @ waves + phases)


def draw_randomly(digit: int, generator: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Draw a digit in one of its ways with a random pen and hand.

    Parameters
    ----------
    digit : int
    generator : Generator

    Returns
    -------
    ndarray, uint8, shape (INPUT_SIZE, INPUT_SIZE, 1)
    """
    drawings = DRAWINGS[LABELS[digit]]
    drawing = drawings[generator.integers(len(drawings))]
    strokes = [np.array(stroke_points(stroke)) for stroke in drawing]
    # One hand draws all strokes of a digit, so that they are moved together.
    points = bend(np.concatenate(strokes), generator)
    affine = random_affine(generator)
    moved = points @ affine[:2, :2].T + affine[:2, 2]
    ends = np.cumsum([len(stroke) for stroke in strokes])[:-1]
    lines: list[list[Point]] = [
        [(x, y) for x, y in line.tolist()] for line in np.split(moved, ends)
    ]
    return to_pixels(draw_lines(lines, DRAWN_SIZE, generator.uniform(0.06, 0.16)))


def draw_samples(num_per_digit: int, generator: np.random.Generator) -> Samples:
    """Draw samples of every digit.

    Parameters
    ----------
    num_per_digit : int
    generator : Generator

    Returns
    -------
    Samples
    """
    digits = np.repeat(np.arange(len(LABELS)), num_per_digit)
    return Samples(np.stack([draw_randomly(int(digit), generator) for digit in digits]), digits)


def draw_pictures() -> Samples:
    """Draw the ten pictures that lie next to this file.

    Returns
    -------
    Samples
    """
    pixels = np.stack([to_pixels(draw_digit(label)) for label in LABELS])
    return Samples(pixels, np.arange(len(LABELS)))


def build_model(batch_size: int | None = None) -> tf.keras.Model:
    """Build the network.

    Parameters
    ----------
    batch_size : int, optional
        Fixes N; otherwise it stays free.

    Returns
    -------
    Model
        Input float32, shape (N, INPUT_SIZE, INPUT_SIZE, 1), 0 to 1; output float32, shape (N, 10),
        probabilities.
    """
    layers = tf.keras.layers
    image = layers.Input((INPUT_SIZE, INPUT_SIZE, 1), batch_size, name="image")
    edges = layers.Conv2D(16, 3, padding="same", activation="relu", name="edges")(image)
    edges = layers.MaxPooling2D(name="edges_pool")(edges)
    features = layers.DepthwiseConv2D(
        3, padding="same", activation="relu", name="features_depthwise"
    )(edges)
    features = layers.Conv2D(16, 1, name="features_pointwise")(features)
    features = layers.ReLU(name="features_relu")(layers.Add(name="features_add")([edges, features]))
    features = layers.MaxPooling2D(name="features_pool")(features)
    parts = layers.Conv2D(32, 3, activation="relu", name="parts")(features)
    parts = layers.Dropout(0.2, name="parts_dropout")(layers.Flatten(name="parts_flat")(parts))
    probabilities = layers.Dense(len(LABELS), activation="softmax", name="digit")(parts)
    return tf.keras.Model(image, probabilities, name="digits")


def train(model: tf.keras.Model, samples: Samples, num_epochs: int) -> None:
    """Train the network in place, with a step size that falls to zero along a cosine.

    Parameters
    ----------
    model : Model
    samples : Samples
    num_epochs : int
    """
    num_steps = num_epochs * math.ceil(len(samples.digits) / BATCH_SIZE)
    schedule = tf.keras.optimizers.schedules.CosineDecay(LEARNING_RATE, num_steps)
    model.compile(
        tf.keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(samples.reals, samples.digits, batch_size=BATCH_SIZE, epochs=num_epochs, verbose=2)


def convert(model: tf.keras.Model, calibration: Samples) -> bytes:
    """Convert the network to a TFLite model with int8 input, output and operators.

    Parameters
    ----------
    model : Model
    calibration : Samples
        What the ranges of the activations are measured on.

    Returns
    -------
    bytes
        The file's content. The batch is 1 and all shapes are static.
    """
    fixed = build_model(batch_size=1)
    fixed.set_weights(model.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([real[np.newaxis]] for real in calibration.reals)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    # One scale per weight tensor: scales per channel are less widely supported for FULLY_CONNECTED.
    # There is no public option.
    converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    content: bytes = converter.convert()
    return content


def run_int8(content: bytes, samples: Samples) -> npt.NDArray[np.float32]:
    """Run a converted model with the TFLite interpreter.

    Parameters
    ----------
    content : bytes
    samples : Samples

    Returns
    -------
    ndarray, float32, shape (N, 10)
        Probabilities, dequantised.
    """
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero_point = source["quantization"]
    quantised = np.clip(np.rint(samples.reals / scale) + zero_point, -128, 127).astype(np.int8)
    outputs = []
    for image in quantised:
        interpreter.set_tensor(source["index"], image[np.newaxis])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(target["index"])[0])
    scale, zero_point = target["quantization"]
    return (np.stack(outputs).astype(np.float32) - np.float32(zero_point)) * np.float32(scale)


def accuracy(probabilities: npt.NDArray[np.float32], samples: Samples) -> float:
    """Return the part of the samples whose likeliest digit is the right one.

    Parameters
    ----------
    probabilities : ndarray, float32, shape (N, 10)
    samples : Samples

    Returns
    -------
    float
    """
    return float(np.mean(probabilities.argmax(axis=1) == samples.digits))


def report_pictures(probabilities: npt.NDArray[np.float32]) -> bool:
    """Print what the model makes of the ten pictures.

    Parameters
    ----------
    probabilities : ndarray, float32, shape (10, 10)

    Returns
    -------
    bool
        Whether all of them are classified right.
    """
    for label, row in zip(LABELS, probabilities, strict=True):
        second, first = np.argsort(row, kind="stable")[-2:]
        margin = f"{row[first]:.3f} against {row[second]:.3f} for the runner-up"
        print(f"{label}.png: {LABELS[first]}, {margin}")
    return bool(np.all(probabilities.argmax(axis=1) == np.arange(len(LABELS))))


def main() -> None:
    """Train, convert, measure and write the model."""
    parser = argparse.ArgumentParser(description="Train the int8 digits model.")
    parser.add_argument(
        "--output", type=Path, default=HERE, help="folder for digits_int8.tflite and labels.txt"
    )
    parser.add_argument(
        "--epochs", type=int, default=30, help="number of passes over the training samples"
    )
    options = parser.parse_args()

    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    generator = np.random.default_rng(SEED)
    handwritten, handwritten_test = load_handwritten()
    drawn = draw_samples(DRAWN_PER_DIGIT, generator)
    tests = {
        "handwritten": handwritten_test,
        "drawn": draw_samples(DRAWN_TEST_PER_DIGIT, generator),
    }
    samples = with_warps(handwritten, generator).joined(drawn)

    model = build_model()
    train(model, samples, options.epochs)
    chosen = generator.choice(len(samples.digits), CALIBRATION_COUNT, replace=False)
    content = convert(model, Samples(samples.pixels[chosen], samples.digits[chosen]))

    for name, test in tests.items():
        float_accuracy = accuracy(model.predict(test.reals, verbose=0), test)
        int8_accuracy = accuracy(run_int8(content, test), test)
        accuracies = f"float {float_accuracy:.4f}, int8 {int8_accuracy:.4f}"
        print(f"{name} test, {len(test.digits)} pictures: {accuracies}")
    if not report_pictures(run_int8(content, draw_pictures())):
        sys.exit("A picture is classified wrongly; nothing was written.")

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "digits_int8.tflite").write_bytes(content)
    labels = "".join(f"{label}\n" for label in LABELS)
    (options.output / "labels.txt").write_text(labels, encoding="utf-8")
    print(f"digits_int8.tflite: {len(content)} bytes")


if __name__ == "__main__":
    main()
