"""Makes plans for RebalancePlans in the background: looks at the loads of a cluster, and runs the planner.

One reconciliation begins it, and a later one finds the result. The planner computes for seconds, so it runs in a thread,
one plan at a time. Results are only in memory: another operator looks again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite, nan
from typing import TYPE_CHECKING, Final

from controller_core.client.cluster import Cluster
from controller_core.client.errors import AdminError, Unreachable
from controller_core.client.loads.cluster_loads import ClusterLoads
from controller_core.client.loads.describing import describe_loads
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import name_all
from controller_core.supervision import start_task
from controller_core.wire.connections.security import SecuritySource
from controller_operator.kafka.broker_listeners import BrokerListener
from controller_operator.kubernetes.object_store import Key, StoredObject, key_of_resource
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.rebalance.looking import Found, Look, Planned
from controller_operator.resources import RebalancePlan
from controller_operator.resources.conditions import Reason
from controller_operator.resources.rebalancing.rebalance_plan import MAX_LINES, PlannedMove, ResourceBalance
from controller_planner.goals import InvalidGoals, Mode, Unsatisfiable

if TYPE_CHECKING:
    from controller_planner.plan import Plan

DescribeLoads = Callable[[Sequence[Address], SecuritySource | None, float], Awaitable[ClusterLoads]]
"""Describes the loads of the cluster with these servers, by two looks so many seconds apart. Raises `AdminError`."""
Compute = Callable[[Callable[[], Planned]], Awaitable[Planned]]
"""Runs a computation of seconds beside the event loop."""
_TIMEOUT_MS: Final = 60_000
_AWHILE_S: Final = 600.0
"""Seconds after which the planner is asked again although nothing has changed but loads."""
_SOON_S: Final = 30.0


async def describe_over_tcp(
    servers: Sequence[Address], security: SecuritySource | None, between_looks_s: float
) -> ClusterLoads:
    """See `DescribeLoads`."""
    client = RequestClient(servers, timeout_ms=_TIMEOUT_MS, security=security, negotiates=True)
    return await describe_loads(Cluster(client=client, default_timeout_ms=_TIMEOUT_MS), between_looks_s)


async def compute_in_thread(compute: Callable[[], Planned]) -> Planned:
    """See `Compute`."""
    return await asyncio.to_thread(compute)


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A wish, and its answer if that is known. Times are those of the event loop."""

    uid: str
    look: Look
    work: asyncio.Task[None] | None = None
    found: Found | None = None
    retry_at_s: float = nan


class PlanMaker:
    """The plans that are made, and the last answer for each object."""

    def __init__(
        self,
        tell: Callable[[Iterable[Key]], None],
        describe: DescribeLoads = describe_over_tcp,
        compute: Compute = compute_in_thread,
    ) -> None:
        """`tell` queues an object for reconciliation when its answer is there."""
        self._tell = tell
        self._describe = describe
        self._compute = compute
        self._one_at_a_time = asyncio.Lock()
        self._asked: dict[Key, _Asked] = {}

    def find_answer(self, resource: RebalancePlan) -> Found | None:
        """Return the last answer for an object."""
        asked = self._asked.get(key_of_resource(resource))
        return asked.found if asked is not None and asked.uid == resource.metadata.uid else None

    def look(self, stored: StoredObject, look: Look, view: Snapshot, listener: BrokerListener) -> float | None:
        """Begin to look and plan, unless that is under way or has failed not long ago. Return the seconds until the
        next attempt; None if the end of the present one is told."""
        key, now_s = stored.key, asyncio.get_running_loop().time()
        asked = self._asked.get(key)
        if asked is not None and asked.uid == stored.uid:
            if asked.found is None and look.is_for_same_plan(asked.look):
                return None
            if asked.found is not None and look == asked.look and now_s < asked.retry_at_s:
                return asked.retry_at_s - now_s
        self.forget(key)
        asked = self._asked[key] = _Asked(uid=stored.uid, look=look)

        def fail(error: Exception) -> None:
            message = f"the planner failed with {type(error).__name__}: {error}"
            self._keep(key, asked, Found(look=look, trouble=Verdict.make_stalled(Reason.PLAN_IMPOSSIBLE, message)))

        making = self._make(key, asked, view, listener)
        asked.work = start_task(making, name=f"plan of {key}", on_error=fail)
        return None

    def forget(self, key: Key) -> None:
        """Drop an object that has ended or is gone."""
        asked = self._asked.pop(key, None)
        if asked is not None and asked.work is not None:
            asked.work.cancel()

    async def close(self) -> None:
        """End all work."""
        work = [each.work for each in self._asked.values() if each.work is not None]
        for key in [*self._asked]:
            self.forget(key)
        await asyncio.gather(*work, return_exceptions=True)

    async def _make(self, key: Key, asked: _Asked, view: Snapshot, listener: BrokerListener) -> None:
        look = asked.look
        try:
            loads = await self._describe_loads(view, listener, look)
            async with self._one_at_a_time:
                planned = await self._compute(lambda: make_planned(loads, look))
        except AdminError as error:
            message = f"the loads of the cluster are not known: {error}"
            trouble = Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message)
            self._keep(key, asked, Found(look=look, trouble=trouble), _SOON_S)
        except (InvalidGoals, Unsatisfiable) as error:
            trouble = Verdict.make_stalled(Reason.PLAN_IMPOSSIBLE, str(error))
            self._keep(key, asked, Found(look=look, trouble=trouble))
        else:
            self._keep(key, asked, Found(look=look, planned=planned))

    async def _describe_loads(self, view: Snapshot, listener: BrokerListener, look: Look) -> ClusterLoads:
        servers = tuple(
            address for number in sorted(view.brokers) for address in listener.addresses(view.brokers[number])
        )
        if not servers:
            raise Unreachable(f"no live broker has a listener {listener}")
        loads = await self._describe(servers, listener.security, look.between_looks_s)
        if None not in (loads.cluster_id, view.cluster_id) and loads.cluster_id != view.cluster_id:
            raise Unreachable(f"the brokers are of Kafka cluster {loads.cluster_id}, and not of {view.cluster_id}")
        seen = look.gone & {each.id for each in loads.brokers if each.is_live}
        if seen:
            raise Unreachable(f"not registered, but seen by the brokers: {name_all('broker', sorted(seen))}")
        return loads

    def _keep(self, key: Key, asked: _Asked, found: Found, retry_s: float = _AWHILE_S) -> None:
        asked.found, asked.retry_at_s = found, asyncio.get_running_loop().time() + retry_s
        self._tell((key,))


