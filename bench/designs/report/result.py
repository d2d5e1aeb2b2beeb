"""The shape of the result file of `make bench-designs`: a row for each scenario of each life, with the servers' counts."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from bench.designs.counting.leaderships import Design
from bench.report.result import Facts

Scenario = Literal["creation", "death", "return"]
TITLES: Final[dict[Scenario, str]] = {"creation": "creation", "death": "a broker's death", "return": "its return"}
_WITHOUT_CAUSE: Final = "Fetch"
"""Followers ask all the time: how often depends on how long a scenario takes."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Counted(_Row):
    """What one scenario came to, in one design; `bench.designs.measuring` says what each is."""

    design: Design
    scenario: Scenario
    partitions: int
    leaders: int
    led_s: float
    settled_s: float
    known_s: float
    processor_s: float
    requests: int
    znodes_read: int
    notifications: int
    watches: int
    transactions: int
    refused: int
    znodes_written: int
    written: dict[str, int]
    messages: dict[str, int]
    load_before: float | None = None

    @property
    def messages_sent(self) -> int:
        """Requests between servers."""
        return sum(count for api, count in self.messages.items() if api != _WITHOUT_CAUSE)

    def wrote(self, *kinds: str) -> int:
        """Znodes of these kinds that were created, changed or deleted."""
        return sum(count for what, count in self.written.items() if what.rpartition(" ")[2] in kinds)


class Throughput(_Row):
    """Records a second of one broker in one round."""

    broker: Literal["stock", "python"]
    run: int
    records: int
    partitions: int = 1
    replicas: int = 1
    written_per_s: float
    read_per_s: float | None = None
    awaited_per_s: float | None = None
    """The last two are of a single partition alone."""


class Failure(_Row):
    """A life that did not come to its end."""

    design: Design
    partitions: int
    error: str


class Result(_Row):
    """All of a result file."""

    began: str | None = None
    machine: Facts = {}
    settings: Facts = {}
    scenarios: tuple[Counted, ...] = ()
    throughput: tuple[Throughput, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def is_alone(self) -> bool:
        """Whether nothing else ran on the machine, as whoever measured says."""
        return self.settings.get("alone") is True

    @property
    def sizes(self) -> list[int]:
        """The numbers of partitions that were measured, ascending."""
        return sorted({row.partitions for row in self.scenarios})

    def of(self, scenario: Scenario, partitions: int) -> dict[Design, Counted]:
        """What the designs came to, those that did."""
        return {row.design: row for row in self.scenarios if (row.scenario, row.partitions) == (scenario, partitions)}

    def largest_of_both(self, scenario: Scenario) -> tuple[Counted, Counted] | None:
        """v2 and v3 at the largest size that both came to the end with."""
        for size in reversed(self.sizes):
            found = self.of(scenario, size)
            if len(found) == 2:
                return found["v2"], found["v3"]
        return None
