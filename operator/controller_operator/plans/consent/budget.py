"""The budgets of namespaces: what a namespace uses of a Kafka cluster, and which growth exceeds its budget.

Topics count as they are in the cluster. Growth that is asked for counts in the order of the objects' age, so the same
objects win whoever is looked at first. An object that cannot grow takes nothing from the others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic
from controller_operator.kubernetes.object_store import TopicUse
from controller_operator.plans.outcome import StartMove, Step, Verdict
from controller_operator.plans.topic_ids import format_id
from controller_operator.resources import KafkaTopic
from controller_operator.resources.budget import Budget, NamespaceUse
from controller_operator.resources.conditions import Reason

FindUses = Callable[[], Sequence[TopicUse]]
"""Finds the KafkaTopics of a namespace for one Kafka cluster."""
_UNLIMITED: Final = -1
_ASK: Final = "change the spec, or let the owner of the KafkaCluster raise the budget in spec.allowedNamespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The budget of a namespace on a Kafka cluster."""

    namespace: str
    budget: Budget
    prefix: str | None = None
    """All topics with this prefix count; None: those of the namespace's KafkaTopics."""


def find_none() -> Sequence[TopicUse]:
    """Return no KafkaTopics."""
    return ()


def count_nothing() -> int:
    """Return the number of moves in a namespace without any."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowances:
    """The budgets that an object must keep, and the use so far."""

    each: tuple[Allowance, ...] = ()
    find_uses: FindUses = find_none
    count_moves: Callable[[], int] = count_nothing
    """Counts the other PartitionReassignments of the namespace that move partitions or are about to."""

    def refuse_steps(self, resource: KafkaTopic, steps: Iterable[Step], view: Snapshot) -> Verdict | None:
        """Return why the steps of a KafkaTopic exceed a budget; None if they keep all of them."""
        steps = tuple(steps)
        for allowance in self.each:
            for step in steps:
                problem = _find_problem(allowance, resource, step, view, self.find_uses)
                if problem is not None:
                    return Verdict.make_stalled(Reason.BUDGET_EXCEEDED, f"{problem}: {_ASK}")
        return None

    def refuse_replicas(self, targets: Mapping[TopicPartition, tuple[BrokerId, ...]], view: Snapshot) -> Verdict | None:
        """Return why the targets of a move exceed a budget. A partition may keep its number of replicas."""
        factors = {len(to) for tp, to in targets.items() if len(to) != _count_replicas(tp, view)}
        for allowance in self.each:
            problem = _judge_factors(allowance, factors)
            if problem is not None:
                return Verdict.make_stalled(Reason.BUDGET_EXCEEDED, f"{problem}: {_ASK}")
        return None

    def delay_move(self) -> Verdict | None:
        """Return why a move must wait until another one of the namespace ends; None if it may begin."""
        limits = [(each.budget.max_moves, each.namespace) for each in self.each if each.budget.max_moves is not None]
        if not limits:
            return None
        most, namespace = min(limits)
        if self.count_moves() < most:
            return None
        message = f"namespace {namespace} may have {most} moves at once: this one begins when another one ends"
        return Verdict.make_working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, message)


NO_ALLOWANCES: Final = Allowances()


@dataclass(slots=True)
class _Use:
    """The partitions of the topics that count."""

    topics: dict[str, int] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        return sum(self.topics.values())

    def excess(self, budget: Budget, topic: str, partitions: int) -> str | None:
        """Return why a topic may not get this number of partitions; None if it may."""
        others, most = len(self.topics.keys() - {topic}), budget.max_topics
        if most is not None and topic not in self.topics and others + 1 > most:
            return f"has {others} of {most} topics"
        present, most = self.topics.get(topic, 0), budget.max_partitions
        more = partitions - present
        if most is not None and more > 0 and self.partitions + more > most:
            return f"has {self.partitions} of {most} partitions, and topic {topic} would get {more} more"
        return None


def show_use(allowance: Allowance, uses: Iterable[TopicUse], view: Snapshot) -> NamespaceUse:
    """Return the use of a namespace as the status of the KafkaCluster shows it."""
    use = _count_use(allowance, uses, view)
    return NamespaceUse(
        namespace=allowance.namespace,
        topics=len(use.topics),
        max_topics=allowance.budget.max_topics,
        partitions=use.partitions,
        max_partitions=allowance.budget.max_partitions,
    )


def _find_problem(
    allowance: Allowance, resource: KafkaTopic, step: Step, view: Snapshot, find_uses: FindUses
) -> str | None:
    match step:
        case CreateTopic():
            factors = {len(each.replicas) for each in step.assignment.partitions.values()}
            return (
                _judge_factors(allowance, factors)
                or _judge_configs(allowance, step.config)
                or _judge_growth(allowance, resource, len(step.assignment.partitions), view, find_uses)
            )
        case AddPartitions():
            return _judge_growth(allowance, resource, len(step.assignment.partitions), view, find_uses)
        case AlterTopicConfig():
            changed = {key: value for key, value in step.changes.items() if value is not None}
            return _judge_configs(allowance, changed)
        case StartMove():
            return _judge_factors(
                allowance, {len(to) for tp, to in step.partitions if len(to) != _count_replicas(tp, view)}
            )
        case _:
            return None


def _judge_growth(
    allowance: Allowance, resource: KafkaTopic, partitions: int, view: Snapshot, find_uses: FindUses
) -> str | None:
    budget = allowance.budget
    if budget.max_topics is None and budget.max_partitions is None:
        return None
    uses = find_uses()
    charged = _count_use(allowance, uses, view)
    about = resource.metadata
    age = (str(about.creation_timestamp), about.uid)
    for older in sorted(each for each in uses if each.age < age and each.may_grow):
        if charged.excess(budget, older.topic, older.wanted) is None:
            charged.topics[older.topic] = max(older.wanted, charged.topics.get(older.topic, 0))
    excess = charged.excess(budget, resource.topic_name, partitions)
    return f"namespace {allowance.namespace} {excess}" if excess else None


def _count_use(allowance: Allowance, uses: Iterable[TopicUse], view: Snapshot) -> _Use:
    prefix = allowance.prefix
    named = (each for each in view.topics.values() if prefix is not None and each.name.startswith(prefix))
    found = _Use({topic.name: len(topic.partitions) for topic in named})
    for use in uses:
        if partitions := _count_present(use, view):
            found.topics[use.topic] = max(partitions, found.topics.get(use.topic, 0))
    return found


def _count_present(use: TopicUse, view: Snapshot) -> int:
    """Return the partitions of an object's own topic. A requested topic counts before it is seen."""
    if use.topic_id is None:
        return 0
    topic = view.topics.get(TopicName(use.topic))
    if topic is None:
        return use.wanted if use.is_requested else 0
    is_own = use.is_requested or format_id(topic.assignment.topic_id) == use.topic_id
    return len(topic.partitions) if is_own else 0


