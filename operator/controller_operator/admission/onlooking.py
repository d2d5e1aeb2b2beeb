"""The view of the clusters for questions: the working operator's, or a standby's own.

The API server asks any of several operators, and a standby has no sessions with ZooKeeper. It opens read-only sessions
when it is asked, and closes them when it becomes the leader, because the leader's sessions are fenced.
"""

from collections.abc import Callable
from typing import Final

from controller_operator.clusters.pool import Connect
from controller_operator.kafka.broker_listeners import ListenerOf, any_plaintext
from controller_operator.kubernetes.object_store import ObjectStore
from controller_operator.reconciling.access import ClusterAccess

_CONNECTING_S: Final = 5.0
"""Seconds for which a missing first session with ZooKeeper is no trouble."""


class Onlooker:
    """Finds the access to the clusters for a question."""

    def __init__(
        self,
        working: Callable[[], ClusterAccess | None],
        store: ObjectStore,
        connect: Connect,
        listener_of: ListenerOf = any_plaintext,
    ) -> None:
        """`working`: the access of the operator; None while it stands by. The other arguments are for its own
        access."""
        self._working = working
        self._own = ClusterAccess(
            store,
            connect,
            unreachable_grace_s=_CONNECTING_S,
            objects_unreachable_grace_s=_CONNECTING_S,
            listener_of=listener_of,
        )

    async def find_access(self) -> ClusterAccess:
        """Return the operator's access if it works, otherwise the onlooker's own."""
        working = self._working()
        if working is not None:
            await self._own.close()
            return working
        await self._own.keep_needed()
        return self._own

    async def close(self) -> None:
        """Close its own sessions. This is also due when the operator begins to work, because a view of a large cluster
        takes memory, and the next question may be hours away."""
        await self._own.close()
