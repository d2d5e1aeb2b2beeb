"""The calls for code without an event loop: the same calls, and waiting ones end when the client is closed."""

import inspect
import socket
from concurrent.futures import CancelledError

import pytest

from controller_core.client.admin_client import AdminClient, BlockingAdminClient
from controller_core.client.errors import InvalidArgument

MOVE = '{"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}'


def test_every_call_is_there() -> None:
    calls = {
        name for name, _ in inspect.getmembers(AdminClient, inspect.iscoroutinefunction) if not name.startswith("_")
    }
    assert calls <= set(dir(BlockingAdminClient))


def test_what_is_waited_for_ends_with_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        admin = BlockingAdminClient({"bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}"})
        future = admin.reassign_partitions(MOVE)
        admin.close()
        with pytest.raises(CancelledError):
            future.result(timeout=10)
        admin.close()
        with pytest.raises(InvalidArgument, match="closed"):
            admin.list_topics()
