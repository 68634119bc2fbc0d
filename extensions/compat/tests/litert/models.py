"""Small .tflite files for the tests of LiteRT's interface."""

from __future__ import annotations

import base64
import zlib

from armpy_testing.models.tflite_writer import TfliteModel


def doubling(*, is_open: bool = False, middle: str = "sum", has_output: bool = True) -> bytes:
    """y = x + x of shape (1, 2), between two additions; the first size may be open."""
    model = TfliteModel()
    graph = model.subgraph()
    signature = (-1, 2) if is_open else None
    x, sum_, y = (
        graph.tensor(name, (1, 2), "FLOAT32", shape_signature=signature)
        for name in ("x", middle, "y")
    )
    unit = graph.tensor("one", (1, 2), "FLOAT32", data=[1.0, 1.0])
    graph.operator("ADD", [x, unit], [sum_])
    graph.operator("ADD", [sum_, x], [y])
    graph.inputs(x)
    if has_output:
        graph.outputs(y)
    return model.to_bytes()


def quantized() -> bytes:
    """y = relu(x) of unsigned bytes, whose scales differ."""
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (1, 4), "UINT8", scale=0.5, zero_point=128)
    y = graph.tensor("y", (1, 4), "UINT8", scale=0.25, zero_point=0)
    graph.operator("RELU", [x], [y])
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


def two_signatures() -> bytes:
    """Signatures "negate" of the main subgraph, and "add" of another with two inputs."""
    model = TfliteModel()
    main = model.subgraph()
    x, y = (main.tensor(name, (2,), "FLOAT32") for name in ("main_x", "main_y"))
    main.operator("NEG", [x], [y])
    main.inputs(x)
    main.outputs(y)
    other = model.subgraph("other")
    b, a, total = (other.tensor(name, (2,), "FLOAT32") for name in ("add_b", "add_a", "add_total"))
    other.operator("ADD", [b, a], [total])
    other.inputs(b, a)
    other.outputs(total)
    model.signature("negate", inputs={"x": x}, outputs={"y": y})
    model.signature("add", inputs={"b": b, "a": a}, outputs={"total": total})
    return model.to_bytes()


def gathered_strings() -> bytes:
    """The strings at two places of three."""
    model = TfliteModel()
    graph = model.subgraph()
    words = graph.tensor("words", (3,), "STRING")
    places = graph.tensor("places", (2,), "INT64")
    chosen = graph.tensor("chosen", (2,), "STRING")
    graph.operator("GATHER", [words, places], [chosen], options={"axis": 0})
    graph.inputs(words, places)
    graph.outputs(chosen)
    return model.to_bytes()


def complex_squares() -> bytes:
    """y = x * x of complex numbers."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, (2, 3), "COMPLEX64") for name in "xy")
    graph.operator("MUL", [x, x], [y])
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


def softmax_of_any_shape() -> bytes:
    """y = softmax(x), both without a rank."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, None, "FLOAT32") for name in "xy")
    graph.operator("SOFTMAX", [x], [y], {"beta": 1.0})
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


_BLOCKS = (
    "eNqTYGBgCHHzMWZg4GMQYRBg4GHgAIqwAHkMQB4DwxUgTmFiYGBmgOADQKwDVsHA8Oj///8sUHUHVH9opOgY6FzStd"
    "L5qTFRi4GBDWgSC5CEqG0AYtULc2dFJymYCxXGTo6baLI1SvLWh/krLRV0ntSX2qmbPt5myHqPP7nqgfAd4QdPcs8o"
    "r4zzP5sy6/HGr26Hp3zcvlzomtm2kpeLFFL+F3D/VK8r+unKz+/zy9ckbbVVevG0qKrSfQV5cTxnw7KPy3/KnmyqPc"
    "Fsrhd32tyARY/+lEkfOZtzhoWBBewWRqibeeA+ZgGSELEUIM4A4hyoOhEGEOAD0yC13NCwkQGLM3CAaAWwWRxgAXag"
    "j3nALEZGkH4maLgxQM0DBtl/mDgjVBzkpgdAXADENihu40dxGxPUGB6o3mKoGAuULgCazQHWC5GvRLKHBeoPCaC5wl"
    "A/g/yhAsQuCLcIOoDt4mKAAU6gOgGo/QxMXPDw4oL6G+QfZqj+ciT3OIDdAQsViB+Q3VaB5DYHlDgB+ZoB7m9OIOaF"
    "OgUAy1Vhzw=="
)


def product_of_blocks() -> bytes:
    """y = x * w of 64 inputs and 4 units, with weights of 4 bits and float16 scales (4, 2).

    Compressed, as the package that the other models are written with lacks the table.
    """
    return zlib.decompress(base64.b64decode(_BLOCKS))


def of_custom_operator() -> bytes:
    """An operator that neither engine has."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, (2,), "FLOAT32") for name in "xy")
    graph.operator("CUSTOM", [x], [y], custom_code="MyOperator")
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()
