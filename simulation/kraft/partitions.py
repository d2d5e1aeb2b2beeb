"""A partition as Kafka's controllers keep it: who has it, who leads it, who is in sync, and how that changes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

NOBODY = -1


@dataclass
class Partition:
    """Its replicas hold those that are being added, and those that are removed when these are in sync."""

    replicas: tuple[int, ...]
    leader: int = NOBODY
    isr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = field(default=0)

    @classmethod
    def created(cls, replicas: Sequence[int], live: Collection[int]) -> "Partition":
        """All replicas that live are in sync, and the first of them leads."""
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
        """Begins a reassignment in place of one that runs. Nothing begins where it would change nothing."""
        before = self.origin
        self.adding = tuple(each for each in target if each not in before)
        self.removing = tuple(each for each in before if each not in target)
        self.replicas = (*target, *self.removing)
        self.settle(live)

    def cancel(self, live: Collection[int]) -> None:
        """What was being added is no replica any more."""
        self.isr = tuple(each for each in self.isr if each not in self.adding)
        self.replicas, self.adding, self.removing = self.origin, (), ()
        self._keep_led(live)

    def lose(self, broker: int, live: Collection[int]) -> None:
        """The broker is not there any more; who is the last one in sync stays that."""
        if broker in self.isr and len(self.isr) > 1:
            self.isr = tuple(each for each in self.isr if each != broker)
        self._keep_led(live)

    def catch_up(self, broker: int, live: Collection[int]) -> None:
        """The broker has copied all."""
        if self.leader != NOBODY and broker in self.replicas and broker not in self.isr:
            self.isr = tuple(each for each in self.replicas if each in (*self.isr, broker))
        self._keep_led(live)
        self.settle(live)

    def settle(self, live: Collection[int]) -> None:
        """A reassignment ends when all of its target is in sync."""
        if self.is_moving and set(self.target) <= set(self.isr):
            self.replicas, self.adding, self.removing = self.target, (), ()
            self.isr = tuple(each for each in self.isr if each in self.replicas)
            self._keep_led(live)

    def lead(self, broker: int) -> None:
        """Has another leader, which counts as in sync from now on; alone, where it was not."""
        self.isr = self.isr if broker in self.isr else (broker,)
        self.leader, self.leader_epoch = broker, self.leader_epoch + 1

    def _keep_led(self, live: Collection[int]) -> None:
        if self.leader in self.isr and self.leader in live:
            return
        next_one = next((each for each in self.replicas if each in self.isr and each in live), NOBODY)
        if next_one != self.leader:
            self.leader, self.leader_epoch = next_one, self.leader_epoch + 1
