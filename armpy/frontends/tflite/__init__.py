"""Front-end for .tflite files."""

from armpy.frontends.tflite.parser import parse_tflite, signatures
from armpy.frontends.tflite.signatures import Signature

__all__ = ["Signature", "parse_tflite", "signatures"]
