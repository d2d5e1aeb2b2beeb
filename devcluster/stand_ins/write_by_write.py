"""An ordinary controller process with a hook around each of its writes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from controller_core.process.logging import configure_logging
from controller_core.process.run import run_controller
from controller_core.process.settings import load_settings
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import WriteOp, ZkError, ZkSession
from devcluster.stand_ins.slow_motion import slow_controllers


class WriteByWriteSession(DelegatingSession):
    """A `ZkSession` that sends transactions one after another, each with `write`."""

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        result = await self.write(ops)
        if isinstance(result, ZkError):
            raise result
        return result

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        return [await self.write(ops) for ops in transactions]

    async def write(self, ops: Sequence[WriteOp]) -> tuple[str, ...] | ZkError:
        """Send one transaction, and return its result."""
        return (await self._session.transact_many([ops]))[0]


def run_with(
    session: Callable[[ZkSession], ZkSession], settings_file: Path, settings: Mapping[str, object] | None = None
) -> None:
    """Run a controller whose ZooKeeper session is wrapped by another one."""
    loaded = load_settings(settings or {}, settings_file)
    configure_logging(loaded.log_format)
    with slow_controllers():
        asyncio.run(run_controller(loaded, session))
