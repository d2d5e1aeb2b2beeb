"""The clusters as whoever answers questions sees them: as the operator that works does, or, where it stands by, on its own.

The API server asks any of several operators, and one that stands by has no sessions with ZooKeeper. It opens some when it
is asked, only reads, and closes them when it begins to work: those that it then has are fenced.
"""

from collections.abc import Callable
from typing import Final

from controller_operator.clusters.pool import Connect
from controller_operator.kafka.broker_listeners import ListenerOf, any_plaintext
from controller_operator.kubernetes.object_store import ObjectStore
from controller_operator.reconciling.access import ClusterAccess

_CONNECTING_S: Final = 5.0
"""For how long nothing is said against a ZooKeeper with which there is no session yet."""


class Onlooker:
    """Finds the access of the moment."""

    def __init__(
        self,
        working: Callable[[], ClusterAccess | None],
        store: ObjectStore,
        connect: Connect,
        listener_of: ListenerOf = any_plaintext,
    ) -> None:
        """`working`: the access of the operator; None as long as it stands by. The rest is for its own."""
        self._working = working
        self._own = ClusterAccess(
            store,
            connect,
            unreachable_grace_s=_CONNECTING_S,
            objects_unreachable_grace_s=_CONNECTING_S,
            listener_of=listener_of,
        )

    async def access(self) -> ClusterAccess:
        """That of the operator where it works, else its own."""
        working = self._working()
        if working is not None:
            await self._own.close()
            return working
        await self._own.keep_needed()
        return self._own

    async def close(self) -> None:
        """Closes its own sessions. Also due when the operator begins to work, as a view of a large cluster is large, and
        the next question may be hours away."""
        await self._own.close()
