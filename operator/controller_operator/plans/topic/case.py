"""The case of a KafkaTopic, which every rule about it gets, and the finding that a rule makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_operator.plans.consent.budget import NO_ALLOWANCES, Allowances
from controller_operator.plans.outcome import Context, Notice, Step, Verdict
from controller_operator.plans.placement.movers import FindMovers, find_no_movers
from controller_operator.resources.reassignment import PartitionReassignment
from controller_operator.resources.topic import Difference, KafkaTopic, KafkaTopicStatus
from controller_operator.resources.topic import Plan as PlannedChanges

Moves = Mapping[str, PartitionReassignment]
"""The PartitionReassignments that a topic owns, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The other objects that matter for a topic."""

    owner: KafkaTopic | None = None
    """The older object that owns the same topic."""
    heir: KafkaTopic | None = None
    """The oldest other claimant that is not being deleted. It takes the topic over from this object."""
    rivals: tuple[str, ...] = ()
    """The objects that claim a topic of this name in another cluster, as far as is known, as namespace/name."""
    moves: Moves = field(default_factory=dict)
    find_movers: FindMovers = find_no_movers
    allowances: Allowances = NO_ALLOWANCES


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A KafkaTopic, and everything that a rule may know besides."""

    resource: KafkaTopic
    view: Snapshot
    around: Surroundings
    context: Context

    @property
    def name(self) -> TopicName:
        return TopicName(self.resource.topic_name)

    @property
    def topic(self) -> TopicSnapshot | None:
        """The topic of that name in the cluster; None if there is none."""
        return self.view.topics.get(self.name)

    @property
    def status(self) -> KafkaTopicStatus:
        return self.resource.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a rule: the verdict, and the steps to take."""

    verdict: Verdict
    steps: tuple[Step, ...] = ()
    notices: tuple[Notice, ...] = ()
    drift: tuple[Difference, ...] = ()
    planned: PlannedChanges | None = None
    needs_fresh_view: bool = False
    identity: dict[str, object] = field(default_factory=dict)
    """Fields of the status that change: `topic_id`, `config_keys`, `applied`, `corrections`, `reassignment`, and `counts`
    if the topic was not seen yet."""
    look_again_in_s: float | None = None
    """Seconds until the next look; None: the default for the verdict."""
