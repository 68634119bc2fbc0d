"""What `armpy inspect` says of models with control flow."""

from __future__ import annotations

from armpy.cli.inspect.describe import report_of
from armpy.inspect import describe_model
from armpy.model import Model
from tests.support.control_flow import loop
from tests.support.fake_backends import runtime_of


def test_layers_in_graphs_are_counted_and_named_with_where_they_are() -> None:
    model = Model(loop(3), runtime_of())
    report = report_of(model.graph, model.placement, describe_model(model))
    assert report.facts.operators == {"While": 1, "Comparison": 1, "ElementwiseBinary": 1}
    assert [program.name for program in report.facts.programs] == [
        "loop",
        "loop/condition/Comparison_0",
        "loop/body/count",
    ]
    assert report.weights_bytes == 8
