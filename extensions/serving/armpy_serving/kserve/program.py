"""The program ``python -m armpy_serving.kserve``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from armpy.errors import ArmpyError
from armpy_serving.kserve.options import health_rules, load_options, make_parser
from armpy_serving.kserve.ports import check_free
from armpy_serving.kserve.repository import ArmpyModelRepository
from armpy_serving.kserve.server import ArmpyModelServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Load all models, and then serve them until a signal comes."""
    parsed = make_parser().parse_args(arguments)
    try:
        check_free(parsed.host, parsed.http_port, "--http_port")
        if parsed.enable_grpc:
            check_free(parsed.host, parsed.grpc_port, "--grpc_port")
        repository = ArmpyModelRepository(
            parsed.model_dir,
            parsed.model_name,
            load_options(parsed),
            max_waiting=parsed.max_waiting,
            rules=health_rules(parsed),
        )
        repository.load_models()
    except (ArmpyError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    server = ArmpyModelServer(
        repository,
        parsed.host,
        (parsed.grpc_max_send_message_length, parsed.grpc_max_receive_message_length),
        max_body_bytes=parsed.max_body_bytes,
        repository_api=parsed.repository_api and parsed.repository_api == "true",
        http_port=parsed.http_port,
        grpc_port=parsed.grpc_port,
        workers=parsed.workers,
        max_asyncio_workers=parsed.max_asyncio_workers,
        enable_grpc=parsed.enable_grpc,
        enable_latency_logging=parsed.enable_latency_logging,
        access_log_format=parsed.access_log_format,
        event_loop=parsed.event_loop,
        timeout_keep_alive=parsed.timeout_keep_alive,
        grace_period=parsed.grace_period,
        ssl_certfile=parsed.ssl_certfile,
        ssl_keyfile=parsed.ssl_keyfile,
    )
    server.start()
    return 0
