"""A controller that stands still before each of its writes below a path, to show what is there at that moment.

`python -m devcluster.stand_ins.stepping_controller PATH SETTINGS_FILE` is a controller that stops itself (SIGSTOP)
with a transaction decided and not yet sent, and goes on where it was with SIGCONT: a tester sees every state that it makes
of ZooKeeper, and may do meanwhile what the controller then does not know of. Its session outlives that.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller_core.process.logging import configure_logging
from controller_core.process.run import run_controller
from controller_core.process.settings import load_settings
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import WriteOp, ZkError, ZkSession

SESSION_TIMEOUT_MS: Final = 30_000


class SteppingSession(DelegatingSession):
    """A `ZkSession` that stops the process before each transaction that is about something below a path."""

    def __init__(self, session: ZkSession, path: str) -> None:
        super().__init__(session)
        self._path = path

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        self._stop_before(ops)
        return await self._session.transact(ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        results: list[tuple[str, ...] | ZkError] = []
        for ops in transactions:
            self._stop_before(ops)
            results += await self._session.transact_many([ops])
        return results

    def _stop_before(self, ops: Sequence[WriteOp]) -> None:
        if any(op.path.startswith(self._path) for op in ops):
            os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    """`PATH SETTINGS_FILE`"""
    path, settings_file = sys.argv[1], Path(sys.argv[2])
    settings = load_settings({"zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS}, settings_file)
    configure_logging(settings.log_format)
    asyncio.run(run_controller(settings, lambda session: SteppingSession(session, path)))


if __name__ == "__main__":
    main()
