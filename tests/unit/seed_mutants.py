"""Changes that take a statement of the seed map out of the code. The tests that its row names must fail then."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedMutant:
    """A change of one module."""

    part: str
    """The begin of the row's first cell."""
    module: str
    code: str
    """A text that occurs exactly once in the module."""
    instead: str


_MAXIMAL_ISR: Final = "return frozenset(self.isr) | frozenset(self.proposed.isr if self.proposed else ())"

MUTANTS: Final = (
    SeedMutant(
        part="Discussion 3: a stale leader commits nothing",
        module="replica_broker.replicas.partition",
        code=_MAXIMAL_ISR,
        instead="return frozenset(self.proposed.isr if self.proposed else self.isr)",
    ),
    SeedMutant(
        part="G. maybe_change_ISR; MAX_BYTES_LAG",
        module="replica_broker.replicas.partition",
        code=_MAXIMAL_ISR,
        instead="return frozenset(self.proposed.isr if self.proposed else self.isr)",
    ),
    SeedMutant(
        part="E. on_broker_startup 1 to 4",
        module="replica_broker.membership.startup",
        code="            directories.delete(where)\n",
        instead="            pass\n",
    ),
    SeedMutant(
        part="Discussion 8: several fetches",
        module="replica_broker.replicas.following.fetchers",
        code="% self._settings.fetchers_per_leader",
        instead="% 1",
    ),
    SeedMutant(
        part="5: RAR -> OnlineReplica",
        module="controller_core.controller.reassigning.reassignment",
        code="    replica_machine.bring_online(\n",
        instead="    list(\n",
    ),
    SeedMutant(
        part="4: outstanding reassignments",
        module="controller_core.controller.operations.brokers",
        code="    await reassignment.resume(term, set(brokers))\n",
        instead="",
    ),
    SeedMutant(
        part="becomeLeader, KeepInSyncTime",
        module="replica_broker.v2.broker.becoming",
        code="                await self.start_elsewhere(where, broker, leader.epoch)\n",
        instead="                pass\n",
    ),
    SeedMutant(
        part="preferredReplicaLeaderElection, its verify",
        module="controller_core.client.elections",
        code="Progress.IN_PROGRESS if first in place.isr else Progress.FAILED",
        instead="Progress.IN_PROGRESS",
    ),
    SeedMutant(
        part="its last resort, a live replica outside the ISR",
        module="controller_core.model.leader_selectors",
        code="[replica for replica in live if replica not in adding] or live",
        instead="live",
    ),
    SeedMutant(
        part="a granted shutdown is remembered",
        module="controller_core.controller.failover",
        code="    await controlled_shutdown.resume(term)\n",
        instead="",
    ),
    SeedMutant(
        part="brokers know a later controller epoch",
        module="controller_core.controller.failover",
        code="    await epoch_raise.rise_above_states(term)\n",
        instead="",
    ),
    SeedMutant(
        part="state znodes that somebody deleted",
        module="controller_core.controller.znodes.partition_states",
        code="for version in range(above + 1)]",
        instead="for version in range(0)]",
    ),
    SeedMutant(
        part="brokers refuse control requests",
        module="controller_core.controller.operations.brokers",
        code="term.enqueue_later(ResendDue(broker, epoch), ",
        instead="print(",
    ),
    SeedMutant(
        part="brokers that refuse a leader epoch for ever",
        module="controller_core.controller.answers.refused",
        code="await reassignment.announce(term, present, ",
        instead="print(",
    ),
)
