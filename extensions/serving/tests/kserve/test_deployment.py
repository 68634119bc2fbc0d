"""The example's files for clusters use arguments that the program takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from armpy_testing.checkout import checkout_path

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

FOLDER = checkout_path("examples", "serving", "kserve")


def document(name: str) -> dict[str, Any]:
    """One of the files."""  # Any: YAML
    content = yaml.safe_load((FOLDER / name).read_text())
    assert isinstance(content, dict)
    return content


@pytest.fixture
def container() -> dict[str, Any]:
    """The runtime's container."""  # Any: YAML
    (only_container,) = document("runtime.yaml")["spec"]["containers"]
    assert isinstance(only_container, dict)
    return only_container


def test_the_program_takes_the_arguments(container: dict[str, Any]) -> None:
    pytest.importorskip("kserve", reason="kserve is not installed")
    from armpy_serving.kserve.options import make_parser

    parsed = make_parser().parse_args(container["args"])
    assert parsed.host == "0.0.0.0"
    assert parsed.model_dir == "/mnt/models"
    assert {port["containerPort"] for port in container["ports"]} <= {
        parsed.http_port,
        parsed.grpc_port,
    }
    with pytest.raises(SystemExit):
        make_parser().parse_args([*container["args"], "--no_such_flag=1"])


def test_the_environment_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kserve", reason="kserve is not installed")
    from armpy_serving.kserve.options import make_parser

    text = (FOLDER / "Containerfile").read_text()
    variables = {*re.findall(r"ARMPY_SERVING_\w+", text)}
    model = document("service.yaml")["spec"]["predictor"]["model"]
    variables |= {variable["name"] for variable in model["env"]}
    known = {f"ARMPY_SERVING_{dest.upper()}" for dest in vars(make_parser().parse_args([]))}
    assert variables <= known


def test_the_image_starts_the_program() -> None:
    text = (FOLDER / "Containerfile").read_text()
    (entry,) = re.findall(r"ENTRYPOINT \[(.*)\]", text)
    assert shlex.split(entry.replace(",", " ")) == ["python", "-m", "armpy_serving.kserve"]
    assert re.search(r"^USER \d+$", text, re.M)  # not root
