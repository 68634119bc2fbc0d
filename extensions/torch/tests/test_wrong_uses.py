"""Wrong uses: each is an error of armpy's, or PyTorch's own, that names the thing and the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

from torch import nn  # noqa: E402

import armpy_torch  # noqa: E402
from armpy.errors import (  # noqa: E402
    ArmpyError,
    BackendCapabilityError,
    BackendUnavailableError,
    InvalidArgumentError,
    UnimplementedError,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch and its exporter, about themselves

Tensor: TypeAlias = Any  # PyTorch may be missing

VALUES = torch.ones(2, 3)


def call(program: Callable[..., object] = torch.relu, **arguments: object) -> object:
    """Compile a program, and call it."""
    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(program, backend="armpy", **arguments)(VALUES)


def options(**given: object) -> Callable[[], object]:
    return lambda: call(options=given)


def trained() -> object:
    model = nn.Linear(3, 1)
    torch._dynamo.reset()
    return torch.compile(model, backend="armpy")(VALUES).sum().backward()


def strict(program: Callable[..., object]) -> Callable[[], object]:
    return lambda: call(program, options={"on_fallback": "error"})


def exported(program: Callable[..., object], *arguments: Tensor) -> object:
    class Module(nn.Module):
        def forward(self, *values: Tensor) -> object:
            return program(*values)

    return torch.export.export(Module(), arguments)


WRONG: dict[str, tuple[Callable[[], object], type[ArmpyError], str]] = {
    "an option that does not exist": (
        options(backend=["CpuRef"]),
        InvalidArgumentError,
        r"options: there is no such option.*got 'backend'. Did you mean 'backends'",
    ),
    "an option of Inductor": (
        options(max_autotune=True),
        InvalidArgumentError,
        r"got 'max_autotune'. See armpy.RuntimeOptions",
    ),
    "a backend that is not installed": (
        options(backends=["Npu9"]),
        BackendUnavailableError,
        "Npu9",
    ),
    "one id in place of several": (
        options(backends="CpuRef"),
        InvalidArgumentError,
        "backends.*a sequence of ids",
    ),
    "no threads": (options(num_threads=0), InvalidArgumentError, "num_threads.*0"),
    "a fallback that does not exist": (
        options(on_fallback="raise"),
        InvalidArgumentError,
        "on_fallback.*'raise'",
    ),
    "a size that is a text": (
        options(memory_limit_bytes="4 GiB"),
        InvalidArgumentError,
        "memory_limit_bytes.*'4 GiB'",
    ),
    "a preference that does not exist": (
        options(preference="quickest"),
        InvalidArgumentError,
        "preference.*'quickest'",
    ),
    "a mode of Inductor": (
        lambda: call(mode="max-autotune"),
        InvalidArgumentError,
        r"mode: the mode is one of Inductor's.*'max-autotune'",
    ),
    "gradients": (trained, UnimplementedError, r"no gradients.*torch.no_grad\(\)"),
    "random numbers where fallbacks are errors": (
        strict(lambda x: nn.functional.dropout(x, 0.5, True)),
        BackendCapabilityError,
        r"random numbers.*on_fallback.*allow",
    ),
    "an operator without ONNX where fallbacks are errors": (
        strict(lambda x: torch.linalg.eigvalsh(x @ x.T)),
        BackendCapabilityError,
        "linalg",
    ),
    "a view where fallbacks are errors": (
        strict(lambda x: x.transpose(0, 1)),
        BackendCapabilityError,
        "output 0, input '.*': an output shares memory with an input",
    ),
    "an operator that is not proved where fallbacks are errors": (
        strict(lambda x: nn.functional.avg_pool2d(x[None], 2, divisor_override=3)),
        BackendCapabilityError,
        r"avg_pool2d.*not proved for float32 with divisor_override=\+",
    ),
    "verify that is no truth value": (
        options(verify="no"),
        InvalidArgumentError,
        "verify.*bool.*'no'",
    ),
    "complex numbers where fallbacks are errors": (
        strict(lambda x: torch.complex(x, x)),
        BackendCapabilityError,
        "complex numbers.*view_as_real",
    ),
    "more memory than allowed": (
        lambda: call(
            lambda x: x.repeat(100, 100) + 1,
            options={"memory_limit_bytes": 1000, "on_fallback": "error"},
        ),
        ArmpyError,
        "memory_limit_bytes|1000 bytes",
    ),
    "a module in place of an exported program": (
        lambda: armpy_torch.load(nn.Linear(3, 1)),
        InvalidArgumentError,
        r"armpy_torch.load.*ExportedProgram; got Linear.*torch.export.export",
    ),
    "a file in place of an exported program": (
        lambda: armpy_torch.load("model.pt2"),
        InvalidArgumentError,
        r"got 'model.pt2'. Pass torch.export",
    ),
    "an unknown option of load": (
        lambda: armpy_torch.load(exported(torch.relu, VALUES), threads=2),
        InvalidArgumentError,
        r"armpy_torch.load: there is no such option.*'threads'",
    ),
    "an exported program with random numbers": (
        lambda: armpy_torch.load(exported(torch.rand_like, VALUES)),
        UnimplementedError,
        "random numbers",
    ),
    "an exported program without ONNX operators": (
        lambda: armpy_torch.load(exported(torch.linalg.eigvalsh, torch.eye(3))),
        UnimplementedError,
        "linalg.*no ONNX operators",
    ),
    "an input of another shape": (
        lambda: armpy_torch.load(exported(torch.relu, VALUES))(torch.ones(2, 4)),
        InvalidArgumentError,
        r"\(2, 3\).*\(2, 4\)",
    ),
    "a tensor on another device": (
        lambda: armpy_torch.load(exported(torch.relu, VALUES))(VALUES.to("meta")),
        InvalidArgumentError,
        r"input 'values_0'.*meta.*got torch.Tensor. Copy it to the host",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_is_a_clear_error(name: str) -> None:
    use, kind, pattern = WRONG[name]
    with pytest.raises(kind, match=f"(?s){pattern}"):
        use()
