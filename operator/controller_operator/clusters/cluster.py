"""The seam between plans and a Kafka cluster: the view of the cluster, and the execution of a plan's steps.

Behind it are clusters with ZooKeeper (`with_zookeeper`) and without (`without_zookeeper`). Both give the same kind of
view, so plans do not know which it is. The view's `Abilities` name the differences, and plans report them to people.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller_core.client.transport.request_client import CLIENT_ID
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import Action, Outcome, SubmitReassignment
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.placements import PlacementReply
from controller_operator.kafka.requests.topics import MissTopic, TopicReply
from controller_operator.kafka.throttle_steps import ThrottleReply, ThrottleStep
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.observation.observation import Observation

ClusterStep = Action | ThrottleStep | UpdateFeatures | CancelReassignment | ElectUnclean | MissTopic
"""A step that changes a cluster."""
Reply = FeatureReply | CancelReply | ElectionReply | MoveReply | PlacementReply | ThrottleReply | TopicReply
"""The answer of a cluster to a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The servers for requests that ZooKeeper cannot answer, from the KafkaCluster of an object."""

    bootstrap_servers: str | None = None
    listener: BrokerListener = ANY_PLAINTEXT
    client_id: str = CLIENT_ID
    """The id of requests. It names the object for which they are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The outcome of a step."""

    step: ClusterStep
    """The part of the step that was done."""
    outcome: Outcome
    reply: Reply | None = None


def summarize_moves(step: SubmitReassignment, reply: MoveReply) -> Carried:
    """Return the outcome of a request for moves: the accepted ones have begun."""
    begun = SubmitReassignment(partitions={tp: to for tp, to in step.partitions.items() if tp in reply.accepted})
    return Carried(step=begun, outcome=Outcome.DONE if reply.accepted else Outcome.LOOK_AGAIN, reply=reply)


class Cluster(Protocol):
    """One Kafka cluster."""

    @property
    def observation(self) -> Observation:
        """The present observation of the cluster."""
        ...

    @property
    def limits(self) -> WriteLimits:
        """The limits of one write. Raises `NotCurrent`."""
        ...

    def start(self) -> None:
        """Begin to observe."""
        ...

    async def stop(self) -> None:
        """End the observation."""
        ...

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """Call the listener with every new observation, on the event loop. It must not block."""
        ...

    async def refresh(self, after: Sequence[object] | None = None) -> Snapshot:
        """Return a view that shows everything that was done before the call, or everything that these steps have
        touched.

        Raises `NotCurrent`."""
        ...

    async def carry_out(self, step: ClusterStep, asking: Asking) -> Carried:
        """Carry out a step. Raises `ZkError`s that are no answer to the step itself, and `NotLeading`."""
        ...

    async def find_throttle_owners(self) -> frozenset[str] | None:
        """Return the owners of the throttles that only this operator can end; None if they are not known."""
        ...
