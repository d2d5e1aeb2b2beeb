"""FencedWriter when the connection is lost or ZooKeeper refuses: its retries, its conclusions, and its reports."""

from collections.abc import Sequence

import pytest

from controller_core.zk import paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.fenced import Fenced, FencedWriter
from controller_core.zk.session import (
    AccessRefused,
    ConnectionLost,
    Create,
    CreateMode,
    SessionExpired,
    SetData,
    WriteOp,
    ZkError,
)
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.zk.conftest import EPOCH_VERSION

TWO = {name: [Create(path=f"/{name}")] for name in ("first", "second")}


def writer(session: DelegatingSession | SimulatedSession) -> FencedWriter:
    """Return a writer that sends each group in a transaction of its own."""
    return FencedWriter(session, EPOCH_VERSION, ops_per_transaction=2, reconnect_timeout_ms=20)


class Answering(DelegatingSession):
    """Applies the first `applied` transactions of all, and answers each one after them with `error`."""

    def __init__(self, session: SimulatedSession, error: ZkError, *, applied: int = 0) -> None:
        super().__init__(session)
        self.sends = 0
        self._error = error
        self._applied = applied

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        self.sends += 1
        through, self._applied = transactions[: self._applied], max(0, self._applied - len(transactions))
        return [*await super().transact_many(through), *(self._error for _ in transactions[len(through) :])]


@pytest.mark.parametrize(("applied", "sends"), [(0, 6), (1, 7)])
async def test_six_losses_in_a_row_without_anything_written_end_a_write_and_no_fewer(
    session: SimulatedSession, applied: int, sends: int
) -> None:
    unsteady = Answering(session, ConnectionLost("gone"), applied=applied)
    with pytest.raises(ConnectionLost, match="closed the connection 6 times in a row"):
        await writer(unsteady).write(TWO)
    assert unsteady.sends == sends


async def test_what_zookeeper_refuses_for_another_reason_is_reported_as_it_is(session: SimulatedSession) -> None:
    refusing = Answering(session, AccessRefused("no rights"))
    with pytest.raises(AccessRefused, match="no rights"):
        await writer(refusing).write(TWO)
    assert refusing.sends == 1


async def test_a_controller_that_was_deposed_while_the_connection_was_away_is_fenced(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession
) -> None:
    zookeeper.fail_before_apply(session)
    other = zookeeper.session()
    await other.transact([SetData(path=paths.CONTROLLER_EPOCH, data=b"2", version=EPOCH_VERSION)])
    with pytest.raises(Fenced, match="no longer at version 1"):
        await writer(session).write(TWO)
    assert await session.read_many(["/first", "/second"]) == [None, None]


async def test_an_ephemeral_of_this_session_that_was_made_before_the_loss_is_taken_for_written(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession
) -> None:
    zookeeper.lose_next_response(session)
    outcome = await writer(session).write({"lock": [Create(path="/lock", data=b"me", mode=CreateMode.EPHEMERAL)]})
    assert (outcome.written, outcome.failed) == (("lock",), {})


async def test_whose_session_expired_is_told_what_that_means(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession
) -> None:
    ours = writer(session)
    zookeeper.expire(session)
    assert await session.wait_connected(1000)
    with pytest.raises(SessionExpired, match=r"^the session in which this controller was elected has expired$"):
        await ours.write(TWO)
