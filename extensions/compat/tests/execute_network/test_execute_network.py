"""ExecuteNetwork takes the options of Arm NN 24.02 and prints its lines."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy_compat.armnn_format import write
from armpy_compat.execute_network.command import main
from armpy_compat.execute_network.options import DEPRECATED, make_parser
from armpy_compat.execute_network.tensor_texts import byte_level_error, parsed_numbers

OPTIONS_24_02 = """
    -c --compute -m --model-path -i --input-name -o --output-name -b --dynamic-backends-path
    -P --thread-pool-size -d --input-tensor-data -h --infer-output-shape --allow-expanded-dims
    -I --iterations -l --dequantize-output -p --print-intermediate-layers
    -F --print-intermediate-layers-to-file --parse-unsupported -N --do-not-print-output
    -q --quantize-input -r --threshold-time -s --input-tensor-shape
    -v --visualize-optimized-model -w --write-outputs-to-file -x --subgraph-number
    -T --tflite-executor -C --compare-output -B --compare-output-with-backend
    -A --compare-with-tflite --enable-fast-math --number-of-threads --save-cached-network
    --cached-network-filepath --fp16-turbo-mode --tuning-level --tuning-path --MLGOTuningFilePath
    -R --reuse-buffers -a -g --file-format -j -k --timeline-profiling -u
    -e --event-based-profiling --output-network-details --output-network-details-only
    --import-inputs-if-aligned -f --model-format -n --concurrent -y --input-type
    -z --output-type --bf16-turbo-mode
