"""A RebalancePlan that never ends, over time."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Notice, Plan, StartMove
from controller_operator.plans.rebalance.healing import Sight
from controller_operator.plans.rebalance.looking import Found, Look, Planned
from controller_operator.plans.rebalance.planner import decide
from controller_operator.plans.rebalance.run import Surroundings
from controller_operator.resources import PartitionReassignment, RebalancePlan
from controller_operator.resources.cluster import BrokerStatus
from controller_operator.resources.rebalancing.rebalance_plan import RebalancePlanStatus
from tests.unit.operator.clusters import rebalance_plan, status_of
from tests.unit.operator.plans.rebalance.test_decisions import TO_3, make_owned, make_planned, make_view

BEGIN = datetime(2026, 1, 15, 12, 30, tzinfo=UTC)
BEFORE, AFTER = make_view(), make_view([3, 2], [2, 3])
MOVES, NOTHING = make_planned(TO_3), make_planned([])


def make_time(hour: int, minute: int = 0, day: int = 15) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


class Operated:
    """The object over time: each decision begins with the status that the last one wrote."""

    def __init__(self, answer: Planned = MOVES, **spec: Any) -> None:
        self.answer = answer
        """The planner's answer to every look."""
        self.cluster: Snapshot = BEFORE
        self.now = BEGIN
        self.spec: dict[str, Any] = {"mode": "rebalance", "schedule": "0 * * * *", **spec}
        self.written: dict[str, Any] = {}
        self.runs: list[datetime] = []
        self.begun: list[StartMove] = []
        self.notices: list[Notice] = []
        self.moves: Mapping[str, PartitionReassignment] = {}
        self.found: Found | None = None
        self.rows: Sequence[BrokerStatus] = ()
        """The brokers in the status of the KafkaCluster."""
        self.sight: Sight | None = None
        """The operator's memory, which is lost when it restarts."""

    @property
    def resource(self) -> RebalancePlan:
        return rebalance_plan(self.spec, status=self.written)

    @property
    def status(self) -> RebalancePlanStatus:
        return self.resource.status

    def decide(self) -> Plan[RebalancePlanStatus]:
        """Return one decision, written. The planner's answer is there at the next one."""
        before = self.status.last_run_time
        around = Surroundings(moves=self.moves, found=self.found, brokers=self.rows, sight=self.sight)
        plan = decide(self.resource, self.cluster, Context(now=self.now), around)
        self.sight = plan.memory if isinstance(plan.memory, Sight) else None
        self.written = status_of(plan)
        self.notices += plan.notices
        if self.status.last_run_time != before:
            self.runs.append(self.now)
        if isinstance(plan.look, Look):
            self.found = Found(look=plan.look, planned=self.answer)
        self.begun += [step for step in plan.steps if isinstance(step, StartMove)]
        return plan

    def settle(self) -> Plan[RebalancePlanStatus]:
        """Decide until nothing changes. Batches are carried out at once."""
        for _ in range(10):
            before = self.written
            plan = self.decide()
            if plan.steps:
                self.moves = make_owned(self.begun[-1].name, "Completed", 2, 2)
                self.cluster = AFTER
            elif self.written == before:
                return plan
        raise AssertionError("it loops")

    def look_until(self, end: datetime) -> None:
        """Decide as often as the decisions ask for it. After each run there is something to move again."""
        for _ in range(10_000):
            plan = self.settle()
            self.cluster = BEFORE
            assert plan.look_again_in_s is not None
            assert plan.look_again_in_s >= 1
            self.now += timedelta(seconds=plan.look_again_in_s)
            if self.now >= end:
                return
        raise AssertionError("it loops")
