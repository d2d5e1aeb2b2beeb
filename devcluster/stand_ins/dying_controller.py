"""A controller that kills itself at a chosen write to ZooKeeper, to show that another one goes on from there.

`python -m devcluster.stand_ins.dying_controller before|after N SETTINGS_FILE` is an ordinary controller process whose N-th
transaction is its last act: the process gets SIGKILL before it is sent, or after ZooKeeper answered. Nothing is cleaned
up, as in a real crash; the session lives on until it expires. What controller processes tell each other of themselves
changes nothing in the cluster, and is not counted.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from controller_core.process.logging import configure_logging
from controller_core.process.run import run_controller
from controller_core.process.settings import load_settings
from controller_core.zk import paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import WriteOp, ZkError, ZkSession


class DyingSession(DelegatingSession):
    """A `ZkSession` that counts transactions and kills the process at one of them."""

    def __init__(self, session: ZkSession, fatal: int, *, applied: bool) -> None:
        super().__init__(session)
        self._fatal = fatal
        self._applied = applied
        self._count = 0

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        results = await self.transact_many([ops])
        result = results[0]
        if isinstance(result, ZkError):
            raise result
        return result

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        results: list[tuple[str, ...] | ZkError] = []
        for ops in transactions:
            is_fatal = _is_about_the_cluster(ops) and self._is_next_fatal()
            if is_fatal and not self._applied:
                _die()
            results += await self._session.transact_many([ops])
            if is_fatal:
                _die()
        return results

    def _is_next_fatal(self) -> bool:
        self._count += 1
        return self._count == self._fatal


def _is_about_the_cluster(ops: Sequence[WriteOp]) -> bool:
    return not all(op.path.startswith((paths.PROCESSES, paths.QUESTIONS)) for op in ops)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """`before|after N SETTINGS_FILE`"""
    when, count, settings_file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    settings = load_settings({}, settings_file)
    configure_logging(settings.log_format)
    asyncio.run(run_controller(settings, lambda session: DyingSession(session, count, applied=when == "after")))


if __name__ == "__main__":
    main()
