"""ISR changes by the leader (seed 004, G): proposed, written conditionally, and applied when the result is certain.

Each partition has one change in flight. Until its result is known, both ISRs count (`maximal_isr`). A retry writes the
same ISR, because the first attempt may have succeeded. A refusal because of a changed state means that this leader is
stale (discussion 3): another leader was elected, or the controller removed a member. The proposal then stays until the
controller's command, so that nothing is committed without its members.

`keep` checks all led partitions twice in MAX_TIME_LAG, because slow members must leave even if nobody fetches. The seed
would have a `DelayedRequest` for every append, and asks whether that is too much.
"""

from collections.abc import Callable, Iterable

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import LeaderRecoveryState
from controller_core.supervision import start_task
from replica_broker.counters import BrokerCounters
from replica_broker.replicas.isr import maybe_change_isr
from replica_broker.replicas.leading.committing import Committing
from replica_broker.replicas.partition import Partition, ProposedIsr
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriter, IsrWriteUncertain, IsrWritten
from replica_broker.replicas.settings import ReplicaSettings

log = structlog.get_logger()


class IsrChanges:
    """Maintains the ISRs of the partitions that this broker leads."""

    def __init__(
        self,
        settings: ReplicaSettings,
        writer: IsrWriter,
        committing: Committing,
        clock: Clock,
        counters: BrokerCounters,
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._committing = committing
        self._clock = clock
        self._counters = counters

    def maybe_change(self, partition: Partition, fetching: BrokerId | None) -> None:
        """Start to write another ISR if one is needed: the seed's `maybe_change_ISR`.

        `fetching` is the follower that has just fetched, or None.
        """
        if not partition.is_leader or partition.is_offline or partition.proposed is not None:
            return
        view = partition.view(self._clock.monotonic_ms())
        isr = maybe_change_isr(view, self._committing.lags, fetching=fetching)
        if isr is not None:
            log.info("changing the ISR", partition=str(partition.topic_partition), isr=partition.isr, new_isr=isr)
            self._propose(partition, isr)

    def report_recovered(self, partition: Partition) -> None:
        """Report a recovery after an unclean election (KIP-704): the leader's log is the partition from now on."""
        if partition.recovery_state is LeaderRecoveryState.RECOVERING and partition.proposed is None:
            self._propose(partition, partition.isr)

    async def keep(self, led: Callable[[], Iterable[Partition]]) -> None:
        """Check all led partitions periodically, until cancelled."""
        while True:
            await self._clock.sleep_ms(self._settings.max_time_lag_ms / 2)
            for partition in led():
                self.maybe_change(partition, None)

    def _propose(self, partition: Partition, isr: tuple[BrokerId, ...]) -> None:
        partition.proposed = proposed = ProposedIsr(isr)
        start_task(self._write(partition, proposed), name=f"write the ISR of {partition.topic_partition}")

    async def _write(self, partition: Partition, proposed: ProposedIsr) -> None:
        asked = IsrToWrite(
            topic_partition=partition.topic_partition,
            topic_id=partition.topic_id,
            leader=partition.replica.broker_id,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            isr=proposed.isr,
        )
        while partition.proposed is proposed:
            try:
                outcome = await self._writer.write(asked)
            except IsrWriteUncertain as error:
                log.warning(
                    "the result of an ISR write is unknown", partition=str(asked.topic_partition), reason=str(error)
                )
                await self._clock.sleep_ms(self._settings.isr_retry_backoff_ms)
                continue
            if partition.proposed is proposed:
                self._take(partition, asked, outcome)
            return

    def _take(self, partition: Partition, asked: IsrToWrite, outcome: IsrWritten | IsrRefused) -> None:
        if isinstance(outcome, IsrRefused):
            self._counters.count_isr_refusal()
            log.warning(
                "an ISR was refused", partition=str(asked.topic_partition), isr=asked.isr, error=outcome.error_code.name
            )
            if not outcome.leaves_state:
                return  # the proposal stays: see the module's docstring
        elif outcome.leader_epoch != asked.leader_epoch or outcome.partition_epoch < asked.partition_epoch:
            return  # another broker leads, and the command that says so will come
        else:
            self._counters.count_isr_change(partition.isr, outcome.isr)
            partition.isr = outcome.isr
            partition.partition_epoch = outcome.partition_epoch
            partition.recovery_state = outcome.recovery_state
        partition.proposed = None
        self._committing.advance(partition)
        partition.notify()
