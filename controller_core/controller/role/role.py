"""Standing for election: should this process take the role now, and if not, when to check again.

`role_znode` decides from which holders it may be taken. A process that could take it leaves it alone while

- a KRaft controller migrates the cluster;
- its own terms end in errors, one after the other (`failed_terms`);
- it does not reach a majority of the brokers (`reach`);
- somebody wants another process or broker to have it (`wishes`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller_core.controller.loop.events import ControllerChanged, Event, RoleDue
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.recording.static_configs import StaticConfigs
from controller_core.controller.role import role_znode
from controller_core.controller.role.failed_terms import FailedTerms
from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.role.passing_on import pass_on
from controller_core.controller.role.presence import Presence
from controller_core.controller.role.reach import Reach
from controller_core.controller.role.readiness import Readiness
from controller_core.controller.role.requested_role import RequestedRole, parse_role_request
from controller_core.controller.role.role_znode import HeldRole, Holder
from controller_core.controller.role.seams import ControllerSettings, Seams
from controller_core.controller.role.wishes import Wishes
from controller_core.controller.term.standby import Standby
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.supervision import start_supervised, start_task
from controller_core.zk import paths
from controller_core.zk.codecs import ProcessZnode
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.session import ZkNode, ZkSession

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """The role, and its previous holder."""

    role: HeldRole
    taken_from: Holder


class Role:
    """Takes the role for one process, or leaves it alone and schedules the next check."""

    def __init__(
        self,
        own_id: BrokerId,
        zk: ZkSession,
        seams: Seams,
        settings: ControllerSettings,
        enqueue: Callable[[Event], None],
        standby: Standby,
        static_configs: StaticConfigs,
    ) -> None:
        self._id = own_id
        self._zk = zk
        self._clock = seams.clock
        self._enqueue = enqueue
        self._standby = standby
        self._static_configs = static_configs
        self.reach = Reach(
            own_id,
            zk,
            seams.links,
            seams.clock,
            timeout_ms=settings.brokers_timeout_ms,
            on_reached=static_configs.ask,
            on_look=self._on_look_at_brokers,
        )
        self._whereabouts, self._hosts = seams.whereabouts, seams.hosts
        self._is_exclusive = settings.exclusive
        self._leads_under: ControllerEpoch | None = None
        self.hindrance: Hindrance | None = None
        self._presence = Presence(
            own_id,
            zk,
            seams.clock,
            present=self._present,
            on_claimed=lambda: enqueue(RoleDue()),
        )
        self._watched: WatchedReads[Event] = WatchedReads(zk, enqueue)
        self._failed_terms = FailedTerms()
        self._wishes = Wishes(own_id, self._presence, is_exclusive=settings.exclusive)
        self._request: RequestedRole | None = None
        self._began_ms: float | None = None
        self._used_epoch = ControllerEpoch(-1)
        """The largest controller epoch that this process has had in a term."""
        self._alarm: asyncio.Task[None] | None = None

    async def claim_id(self) -> None:
        """Claim the id of this process before it stands for election. Raises `IdInUse`."""
        await self._presence.claim(on_wait=self._standby.begin)

    async def keep(self) -> None:
        """Keep in touch with the brokers and the other processes, until cancelled. Raises `IdInUse`."""
        looking = start_supervised(
            self.reach.keep_looking,
            name="reach",
            sleep_ms=self._clock.sleep_ms,
            monotonic_ms=self._clock.monotonic_ms,
        )
        try:
            await self._presence.keep()
        finally:
            looking.cancel()

    def on_connected(self) -> None:
        """Note that ZooKeeper is connected again, perhaps with another session."""
        self._presence.wake()

    def on_heat(self) -> None:
        """Tell the others that this process is now a hot standby, or no longer one."""
        self._presence.refresh()

    def on_leading(self, epoch: ControllerEpoch) -> None:
        """Note that the brokers know this process as their controller."""
        self._leads_under = epoch
        self._presence.refresh()

    async def look(self) -> ZkNode | None:
        """Read `/controller` and the request for another holder, both watched."""
        events: dict[str, Event] = {paths.CONTROLLER: ControllerChanged(), paths.ROLE_REQUEST: RoleDue()}
        node, request = await self._watched.read_nodes(list(events), lambda path: events[path])
        self._request = parse_role_request(request)
        return node

    def is_ours(self, node: ZkNode | None) -> bool:
        """Return True if this process holds the role by its present session."""
        return node is not None and node.ephemeral_owner == self._zk.session_id

    def is_handed_over(self, node: ZkNode | None) -> bool:
        """Return True if a request gives Kafka's brokers the role that this process has by this `/controller`."""
        return self._request is not None and self._request.holder is None and self._request.is_after(node)

    async def stand(self, node: ZkNode | None) -> Won | None:
        """Take the role from its holder according to `node`, or stand by. Only without a term."""
        if not self._presence.is_claimed:
            return None  # a new session claims the id first, which queues another check
        brokers = await read_registered_brokers(self._zk)
        holder = role_znode.find_holder(
            node, own_id=self._id, own_session=self._zk.session_id, registered_brokers=brokers
        )
        if holder is Holder.OTHER_KONTROLLER and not self._is_asked(node):
            self._wishes.forget()
            self._hinder(None, holder)
            self._stand_by(holder)
            return None
        hindrance = await self._hindrance(holder)
        self._hinder(hindrance, holder)
        if hindrance is not None:
            self._stand_by(holder)
            if node is not None and holder in (Holder.OURSELVES, Holder.PREDECESSOR):
                await role_znode.vacate(self._zk, node)  # while it exists, nobody else can take the role
            return None
        return await self._take(node, holder)

    def end(self, epoch: ControllerEpoch, *, failed: bool) -> None:
        """Record the end of a term. `epoch` is its last one."""
        self._used_epoch = max(self._used_epoch, epoch)
        if self._began_ms is not None:
            self._failed_terms.on_term_ended(
                began_ms=self._began_ms, ended_ms=self._clock.monotonic_ms(), failed=failed
            )
        self._began_ms = self._leads_under = None
        self._presence.refresh()

    async def pass_on(self, zk: ZkSession, writer: FencedWriter) -> bool:
        """Pass the role to a hot standby after the end of the term, so that no broker can get it in between.

        Return False if the role has to be given back for anybody to take.
        """
        heir = await self._presence.find_hot_other() if self._is_exclusive and self._request is None else None
        return heir is not None and await pass_on(heir, zk, writer, self._clock)

    def check_readiness(self, role: str, **details: object) -> Readiness:
        """Return the readiness of this process, and the brokers that it reaches."""
        reason = self._why_not_ready()
        reach: dict[str, object] = {
            "reachable_brokers": sorted(self.reach.reached),
            "unreachable_brokers": self.reach.failures,
        }
        return Readiness(is_ready=reason is None, role=role, reason=reason, details=reach | details)

    def close(self) -> None:
        """Stop the timer of the next check."""
        if self._alarm is not None:
            self._alarm.cancel()

    async def _take(self, node: ZkNode | None, holder: Holder) -> Won | None:
        used_up = self._request.used_up if self._request is not None else ()
        won = await role_znode.take_role(self._zk, self._id, node, self._clock, used_up, used=self._used_epoch)
        if won is None:
            self._enqueue(RoleDue())
            return None
        self._began_ms = self._clock.monotonic_ms()
        self._wishes.on_taken(holder, self._began_ms)
        return Won(role=won, taken_from=holder)

    async def _hindrance(self, holder: Holder) -> Hindrance | None:
        now_ms = self._clock.monotonic_ms()
        if holder is Holder.KRAFT_CONTROLLER:
            return Hindrance.KRAFT_MIGRATION
        if wait_ms := self._failed_terms.wait_ms(now_ms, held_by_kafka=holder is Holder.KAFKA_BROKER):
            self._look_again_in(wait_ms)
            return Hindrance.FAILED_TERMS
        if not await self.reach.has_majority():
            return Hindrance.BROKERS_OUT_OF_REACH
        wish = await self._wishes.find_wish(holder, self._request, now_ms, is_hot=self._standby.is_hot)
        if wish is None:
            return None
        if wish.again_in_ms is not None:
            self._look_again_in(wish.again_in_ms)
        return wish.hindrance

    def _is_asked(self, node: ZkNode | None) -> bool:
        """Return True if a request wants this process to have the role instead of the present holder."""
        return self._request is not None and self._request.holder == self._id and self._request.is_after(node)

    def _hinder(self, hindrance: Hindrance | None, holder: Holder) -> None:
        former, self.hindrance = self.hindrance, hindrance
        if hindrance is not None and hindrance is not former:
            log.warning(
                "not standing for the role",
                hindrance=hindrance.value,
                reason=hindrance.explanation,
                held_by=holder.name,
                failed_terms=self._failed_terms.in_a_row,
            )
        self._presence.refresh()

    def _stand_by(self, holder: Holder) -> None:
        log.info("standing by", holder=holder.name)
        self._standby.begin()

    def _look_again_in(self, delay_ms: float) -> None:
        async def sound() -> None:
            await self._clock.sleep_ms(delay_ms)
            self._enqueue(RoleDue())

        self.close()
        self._alarm = start_task(sound(), name="role-alarm")

    def _on_look_at_brokers(self) -> None:
        """React to a change of the brokers in reach."""
        self._static_configs.mark_all_asked()
        waits_for_brokers = self.hindrance is Hindrance.BROKERS_OUT_OF_REACH
        if (waits_for_brokers and self.reach.had_majority) or (self._began_ms is not None and self.reach.is_lost):
            self._enqueue(RoleDue())
        self._presence.refresh()

    def _present(self) -> ProcessZnode:
        return ProcessZnode(
            whereabouts=self._whereabouts,
            is_hot=self._standby.is_hot,
            hindrance=self._why_not_ready(),
            leads_under=self._leads_under,
            unsupported_brokers=tuple(sorted(self.reach.unsupported)),
            hosts=self._hosts,
        )

    def _why_not_ready(self) -> str | None:
        """Return the reason why this process could not do well with the role; None if it could, hot or cold."""
        if self.hindrance is not None and not self.hindrance.is_by_choice:
            return self.hindrance.explanation
        if not self.reach.is_known:
            return "the brokers have not been asked yet"
        return None if self.reach.had_majority else Hindrance.BROKERS_OUT_OF_REACH.explanation
