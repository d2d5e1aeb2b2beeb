"""A controller that stops before each of its writes below a path, to show the state at that moment.

`python -m devcluster.stand_ins.stepping_controller PATH SETTINGS_FILE` is a controller that stops itself (SIGSTOP) with
a decided and unsent transaction, and continues on SIGCONT. A test sees every state that it makes of ZooKeeper, and can
make changes that the stopped controller does not see. Its session outlives the stop.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller_core.zk.session import WriteOp, ZkError, ZkSession
from devcluster.stand_ins.write_by_write import WriteByWriteSession, run_with

SESSION_TIMEOUT_MS: Final = 30_000


class SteppingSession(WriteByWriteSession):
    """A `ZkSession` that stops the process before each transaction with an operation below a path."""

    def __init__(self, session: ZkSession, path: str) -> None:
        super().__init__(session)
        self._path = path

    async def write(self, ops: Sequence[WriteOp]) -> tuple[str, ...] | ZkError:
        self._stop_before(ops)
        return await super().write(ops)

    def _stop_before(self, ops: Sequence[WriteOp]) -> None:
        if any(op.path.startswith(self._path) for op in ops):
            os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    """Run the controller with `PATH SETTINGS_FILE`."""
    path, settings_file = sys.argv[1], Path(sys.argv[2])
    run_with(
        lambda session: SteppingSession(session, path),
        settings_file,
        {"zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS},
    )


if __name__ == "__main__":
    main()
