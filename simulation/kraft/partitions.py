"""A partition in the state of Kafka's controllers: replicas, leader, ISR and reassignment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

NOBODY = -1


@dataclass
class Partition:
    """A partition. During a move, its replicas include both the added ones and those to remove."""

    replicas: tuple[int, ...]
    leader: int = NOBODY
    isr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = field(default=0)

    @classmethod
    def create(cls, replicas: Sequence[int], live: Collection[int]) -> "Partition":
        """Return a new partition. All live replicas are in sync, and the first one leads."""
        in_sync = tuple(each for each in replicas if each in live)
        return cls(tuple(replicas), leader=in_sync[0], isr=in_sync)

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(each for each in self.replicas if each not in self.adding)

    def move_to(self, target: Sequence[int], live: Collection[int]) -> None:
        """Start a reassignment, or replace the running one. Nothing starts if it would change nothing."""
        before = self.origin
        self.adding = tuple(each for each in target if each not in before)
        self.removing = tuple(each for each in before if each not in target)
        self.replicas = (*target, *self.removing)
        self.settle(live)

    def cancel(self, live: Collection[int]) -> None:
        """Cancel the reassignment and drop the added replicas."""
        self.isr = tuple(each for each in self.isr if each not in self.adding)
        self.replicas, self.adding, self.removing = self.origin, (), ()
        self._keep_led(live)

    def lose(self, broker: int, live: Collection[int]) -> None:
        """Remove a dead broker from the ISR, unless it is the last member."""
        if broker in self.isr and len(self.isr) > 1:
            self.isr = tuple(each for each in self.isr if each != broker)
        self._keep_led(live)

    def catch_up(self, broker: int, live: Collection[int]) -> None:
        """Add a broker that has replicated everything to the ISR."""
        if self.leader != NOBODY and broker in self.replicas and broker not in self.isr:
            self.isr = tuple(each for each in self.replicas if each in (*self.isr, broker))
        self._keep_led(live)
        self.settle(live)

    def settle(self, live: Collection[int]) -> None:
        """End a reassignment whose target is in sync."""
        if self.is_moving and set(self.target) <= set(self.isr):
            self.replicas, self.adding, self.removing = self.target, (), ()
            self.isr = tuple(each for each in self.isr if each in self.replicas)
            self._keep_led(live)

    def lead(self, broker: int) -> None:
        """Make a broker the leader. If it was out of sync, it becomes the only member of the ISR."""
        self.isr = self.isr if broker in self.isr else (broker,)
        self.leader, self.leader_epoch = broker, self.leader_epoch + 1

    def _keep_led(self, live: Collection[int]) -> None:
        if self.leader in self.isr and self.leader in live:
            return
        next_one = next((each for each in self.replicas if each in self.isr and each in live), NOBODY)
        if next_one != self.leader:
            self.leader, self.leader_epoch = next_one, self.leader_epoch + 1
