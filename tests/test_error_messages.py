"""Texts of the errors that users meet most, beside this file: error_messages.txt."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, Quantization, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.errors import ArmpyError
from armpy.model import prepare_for
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import FakeBackend, registry_of, runtime_of

DIGITS = Path(__file__).parent.parent / "examples" / "digits"
FILE = str(DIGITS / "digits_int8.tflite")
ZEROS = np.zeros((1, 16, 16, 1), np.int8)
X = TensorInfo((2, 3), DataType.FLOAT32)


def damaged() -> bytes:
    """A model file with a part overwritten."""
    content = bytearray(Path(FILE).read_bytes())
    content[200:600] = b"\xff" * 400
    return bytes(content)


def load(source: object = FILE, **options: object) -> Model:
    """A model on CpuRef."""
    return armpy.load(source, **{"backends": ["CpuRef"], **options})  # type: ignore[arg-type]


def written(name: str, content: bytes) -> str:
    """The path of a new file in the current folder."""
    Path(name).write_bytes(content)
    return name


def network(*others: TensorInfo, shape: tuple[int | None, ...] = (2, 3)) -> Network:
    """A network that adds its input to another input, or to itself."""
    net = Network()
    x = net.input("x", TensorInfo(shape, DataType.FLOAT32))
    operands = [net.input(f"x{i}", info) for i, info in enumerate(others)]
    net.output("y", net.add(ops.ElementwiseBinary(), x, *operands or [x], name="sum"))
    return net


def closed() -> Array:
    model = load()
    model.close()
    return model.run({})  # type: ignore[return-value]


def weights_of_rank_3() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 8, 8, 3), DataType.FLOAT32))
    net.add(ops.Convolution2d(), x, net.constant(np.ones((3, 3, 16), np.float32)), None)


def input_twice() -> None:
    net = Network()
    net.input("x", X)
    net.input("x", X)


def missing_operand() -> None:
    net = Network()
    net.add(ops.ElementwiseBinary(), net.input("x", X))


def without_output() -> None:
    net = Network()
    net.input("x", X)
    net.build()


def with_runtime() -> None:
    with Runtime(RuntimeOptions(["CpuRef"])) as runtime:
        armpy.load(FILE, runtime=runtime, num_threads=2)


def broken_backend() -> None:
    def create() -> FakeBackend:
        raise OSError("libnpu.so: cannot open shared object file")

    registry = registry_of()
    registry.register("Npu", create)
    Runtime(RuntimeOptions(["Npu"], registry=registry))


class Lost(FakeBackend):
    """A device that fails when it executes."""

    def execute(self, *arguments: object) -> None:
        raise RuntimeError("device lost")


def lost_device() -> None:
    with runtime_of(Lost()) as runtime:
        Model(network(), runtime=runtime).run({"x": np.ones((2, 3), np.float32)})


def reshaped_to_more() -> None:
    net = Network()
    net.add(ops.Reshape((4, 2)), net.input("x", X))


def output_twice() -> None:
    net = network()
    net.output("y", net.input("z", X))


def open_shape() -> None:
    Model(network(shape=(None, 3))).run({"x": np.ones((2, 4), np.float32)})


def window() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, None, None, 3), DataType.FLOAT32))
    weights = net.constant(np.ones((4, 5, 5, 3), np.float32))
    net.output("y", net.add(ops.Convolution2d(), x, weights, None, name="conv"))
    Model(net)(np.zeros((1, 3, 9, 3), np.float32))


def elements() -> None:
    net = Network()
    x = net.input("x", TensorInfo((None, None), DataType.FLOAT32))
    net.output("y", net.add(ops.Reshape((4, 128)), x, name="rows"))
    Model(net).prepare({"x": (1, 1024)})


def fallback_refused() -> None:
    with runtime_of(FakeBackend(operations=()), on_fallback="error") as runtime:
        Model(network(), runtime=runtime)


def threads_as_text() -> None:
    options = {"NumbaAcc": {"num_threads": "two"}}
    with Runtime(RuntimeOptions(["NumbaAcc"], backend_options=options)):
        pass


MESSAGES: dict[str, Callable[[], object]] = {
    "no file": lambda: load("cat.tflite"),
    "empty file": lambda: load(written("empty.tflite", b"")),
    "cut file": lambda: load(written("cut.tflite", Path(FILE).read_bytes()[:3000])),
    "damaged file": lambda: load(written("damaged.tflite", damaged())),
    "damaged header": lambda: load(written("damaged.armpy", b"armpyNet" + bytes(20))),
    "folder": lambda: load("."),
    "number for a model": lambda: load(42),
    "backend with a slip": lambda: load(backends=["NumbaAc"]),
    "empty backends": lambda: load(backends=[]),
    "no threads": lambda: load(num_threads=0),
    "list for a mapping": lambda: load(affinity=["CpuRef"]),
    "mapping for properties": lambda: load(properties={"profiling": True}),
    "unknown choice": lambda: load(on_fallback="err"),
    "unknown signature": lambda: load(signature="serve"),
    "options beside a runtime": with_runtime,
    "memory limit": lambda: load(memory_limit_bytes=100),
    "affinity of no layer": lambda: load(affinity={"conv": "CpuRef"}),
    "affinity to no backend": lambda: load(affinity={"*": "Npu"}),
    "no key": lambda: load(trusted_keys=["abc.pem"]),
    "shape": lambda: load()(np.zeros((1, 28, 28, 1), np.int8)),
    "float for int8": lambda: load()(ZEROS.astype(np.float32)),
    "no batch": lambda: load()(ZEROS[0]),
    "other batch": lambda: load()(np.zeros((8, 16, 16, 1), np.int8)),
    "open shape": open_shape,
    "too few bytes": lambda: load()(b"123"),
    "array for shapes": lambda: load().prepare(ZEROS),  # type: ignore[arg-type]
    "missing folder": lambda: load().save("missing/model.armpy"),
    "callback": lambda: load().run({load().inputs[0].name: ZEROS}, debug=3),  # type: ignore[arg-type]
    "unknown input": lambda: load().run({"image": ZEROS}),
    "no input": lambda: load().run({}),
    "inputs too many": lambda: load()(ZEROS, ZEROS),
    "None for an array": lambda: load()(None),
    "uneven list": lambda: load()([[1, 2], [3]]),
    "unknown output": lambda: load().run({}, outputs=["scores"]),
    "closed model": closed,
    "negative deadline": lambda: load().run({load().inputs[0].name: ZEROS}, deadline_s=-1),
    "deadline": lambda: load().run({load().inputs[0].name: ZEROS}, deadline_s=1e-9),
    "no broadcast": lambda: network(TensorInfo((4,), DataType.FLOAT32)),
    "types": lambda: network(TensorInfo((2, 3), DataType.SIGNED32)),
    "rank of weights": weights_of_rank_3,
    "missing operand": missing_operand,
    "input twice": input_twice,
    "output twice": output_twice,
    "elements of a reshape": reshaped_to_more,
    "operation by name": lambda: Network().add("Relu"),  # type: ignore[arg-type]
    "data type by name": lambda: TensorInfo((1,), "float32"),  # type: ignore[arg-type]
    "id of a backend twice": lambda: armpy.backend_registry().register("CpuRef", FakeBackend),
    "no output": without_output,
    "negative size": lambda: TensorInfo((1, -1), DataType.FLOAT32),
    "scale of zero": lambda: Quantization.per_tensor(0.0),
    "id of no network": lambda: Runtime(RuntimeOptions(["CpuRef"])).unload_network(7),
    "option of a backend": threads_as_text,
    "broken backend": broken_backend,
    "lost device": lost_device,
    "address": lambda: load("https://host/model.onnx"),
    "array for a model": lambda: load(ZEROS),
    "window larger than the call": window,
    "elements of a call": elements,
    "no shape yet": lambda: prepare_for(Model(network(shape=(None, 3))), {}),
    "no batch to choose": lambda: prepare_for(load(), {}, 7),
    "target": lambda: load().save("m.armpy", targets=["avx2"]),
    "text for targets": lambda: load().save("m.armpy", targets="host"),
    "path for a signer": lambda: load().save("m.armpy", sign="key.pem"),  # type: ignore[arg-type]
    "no shape to prepare": lambda: Model(network(shape=(None, 3))).prepare(),
    "refused fallback": fallback_refused,
}

SNAPSHOT = Path(__file__).with_name("error_messages.txt")


def text_of(provoke: Callable[[], object]) -> str:
    """Class and text of the error of a wrong use, without what differs between machines."""
    with pytest.raises(ArmpyError) as caught:
        provoke()
    text = f"{type(caught.value).__name__}: {caught.value}"
    text = text.replace(os.getcwd(), "FOLDER").replace(str(DIGITS), "DIGITS")
    return re.sub(r"\.py:\d+", ".py", text.replace(armpy.__version__, "VERSION"))


@pytest.mark.skipif(os.name != "posix", reason="the texts have paths of POSIX")
def test_texts_are_those_that_a_person_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one place that compares whole texts: other tests match parts of them.

    To change a text, change its line in the file, or replace the file by what this test prints.
    """
    monkeypatch.chdir(tmp_path)
    texts = [f"{name}\n    {text_of(provoke)}\n" for name, provoke in MESSAGES.items()]
    text = "\n".join(texts)
    print(text)
    assert text.split("\n") == SNAPSHOT.read_text("utf-8").split("\n")
