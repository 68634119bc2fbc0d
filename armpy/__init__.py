"""armpy runs neural networks in Python on whatever accelerators are installed beside it.

Examples
--------
>>> import armpy
>>> model = armpy.load("model.tflite")                              # doctest: +SKIP
>>> outputs = model(image)                                          # doctest: +SKIP
"""

from armpy.core.lazy import offer

__version__ = "0.1.0"
__getattr__, __dir__ = offer(__name__)
