"""Serve models: ``python -m armpy_serving.kserve --model_dir DIR``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from armpy.errors import ArmpyError
from armpy_serving.kserve.options import load_options, make_parser
from armpy_serving.kserve.repository import ArmpyModelRepository
from armpy_serving.kserve.server import ArmpyModelServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Load all models, and then serve them until a signal comes."""
    given = make_parser().parse_args(arguments)
    try:
        repository = ArmpyModelRepository(
            given.model_dir, given.model_name, load_options(given), max_waiting=given.max_waiting
        )
        repository.load_models()
    except (ArmpyError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    server = ArmpyModelServer(
        repository,
        given.host,
        (given.grpc_max_send_message_length, given.grpc_max_receive_message_length),
        max_body_bytes=given.max_body_bytes,
        repository_api=given.repository_api and given.repository_api == "true",
        http_port=given.http_port,
        grpc_port=given.grpc_port,
        workers=given.workers,
        max_asyncio_workers=given.max_asyncio_workers,
        enable_grpc=given.enable_grpc,
        enable_latency_logging=given.enable_latency_logging,
        access_log_format=given.access_log_format,
        event_loop=given.event_loop,
        timeout_keep_alive=given.timeout_keep_alive,
        grace_period=given.grace_period,
        ssl_certfile=given.ssl_certfile,
        ssl_keyfile=given.ssl_keyfile,
    )
    server.start()
    return 0


if __name__ == "__main__":
    sys.exit(main())
