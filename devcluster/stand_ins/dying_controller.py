"""A controller that kills itself at a chosen write to ZooKeeper, to show that another one continues.

`python -m devcluster.stand_ins.dying_controller before|after N SETTINGS_FILE` is an ordinary controller process whose
N-th transaction is its last: the process gets SIGKILL before it sends the transaction, or after ZooKeeper's answer.
Nothing is cleaned up, as in a real crash; the session lives on until it expires. Writes about the controller processes
themselves change nothing in the cluster, so they are not counted.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from controller_core.zk import paths
from controller_core.zk.session import WriteOp, ZkError, ZkSession
from devcluster.stand_ins.write_by_write import WriteByWriteSession, run_with


class DyingSession(WriteByWriteSession):
    """A `ZkSession` that counts transactions and kills the process at one of them."""

    def __init__(self, session: ZkSession, fatal: int, *, applied: bool) -> None:
        super().__init__(session)
        self._fatal = fatal
        self._applied = applied
        self._count = 0

    async def write(self, ops: Sequence[WriteOp]) -> tuple[str, ...] | ZkError:
        is_fatal = _is_about_the_cluster(ops) and self._is_next_fatal()
        if is_fatal and not self._applied:
            _die()
        result = await super().write(ops)
        if is_fatal:
            _die()
        return result

    def _is_next_fatal(self) -> bool:
        self._count += 1
        return self._count == self._fatal


def _is_about_the_cluster(ops: Sequence[WriteOp]) -> bool:
    return not all(op.path.startswith((paths.PROCESSES, paths.QUESTIONS)) for op in ops)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the controller with `before|after N SETTINGS_FILE`."""
    when, count, settings_file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    run_with(lambda session: DyingSession(session, count, applied=when == "after"), settings_file)


if __name__ == "__main__":
    main()
