"""An operator process for tests, which can be made to die right after its k-th write, to ZooKeeper or Kubernetes.

`python -m tests.real.operator.operator_process NAMESPACE[,NAMESPACE...] LIVENESS_PORT [DIE_AFTER]` runs the production
code with a counter around its two APIs. Every write is logged on standard error, so that a test can count them. In slow
motion (`devcluster.stand_ins.slow_motion`) every write and every request to a controller is delayed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from controller_core.client.transport.request_client import RequestClient
from controller_core.process.logging import configure_logging
from controller_core.zk.session import ZkSession
from controller_operator.connecting import make_zookeeper_connector
from controller_operator.kafka.cluster_files import ClusterFiles
from controller_operator.kubernetes.api_server import kubernetes_objects
from controller_operator.main import run
from controller_operator.settings import OperatorSettings
from devcluster.stand_ins.slow_motion import Delays, Slowed
from devcluster.stand_ins.slow_motion_seed import slow_motion_seed

WRITE_MARK = "WRITE "
_WRITES_OF_OBJECTS = ("patch_status", "patch_known_spec", "set_finalizers", "create", "delete", "write_entry")
_ALL_WRITES_OF_OBJECTS = (*_WRITES_OF_OBJECTS, "annotate", "patch_spec", "create_event")
_WRITES_OF_ZNODES = ("transact", "transact_many")


class WriteCount:
    """Counts writes, and kills the process after the given one."""

    def __init__(self, die_after: int | None) -> None:
        self._left = die_after

    def wrap(self, name: str, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def count_write(*arguments: Any) -> Any:
            answer = await write(*arguments)
            sys.stderr.write(f"{WRITE_MARK}{name}\n")
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return count_write


class Counting:
    """A wrapper that counts some methods of an object."""

    def __init__(self, inner: Any, count: WriteCount, names: tuple[str, ...]) -> None:
        self._inner = inner
        self._counted = {name: count.wrap(name, getattr(inner, name)) for name in names}

    def __getattr__(self, name: str) -> Any:
        return self._counted.get(name) or getattr(self._inner, name)


def _slow_down(inner: Any, stream: str, names: tuple[str, ...]) -> Any:
    """Return the same object in slow motion, if the tests run in slow motion."""
    seed = slow_motion_seed()
    return inner if seed is None else Slowed(inner, Delays(seed, stream), names)


@contextmanager
def _slow_requests() -> Iterator[None]:
    """Delay requests to controllers while the block runs, if the tests run in slow motion."""
    if (seed := slow_motion_seed()) is None:
        yield
        return
    delays, ask = Delays(seed, "requests"), RequestClient.ask

    async def slow_ask(*arguments: Any, **named: Any) -> Any:
        return await delays.delay_write(lambda: ask(*arguments, **named))

    with patch.object(RequestClient, "ask", slow_ask):
        yield


async def main(namespaces: str, liveness_port: str, die_after: str = "") -> None:
    settings = OperatorSettings(
        namespace=tuple(namespaces.split(",")),
        liveness=f"http://127.0.0.1:{liveness_port}/healthz",
        zookeeper_session_timeout_ms=30_000,
        missing_cluster_grace_seconds=3,
    )
    count = WriteCount(int(die_after) if die_after else None)
    connect = make_zookeeper_connector(settings, ClusterFiles([]))

    async def connect_and_count(address: str) -> ZkSession:
        slow = _slow_down(await connect(address), "ZooKeeper", _WRITES_OF_ZNODES)
        session: Any = Counting(slow, count, _WRITES_OF_ZNODES)
        return session  # type: ignore[no-any-return]  # a session in all but its type

    async with kubernetes_objects() as objects:
        api: Any = Counting(_slow_down(objects, "Kubernetes", _ALL_WRITES_OF_OBJECTS), count, _WRITES_OF_OBJECTS)
        with _slow_requests():
            await run(settings, api=api, connect=connect_and_count)


if __name__ == "__main__":
    configure_logging("console")
    asyncio.run(main(*sys.argv[1:]))
