"""A ZooKeeper in memory behind `ZkSession`: deterministic, without threads, sockets or clock, with faults on demand.

`SimulatedZooKeeper` is the ensemble; `session()` connects a client. A client's requests are a queue, like on a TCP
connection: the server applies one request in each turn of the event loop, and its answer arrives a turn later. So
requests of several sessions interleave, those of one session keep their order, and a connection can be lost before or
after a request was applied.

Clients learn changes in ZooKeeper's order: a watch fires before any read of the same client returns the change. After a
connection loss, the outstanding requests fail first, then the listeners are called, then the watches fire.
"""

from collections.abc import Callable, Sequence
from typing import Final

from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from controller_core.zk.session import Delete, SessionId, WriteOp
from simulation.zookeeper_session import ConnectionLoss, SimulatedSession
from simulation.zookeeper_tree import Change, ZnodeTree

_FIRST_SESSION: Final = 0x1000


class SimulatedZooKeeper:
    """One ensemble. Its methods are its faults; each takes the affected client session."""

    def __init__(self, *, jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES) -> None:
        self.tree = ZnodeTree()
        self.jute_maxbuffer_bytes = jute_maxbuffer_bytes
        """A larger request closes its sender's connection."""
        self._sessions: list[SimulatedSession] = []
        self._last_session_id = _FIRST_SESSION

    def session(self, *, max_request_bytes: int | None = None) -> SimulatedSession:
        """Connect a new client, optionally with another request limit than the server's."""
        session = SimulatedSession(self, max_request_bytes or self.jute_maxbuffer_bytes)
        self._sessions.append(session)
        return session

    def expire(self, session: SimulatedSession) -> None:
        """End the session on the server, with its ephemeral znodes.

        A connected client loses its connection, learns of the expiry and gets a new session. A disconnected one does so
        when it is reconnected.
        """
        self.end(session.session_id)
        if session.is_connected:
            self.drop_connection(session)

    def disconnect(self, session: SimulatedSession) -> None:
        """Disconnect the client until `reconnect`. The session lives on until `expire`."""
        session.lose_connection()

    def reconnect(self, session: SimulatedSession) -> None:
        """Reconnect the client."""
        session.regain_connection()

    def drop_connection(self, session: SimulatedSession) -> None:
        """Reset the connection. The client reconnects."""
        session.lose_connection()
        session.regain_connection()

    def lose_next_response(self, session: SimulatedSession, *, after_writes: int = 0) -> None:
        """Apply the next write (after that many others), and reset the connection before its answer arrives."""
        session.loss = ConnectionLoss(after_writes=after_writes, is_applied=True)

    def fail_before_apply(self, session: SimulatedSession, *, after_writes: int = 0) -> None:
        """Reset the connection before the next write (after that many others) reaches the server."""
        session.loss = ConnectionLoss(after_writes=after_writes, is_applied=False)

    def new_session_id(self) -> SessionId:
        self._last_session_id += 1
        return SessionId(self._last_session_id)

    def transact(self, ops: Sequence[WriteOp], session_id: SessionId) -> tuple[str, ...]:
        paths, changes = self.tree.apply(ops, session_id)
        self._tell_watches(changes)
        return paths

    def end(self, session_id: SessionId) -> None:
        """Close a session on the server."""
        for session in self._sessions:
            if session.session_id == session_id:
                session.is_ended = True
        ephemerals = self.tree.ephemerals(session_id)
        self.transact([Delete(path=path) for path in ephemerals], session_id)

    def _tell_watches(self, changes: list[Change]) -> None:
        for change in changes:
            for session in self._sessions:
                session.fire(change)


class ObservedZooKeeper(SimulatedZooKeeper):
    """A simulated ZooKeeper that calls observers before and after every transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.interventions: list[Callable[[Sequence[WriteOp]], None]] = []
        """Each may write something else first, or raise the error of the transaction."""
        self.observers: list[Callable[[], None]] = []

    def transact(self, ops: Sequence[WriteOp], session_id: SessionId) -> tuple[str, ...]:
        for intervention in self.interventions:
            intervention(ops)
        paths = super().transact(ops, session_id)
        for observer in self.observers:
            observer()
        return paths
