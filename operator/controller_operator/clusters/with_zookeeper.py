"""A cluster with ZooKeeper: observed by watches, and changed by znodes, or by requests if no znode exists for it."""

from collections.abc import Callable, Sequence
from typing import Final

from controller_core.client.errors import InvalidArgument
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.snapshot import Snapshot
from controller_core.zk import paths
from controller_operator.clusters.cluster import Asking, Carried, ClusterStep, summarize_moves
from controller_operator.kafka.actions import Action, Outcome, SubmitReassignment, execute, list_touched_paths
from controller_operator.kafka.controller_reach import ControllerReach, RefusingClient
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply, cancel_reassignment
from controller_operator.kafka.requests.elections import ElectionReply, ElectUnclean, elect_unclean
from controller_operator.kafka.requests.features import (
    FeatureReply,
    UpdateFeatures,
    bootstrap_addresses,
    can_be_asked,
    update_features,
)
from controller_operator.kafka.requests.moves import MoveReply, submit_by_request, submit_by_znode
from controller_operator.kafka.requests.topics import MissTopic
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, carry_out_throttle
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.observation.observation import Observation
from controller_operator.observation.observer import ClusterObserver

_Request = UpdateFeatures | CancelReassignment | ElectUnclean
_DONE: Final = {True: Outcome.DONE, False: Outcome.LOOK_AGAIN}


class ClusterWithZooKeeper:
    """See `Cluster`."""

    def __init__(self, observer: ClusterObserver, reach: ControllerReach) -> None:
        self._observer = observer
        self._reach = reach

    @property
    def observation(self) -> Observation:
        return self._observer.observation

    @property
    def limits(self) -> WriteLimits:
        return WriteLimits.read_limits(self._observer.session)

    def start(self) -> None:
        self._observer.start()

    async def stop(self) -> None:
        await self._observer.stop()

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        self._observer.add_listener(listener)

    async def refresh(self, after: Sequence[object] | None = None) -> Snapshot:
        return await self._observer.refresh(None if after is None else _list_touched_paths(after))

    async def carry_out(self, step: ClusterStep, asking: Asking) -> Carried:
        match step:
            case UpdateFeatures() | CancelReassignment() | ElectUnclean():
                reply = await self._ask(step, asking)
                return Carried(step=step, outcome=_DONE[reply.trouble is None], reply=reply)
            case SubmitReassignment():
                return summarize_moves(step, await self._submit(step, asking))
            case SetThrottle() | RemoveThrottle():
                outcome = await carry_out_throttle(step, self._observer.session)
            case MissTopic():
                outcome = _DONE[step.topic not in self._view.topics]
            case _:
                outcome = await execute(step, self._observer.session)
        return Carried(step=step, outcome=outcome)

    async def find_throttle_owners(self) -> frozenset[str] | None:
        return frozenset()  # the controller ends throttles with their moves

    def _client(self, asking: Asking) -> ControllerClient:
        """Return a client of the controller. Without a usable address, its requests fail, and say what to change."""
        try:
            bootstrap = bootstrap_addresses(asking.bootstrap_servers, self._view, asking.listener)
        except InvalidArgument as error:
            return RefusingClient(error)
        return self._reach.client(bootstrap, asking.listener.security, asking.client_id)

    async def _ask(self, step: _Request, asking: Asking) -> FeatureReply | CancelReply | ElectionReply:
        client = self._client(asking)
        match step:
            case CancelReassignment():
                return await cancel_reassignment(step, client)
            case ElectUnclean():
                return await elect_unclean(step, client)
            case UpdateFeatures():
                return await update_features(step, client)

    async def _submit(self, step: SubmitReassignment, asking: Asking) -> MoveReply:
        session = self._observer.session
        if not can_be_asked(asking.bootstrap_servers, self._view, asking.listener):
            return await submit_by_znode(step, session)
        return await submit_by_request(step, self._client(asking), session)

    @property
    def _view(self) -> Snapshot:
        return self._observer.observation.view or Snapshot(version=0)


def _list_touched_paths(steps: Sequence[object]) -> list[str]:
    """Return the watched znodes that show the effect of the steps."""
    found = [path for step in steps if isinstance(step, Action) for path in list_touched_paths(step)]
    elected = [tp for step in steps if isinstance(step, ElectUnclean) for tp in step.partitions]
    found += [paths.partition_state(partition) for partition in elected]
    cancelled = [tp for step in steps if isinstance(step, CancelReassignment) for tp in step.partitions]
    found += [paths.REASSIGN_PARTITIONS, *{paths.topic(tp.topic) for tp in cancelled}] if cancelled else []
    return [*found, paths.FEATURE] if any(isinstance(step, UpdateFeatures) for step in steps) else found
