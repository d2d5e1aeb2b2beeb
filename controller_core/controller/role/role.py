"""Standing for the role: whether this process should have it now, and if not, when to look again.

Who may take it from whom is decided in `role_znode`. A process that could take it leaves it alone while

- a KRaft controller migrates the cluster;
- its own terms end in errors, one after the other (`failed_terms`);
- it does not reach a majority of the brokers (`reach`);
- somebody wants another to have it (`wishes`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller_core.controller.loop.events import ControllerChanged, Event, RoleDue
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.role import role_znode
from controller_core.controller.role.failed_terms import FailedTerms
from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.role.passing_on import pass_on
from controller_core.controller.role.presence import Presence
from controller_core.controller.role.reach import Reach
from controller_core.controller.role.readiness import Readiness
from controller_core.controller.role.requested_role import RequestedRole, requested_role
from controller_core.controller.role.role_znode import HeldRole, Holder
from controller_core.controller.role.seams import ControllerSettings, Seams
from controller_core.controller.role.wishes import Wishes
from controller_core.controller.term.standby import Standby
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.supervision import noticed, supervised
from controller_core.zk import paths
from controller_core.zk.codecs import ProcessZnode
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.registered_brokers import registered_brokers
from controller_core.zk.session import ZkNode, ZkSession

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """The role, and who had it before."""

    role: HeldRole
    taken_from: Holder


class Role:
    """Takes the role for one process, or leaves it alone and sees to it that it is looked at again."""

    def __init__(
        self,
        own_id: BrokerId,
        zk: ZkSession,
        seams: Seams,
        settings: ControllerSettings,
        enqueue: Callable[[Event], None],
        standby: Standby,
    ) -> None:
        self._id = own_id
        self._zk = zk
        self._clock = seams.clock
        self._enqueue = enqueue
        self._standby = standby
        self.reach = Reach(
            own_id,
            zk,
            seams.links,
            seams.clock,
            timeout_ms=settings.brokers_timeout_ms,
            on_look=self._on_look_at_brokers,
        )
        self._whereabouts = seams.whereabouts
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
        """The largest controller epoch that this process had in a term."""
        self._alarm: asyncio.Task[None] | None = None

    async def claim_id(self) -> None:
        """Makes the id this process's own, before it stands for anything. Raises `IdInUse`."""
        await self._presence.claim(on_wait=self._standby.begin)

    async def keep(self) -> None:
        """Keeps in touch with the brokers and with the other processes, until cancelled. Raises `IdInUse`."""
        looking = supervised(
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
        """There is a connection to ZooKeeper again, and perhaps another session."""
        self._presence.wake()

    def on_heat(self) -> None:
        """This process stands by hot now, or no longer: the others shall know."""
        self._presence.refresh()

    def on_leading(self, epoch: ControllerEpoch) -> None:
        """The brokers have heard from this process as their controller."""
        self._leads_under = epoch
        self._presence.refresh()

    async def look(self) -> ZkNode | None:
        """`/controller`, watched, and with it whether somebody asked for another holder."""
        events: dict[str, Event] = {paths.CONTROLLER: ControllerChanged(), paths.ROLE_REQUEST: RoleDue()}
        node, request = await self._watched.nodes(list(events), lambda path: events[path])
        self._request = requested_role(request)
        return node

    def is_ours(self, node: ZkNode | None) -> bool:
        """Whether this process holds the role, by its present session."""
        return node is not None and node.ephemeral_owner == self._zk.session_id

    def is_handed_over(self, node: ZkNode | None) -> bool:
        """Whether Kafka's brokers are to have the role that this process has by this `/controller`."""
        return self._request is not None and self._request.holder is None and self._request.is_after(node)

    async def stand(self, node: ZkNode | None) -> Won | None:
        """Takes the role from whoever has it according to `node`, or stands by. Only without a term."""
        if not self._presence.is_claimed:
            return None  # in a new session the id is claimed first; after that there is a look
        brokers = await registered_brokers(self._zk)
        holder = role_znode.holder_of(
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
                await role_znode.vacate(self._zk, node)  # nobody else can have it while it is there
            return None
        return await self._take(node, holder)

    def end(self, epoch: ControllerEpoch, *, failed: bool) -> None:
        """The term is over. `epoch`: its last one."""
        self._used_epoch = max(self._used_epoch, epoch)
        if self._began_ms is not None:
            self._failed_terms.on_term_ended(
                began_ms=self._began_ms, ended_ms=self._clock.monotonic_ms(), failed=failed
            )
        self._began_ms = self._leads_under = None
        self._presence.refresh()

    async def pass_on(self, zk: ZkSession, writer: FencedWriter) -> bool:
        """Has another process of ours take the role from this one, whose term is over, if one stands by hot: so no broker
        can have it in between. False where the role has to be given back for anybody to take."""
        heir = await self._presence.hot_other() if self._is_exclusive and self._request is None else None
        return heir is not None and await pass_on(heir, zk, writer, self._clock)

    def readiness(self, role: str, **details: object) -> Readiness:
        """Whether this process has the role, or would do well with it."""
        reason = self._why_not_ready()
        reach: dict[str, object] = {
            "reachable_brokers": sorted(self.reach.reached),
            "unreachable_brokers": self.reach.failures,
        }
        return Readiness(is_ready=reason is None, role=role, reason=reason, details=reach | details)

    def close(self) -> None:
        """Looks no more."""
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
        wish = await self._wishes.wish(holder, self._request, now_ms, is_hot=self._standby.is_hot)
        if wish is None:
            return None
        if wish.again_in_ms is not None:
            self._look_again_in(wish.again_in_ms)
        return wish.hindrance

    def _is_asked(self, node: ZkNode | None) -> bool:
        """Whether somebody wants this process to have the role, and not whoever has it now."""
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
        self._alarm = noticed(sound(), name="role-alarm")

    def _on_look_at_brokers(self) -> None:
        """Who could be reached may be others than before."""
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
        )

    def _why_not_ready(self) -> str | None:
        """Why this process has not the role and would not do well with it; None where it would, hot or cold."""
        if self.hindrance is not None and not self.hindrance.is_by_choice:
            return self.hindrance.explanation
        if not self.reach.is_known:
            return "the brokers have not been asked yet"
        return None if self.reach.had_majority else Hindrance.BROKERS_OUT_OF_REACH.explanation