"""

FLOAT_OUTPUT = "y: 0.500000 2.500000 4.500000 \n"


@pytest.fixture
def float_model(tmp_path: Path) -> Path:
    """``y = 2 x + 0.5`` of three elements."""
    net = Network("small")
    x = net.input("x", TensorInfo((1, 3), DataType.FLOAT32))
    two, half = (net.constant(np.array(number, np.float32)) for number in (2, 0.5))
    doubled = net.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), x, two, name="doubled")
    sums = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    net.output("y", net.add(sums, doubled, half, name="sums"))
    path = tmp_path / "small.armnn"
    path.write_bytes(write(net))
    return path


@pytest.fixture
def quantized_model(tmp_path: Path) -> Path:
    """The input itself, rectified at 128."""
    net = Network("bytes")
    scaled = Quantization.per_tensor(0.5, 128)
    x = net.input("x", TensorInfo((4,), DataType.QASYMM_U8, scaled))
    net.output("y", net.add(ops.Activation(ops.ActivationFunction.RELU), x, name="relu"))
    path = tmp_path / "bytes.armnn"
    path.write_bytes(write(net))
    return path


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "x.txt"
    path.write_text("0 1,2\n", encoding="utf-8")
    return path


def test_every_option_of_arm_nn_is_taken() -> None:
    known = {option for action in make_parser()._actions for option in action.option_strings}
    assert set(OPTIONS_24_02.split()) <= known


def test_the_lines_are_those_of_arm_nn(
    float_model: Path, numbers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model), "-d", str(numbers)]) == 0
    text = re.sub(r"\d+\.\d\d ms", "T ms", capsys.readouterr().out)
    assert text == (
        "Info: ArmNN v33.1.0\n"
        "Info: Initialization time: T ms.\n"
        "Info: Optimization time: T ms.\n"
        "===== Network Info =====\n"
        "Inputs in order:\n"
        "x, [1,3], Float32\n"
        "Outputs in order:\n"
        "y, [1,3], Float32\n"
        "\n" + FLOAT_OUTPUT + "Info: Inference time: T ms\n"
        "\n"
        "Info: Shutdown time: T ms.\n"
    )


def test_quantised_tensors_are_described_and_printed_as_stored(
    quantized_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "x.txt"
    data.write_text("100:128\t130 255", encoding="utf-8")
    assert main(["-c", "CpuAcc,CpuRef", "-m", str(quantized_model), "-d", str(data)]) == 0
    text = capsys.readouterr().out
    assert "x, [4], QAsymmU8 Quantization Offset: 128 Quantization scale: 0.5\n" in text
    assert "y: 128 128 130 255 \n" in text


def test_real_numbers_are_quantised_and_dequantised_on_demand(
    quantized_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "x.txt"
    data.write_text("-1 0 1 1000", encoding="utf-8")
    assert main(["-c", "CpuRef", "-m", str(quantized_model), "-d", str(data), "-q", "-l"]) == 0
    assert "y: 0.000000 0.000000 1.000000 63.500000 \n" in capsys.readouterr().out


def test_inputs_without_files_are_zeros(
    float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model)]) == 0
    text = capsys.readouterr().out
    assert "Warning: No input files provided, input tensors will be filled with 0s.\n" in text
    assert "y: 0.500000 0.500000 0.500000 \n" in text


def test_outputs_go_to_a_file_that_can_be_compared_with(
    float_model: Path, numbers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "y.txt"
    command = ["-c", "CpuRef", "-m", str(float_model), "-d", str(numbers)]
    assert main([*command, "-w", str(written)]) == 0
    text = written.read_text(encoding="utf-8")
    assert text == "y, Float32 : 0.500000 2.500000 4.500000 \n"
    assert FLOAT_OUTPUT not in capsys.readouterr().out
    assert main([*command, "-N", "-C", str(written)]) == 0
    assert "Byte level root mean square error: 0\n" in capsys.readouterr().out
    written.write_text("y, Float32 : 1 2.5 4.5\n", encoding="utf-8")
    assert main([*command, "-N", "-C", str(written)]) == 0
    # 0.5 and 1.0 differ in the third byte of four, 0x00 and 0x80 as signed bytes, of twelve.
    assert f"error: {np.sqrt(128**2 / 12):g}\n" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["-A"], ["-B", "CpuAcc"], ["-B", "CpuRef", "-A"]])
def test_outputs_are_compared_with_other_backends(
    option: list[str], float_model: Path, numbers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-c", "CpuRef", "-m", str(float_model), "-d", str(numbers), *option]
    assert main(command) == 0
    text = capsys.readouterr().out
    expected = sum(name in ("-A", "-B") for name in option)
    assert text.count("Byte level root mean square error: 0\n") == expected
    assert text.count("===== Network Info =====\n") == expected + 1


def test_every_iteration_is_printed_and_has_files_of_its_own(
    float_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for number in range(2):
        path = tmp_path / f"{number}.txt"
        path.write_text(f"{number} 0 0", encoding="utf-8")
        files.append(str(path))
    command = ["-c", "CpuRef", "-m", str(float_model), "-I", "2", "-d", ",".join(files)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.index("y: 0.500000 0.5") < text.index("y: 2.500000 0.5")
    assert text.count("Info: Inference time:") == 2


def test_a_threshold_that_is_passed_is_reported(
    float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model), "-r", "0.000001"]) == 0
    text = capsys.readouterr().out
    assert "Info: Threshold time: 0.00 ms\n" in text
    assert re.search(r"Info: Threshold time - Inference time: -\d+\.\d\d ms\n", text)
    assert "Fatal: Elapsed inference time is greater than provided threshold time.\n" in text


def test_outputs_of_layers_are_printed(
    float_model: Path, numbers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-c", "CpuRef", "-m", str(float_model), "-d", str(numbers), "-p"]
    assert main(command) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    first = json.loads(lines[0])
    assert first["layerName"] == "doubled"
    assert first["data"] == [[0.0, 2.0, 4.0]]
    assert (first["min"], first["max"], first["shape"]) == (0.0, 4.0, [1, 3])


def test_outputs_of_layers_are_written_to_files(
    float_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["-c", "CpuRef", "-m", str(float_model), "-F"]) == 0
    text = (tmp_path / "ArmNNIntermediateLayerOutputs" / "sums.numpy").read_text(encoding="utf-8")
    assert json.loads(text)["data"] == [[0.5, 0.5, 0.5]]


def test_the_graph_is_written_beside_the_model(float_model: Path) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model), "-v"]) == 0
    assert float_model.with_suffix(".dot").read_text(encoding="utf-8").startswith("digraph")


def test_times_of_layers_are_a_json_object(
    float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model), "-e", "-N"]) == 0
    text = capsys.readouterr().out
    document = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert any("sums" in name for name in document["ArmNN"]["inference_measurements_#1"])


def test_backends_that_are_not_installed_are_refused(
    float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "EthosNAcc", "-m", str(float_model)]) == 1
    text = capsys.readouterr().out
    assert "Fatal: The list of preferred devices contains invalid backend IDs: EthosNAcc\n" in text
    assert re.search(
        r"Error: None of the preferred backends \[EthosNAcc \] are supported\. "
        r"Current platform provides \[.*CpuRef.* \]",
        text,
    )


def test_a_later_backend_takes_the_place_of_a_missing_one(
    float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-c", "EthosNAcc", "-c", "CpuRef", "-m", str(float_model)]) == 0
    assert "invalid backend IDs: EthosNAcc\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-m", "MODEL"], "Error: The program option 'compute' is mandatory but wasn't provided."),
        (["-c", "CpuRef"], "Error: The program option 'model-path' is mandatory but wasn't"),
        (["-c", "CpuRef", "-m", "x.pb"], "Unknown model format: '.pb'"),
        (["-c", "CpuRef", "-m", "gone.armnn"], "gone.armnn: no such file"),
        (["-c", "CpuRef", "-m", "MODEL", "-d", "gone.txt"], "input data file paths are not valid"),
        (["-c", "CpuRef", "-m", "MODEL", "-r", "-1"], "is less than zero"),
        (["-c", "CpuRef", "-m", "MODEL", "-I", "0"], "iterations is too small"),
        (["-c", "CpuRef", "-m", "MODEL", "-I", "many"], "invalid int value: 'many'"),
        (["-c", "CpuRef", "-m", "MODEL", "--nothing"], "unrecognized arguments: --nothing"),
        (["-c", "CpuRef", "-m", "MODEL", "--number-of-threads", "65"], "out of range"),
        (["-c", "CpuRef", "-m", "MODEL", "-i", "z", "-d", "DATA"], "the model has no input 'z'"),
        (["-c", "CpuRef", "-m", "MODEL", "-o", "z"], "the model has no output 'z'"),
        (["-c", "CpuRef", "-m", "MODEL", "-s", "1,3:2"], "must have the same amount of elements"),
        (["-c", "CpuRef", "-m", "MODEL", "-i", "x,z", "-d", "DATA"], "the network has 2 inputs"),
        (
            ["-c", "CpuRef", "-m", "MODEL", "--infer-output-shape", "--allow-expanded-dims"],
            "infer-output-shape and allow-expanded-dims cannot be used together.",
        ),
        (["-c", "CpuRef", "-m", "MODEL", "--bf16-turbo-mode"], "To use BF16 please use"),
        (["-c", "CpuRef", "-m", "MODEL", "-q", "perhaps"], "neither true nor false"),
    ],
)
def test_wrong_options_end_with_1_and_a_line_about_them(
    arguments: list[str],
    text: str,
    float_model: Path,
    numbers: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = {"MODEL": str(float_model), "DATA": str(numbers)}
    assert main([known.get(argument, argument) for argument in arguments]) == 1
    printed = capsys.readouterr().out
    assert text in printed
    assert re.search(r"^Error: ", printed, re.M)


def test_a_wrong_number_of_elements_names_the_file(
    float_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "x.txt"
    data.write_text("1 2", encoding="utf-8")
    assert main(["-c", "CpuRef", "-m", str(float_model), "-d", str(data)]) == 1
    assert f"Error: {data}: the number of elements is wrong. Expected 3; got 2." in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("option", ["-f=tflite-binary", "-n", "-y=float", "-z=float"])
def test_deprecated_options_have_a_note_and_no_effect(
    option: str, float_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = option.split("=")
    assert main(["-c", "CpuRef", "-m", str(float_model), *words]) == 0
    text = capsys.readouterr().out
    assert re.search(r"Warning: The option '[\w-]+' is deprecated and has no effect\.", text)
    assert len(DEPRECATED) == 5


def test_shapes_can_be_changed(float_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "CpuRef", "-m", str(float_model), "-s", "2,3"]) == 0
    assert "x, [2,3], Float32\n" in capsys.readouterr().out


def test_words_in_data_are_reported_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed_numbers("1,2:x 3") == [1, 2, 3]
    assert capsys.readouterr().out == "Error: 'x' is not a valid number. It has been ignored.\n"


def test_the_error_of_bytes_is_that_of_signed_ones() -> None:
    left, other = np.array([255, 0], np.uint8), np.array([1, 0], np.uint8)
    assert byte_level_error(left, other) == pytest.approx(np.sqrt(2))


def test_help_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-h"])
    assert ended.value.code == 0
    assert "--compute" in capsys.readouterr().out