def _judge_factors(allowance: Allowance, factors: Iterable[int]) -> str | None:
    least, most = allowance.budget.min_replication_factor or 1, allowance.budget.max_replication_factor
    wrong = sorted(each for each in factors if each < least or (most is not None and each > most))
    if not wrong:
        return None
    bounds = f"at least {least}" if most is None else f"{least} to {most}"
    return f"topics of namespace {allowance.namespace} must get {bounds} replicas, unlike {list_some(wrong)}"


def _judge_configs(allowance: Allowance, config: Mapping[str, str]) -> str | None:
    if allowance.budget.configs is None:
        return None
    bounds = {each.key: each for each in allowance.budget.configs}
    who = f"namespace {allowance.namespace}"
    if unknown := sorted(config.keys() - bounds.keys()):
        return f"{who} may not set {list_some(unknown)} in config, but {list_some(sorted(bounds)) or 'nothing'}"
    for key, value in sorted(config.items()):
        bound = bounds[key]
        if bound.min is None and bound.max is None:
            continue
        number = _read_number(value)
        if number is None:
            return f"{key} of {who} must be a number, because it has bounds"
        if bound.max is not None and (number == _UNLIMITED or number > bound.max):
            return f"{key} of {who} must be at most {bound.max}"
        if bound.min is not None and number != _UNLIMITED and number < bound.min:
            return f"{key} of {who} must be at least {bound.min}"
    return None


def _read_number(value: str) -> float | None:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return None


def _count_replicas(partition: TopicPartition, view: Snapshot) -> int | None:
    assignment = view.assignment_of(partition)
    return len(assignment.target) if assignment is not None else None
