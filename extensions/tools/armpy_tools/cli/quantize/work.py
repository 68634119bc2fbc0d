"""Makes a model of small integers of a float model."""

from __future__ import annotations

import sys
from typing import Any

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import check_outputs
from armpy.cli.printer import print_json
from armpy_tools.cli.quantize.page import write_page
from armpy_tools.cli.quantize.quantize_file import QuantizeRequest, quantize_file
from armpy_tools.cli.quantize.report import print_quantized, quantized_document


def quantize(
    load_request: CliLoadRequest, as_json: bool, **options: Any
) -> None:  # Any: as click has it
    """Quantise MODEL to small integers, and report the accuracy."""
    with_layers, page_path = options.pop("with_layers"), options.pop("page_path")
    check_outputs(
        {"--output": options["output"], "--html": page_path},
        [load_request.model, options["data"]],
    )
    request = QuantizeRequest(**options)
    result = quantize_file(load_request, request)
    if page_path is not None:
        write_page(page_path, result)
    if sys.stderr is not None:
        is_logged = {*result.report.data_warnings()}
        for warning in (text for text in result.warnings if text not in is_logged):
            print(f"armpy: warning: {warning}.", file=sys.stderr)
        for hint in result.hints:
            print(f"armpy: hint: {hint}", file=sys.stderr)
    if as_json:
        print_json(quantized_document(result))
    else:
        print_quantized(result, with_layers=with_layers)
