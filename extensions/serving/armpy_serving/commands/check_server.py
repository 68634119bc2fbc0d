"""Options of ``armpy check-server``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import json_option, verbosity_options


@click.command("check-server", short_help="Try a server of the Open Inference Protocol.")
@click.argument("url")
@click.option("--model", required=True, metavar="NAME", help="A model that the server serves.")
@click.option("--grpc", "grpc_address", metavar="HOST:PORT", help="Also try its calls of gRPC.")
@click.option("--filter", "filters", multiple=True, metavar="TEXT", help="Try rules with TEXT.")
@click.option("--list", "only_list", is_flag=True, help="Print the ids of the rules.")
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_serving.commands.server_trial:check_server")
def command() -> None:
    """Send right and wrong requests to the server at URL, and report the rules that it breaks.

    Inputs are ones, in the model's shapes; open dimensions are 1. The exit code is 1 if a rule is
    broken, and 2 if no server answers or it does not serve the model.

    For example: armpy check-server http://localhost:8080 --model digits
    """