def make_planned(loads: ClusterLoads, look: Look) -> Planned:
    """Make a plan from loads. Raises `InvalidGoals` and `Unsatisfiable`."""
    # numpy takes 0.1 s to import, and this runs in a thread.
    from controller_core.client.loads.arrays import make_load_snapshot
    from controller_planner.loads import InvalidSnapshot
    from controller_planner.losses import Loss, count_pairs
    from controller_planner.planning import make_plan

    try:
        snapshot = make_load_snapshot(loads, look.closed)
    except InvalidSnapshot as error:
        raise Unsatisfiable(f"the brokers' answers contradict each other: {error}") from error
    goals, troubles = look.goals, [*loads.troubles]
    if goals.topics is not None or goals.excluded_topics:
        # A topic may have gone between the view that named it and the look.
        known = set(snapshot.partitions.topics)
        topics = None if goals.topics is None else tuple(each for each in goals.topics if each in known)
        goals = replace(
            goals, topics=topics, excluded_topics=tuple(each for each in goals.excluded_topics if each in known)
        )
    # The only broker of a rack may be down, and a plan goes on with the other racks.
    here_racks = {rack for rack in snapshot.brokers.racks if rack is not None}
    if goals.racks is not None and (missing := sorted({*goals.racks} - here_racks)) and here_racks & {*goals.racks}:
        goals = replace(goals, racks=tuple(each for each in goals.racks if each in here_racks))
        troubles.append(f"spec.scope.racks has {name_all('rack', missing)}, in which no broker is up")
    # A broker may leave the cluster for good, and a plan that never ends goes on without it.
    here = set(snapshot.brokers.ids.tolist())
    losses = [Loss(brokers=tuple(here & {*each.brokers}), times=each.times or 1) for each in look.failed_together]
    goals = replace(goals, failed_together=tuple(count_pairs(losses)))
    if gone := sorted({broker for each in look.failed_together for broker in each.brokers} - here):
        troubles.append(f"spec.failedTogether has {name_all('broker', gone)}, which the cluster does not have")
    plan = make_plan(snapshot, goals)
    # A relieved disk needs no other topics.
    notes = () if goals.mode is Mode.RELIEVE and not plan.left_out else look.notes
    return Planned(
        look_time=datetime.fromtimestamp(int(loads.taken_at_s), UTC),
        snapshot_hash=plan.snapshot_hash,
        moves=tuple(
            PlannedMove(
                topic=TopicName(move.topic),
                partition=PartitionId(move.partition),
                before=tuple(map(BrokerId, move.before)),
                after=tuple(map(BrokerId, move.after)),
                bytes=None if move.bytes_copied is None else round(move.bytes_copied),
                reasons=tuple(str(each) for each in move.reasons),
                batch=move.batch,
            )
            for move in plan.iterate_moves()
        ),
        bytes=round(plan.total_bytes),
        resources=tuple(_list_balances(plan)),
        unknown=_shorten((*plan.unknown, *troubles)),
        left_out=_shorten((*notes, *plan.left_out)),
    )


def _list_balances(plan: "Plan") -> Iterable[ResourceBalance]:
    for at, name in enumerate(plan.resources):
        before, after = (
            max(
                (
                    100 * load / share
                    for load, share in zip(loads[:, at].tolist(), plan.shares[:, at].tolist(), strict=True)
                    if isfinite(share) and share > 0
                ),
                default=nan,
            )
            for loads in (plan.loads_before, plan.loads_after)
        )
        if isfinite(before) and isfinite(after):
            yield ResourceBalance(name=name, before_percent=round(before), after_percent=round(after))


def _shorten(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MAX_LINES
    shown = lines if more <= 0 else (*lines[: MAX_LINES - 1], f"and {more + 1} more")
    return tuple(line if len(line) <= 1000 else f"{line[:1000]}..." for line in shown)
