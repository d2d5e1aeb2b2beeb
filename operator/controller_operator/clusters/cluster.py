"""The seam between what is planned and a Kafka cluster: what is seen of it, and how the steps of a plan reach it.

Behind it are a cluster with ZooKeeper (`with_zookeeper`) and one that has none (`without_zookeeper`). Plans are made over
the same view of either and do not know which it is. What one of them cannot do it says as `Abilities` of its view, and
plans say it to people.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller_operator.kafka.actions import Action, Outcome, SubmitReassignment
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.kafka.marked_throttles import Entry
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.throttles import ThrottleReply
from controller_operator.kafka.requests.topics import MissTopic, TopicReply
from controller_operator.kafka.throttle_steps import ThrottleStep
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.observation.observation import Observation

ClusterStep = Action | ThrottleStep | UpdateFeatures | CancelReassignment | ElectUnclean | MissTopic
"""A step that changes a cluster."""
Reply = FeatureReply | CancelReply | ElectionReply | MoveReply | ThrottleReply | TopicReply
"""The answer of a cluster to a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The servers to ask for what ZooKeeper has no way to, as the KafkaCluster of an object names them."""

    bootstrap_servers: str | None = None
    listener: BrokerListener = ANY_PLAINTEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The outcome of a step."""

    step: ClusterStep
    """The step, as far as it was done."""
    outcome: Outcome
    reply: Reply | None = None


def carried_moves(step: SubmitReassignment, reply: MoveReply) -> Carried:
    """The outcome of a request for moves: those that were accepted have begun."""
    begun = SubmitReassignment(partitions={tp: to for tp, to in step.partitions.items() if tp in reply.accepted})
    return Carried(step=begun, outcome=Outcome.DONE if reply.accepted else Outcome.LOOK_AGAIN, reply=reply)


class Cluster(Protocol):
    """One Kafka cluster."""

    @property
    def observation(self) -> Observation:
        """The cluster as it is known now."""
        ...

    @property
    def limits(self) -> WriteLimits:
        """Return the limits of one write. Raises `NotCurrent`."""
        ...

    def start(self) -> None:
        """Begins to observe."""
        ...

    async def stop(self) -> None:
        """Ends all that goes on."""
        ...

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """Calls the listener with every new observation, on the event loop; it must not block."""
        ...

    async def refresh(self, after: Sequence[object] | None = None) -> ClusterView:
        """A view that shows all that was done before the call: all of it, or what these steps have touched.

        Raises `NotCurrent`."""
        ...

    async def carry_out(self, step: ClusterStep, asking: Asking) -> Carried:
        """Does a step. Raises the errors that are no answer to the step itself: `ZkError`, `NotLeading`."""
        ...

    async def find_limits(self, asking: Asking) -> tuple[Entry, ...] | None:
        """Return the limits that objects have set in Kafka's configurations; None if nobody says."""
        ...
