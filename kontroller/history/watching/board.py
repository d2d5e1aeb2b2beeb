"""The alarms of all clusters that are raised now, and the receivers of their changes."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kontroller.history.alarms.records import CLEARED, RAISED, Alarm


class Key(NamedTuple):
    """The identity of an alarm. At most one is raised at a time."""

    cluster_id: str
    topic: str | None
    partition: int | None
    problem: str


class Standing(NamedTuple):
    """A raised alarm, with the time at which it was raised by this machine's clock, in seconds."""

    alarm: Alarm
    raised_s: float


class Notice(NamedTuple):
    """An alarm that has just been raised or cleared. `raised_s` and `at_s` are of this machine's clock."""

    key: Key
    alarm: Alarm
    raised_s: float
    at_s: float


class Board:
    """The raised alarms. Raising one twice, or clearing one that is not raised, changes nothing."""

    def __init__(self, standing: Iterable[tuple[Key, Standing]] = ()) -> None:
        self.standing: dict[Key, Standing] = dict(standing)
        self.raised: dict[tuple[str, str], int] = {}
        """The number of alarms that were raised, by cluster and problem."""
        self.changes = 0
        self._told: list[Callable[[Notice], None]] = []

    def tell(self, receiver: Callable[[Notice], None]) -> None:
        """Register a receiver for all later changes. It must neither wait nor raise."""
        self._told.append(receiver)

    def find_by_cluster(self, cluster_id: str) -> list[tuple[Key, Standing]]:
        return [(key, standing) for key, standing in self.standing.items() if key.cluster_id == cluster_id]

    def post(self, cluster_id: str, alarm: Alarm, now_s: float) -> None:
        key = Key(cluster_id, alarm.topic, alarm.partition, alarm.problem)
        standing = self.standing.get(key)
        if alarm.state == RAISED and standing is None:
            self.standing[key] = Standing(alarm, now_s)
            self.raised[cluster_id, alarm.problem] = self.raised.get((cluster_id, alarm.problem), 0) + 1
            self._notify(Notice(key, alarm, now_s, now_s))
        elif alarm.state == CLEARED and standing is not None:
            del self.standing[key]
            # After a restart the watch may have seen the problem begin later than the alarm says.
            known = alarm._replace(began_us=standing.alarm.began_us)
            self._notify(Notice(key, known, standing.raised_s, now_s))

    def _notify(self, notice: Notice) -> None:
        self.changes += 1
        for receive in self._told:
            receive(notice)
