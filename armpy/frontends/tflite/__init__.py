"""Front-end for .tflite files."""

from armpy.frontends.tflite.parser import parse_tflite, signatures
from armpy.frontends.tflite.signatures import TfliteSignature

__all__ = ["TfliteSignature", "parse_tflite", "signatures"]
