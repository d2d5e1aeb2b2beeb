"""The result file of `make bench-designs`: a row for each scenario of each life, with the servers' counts."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from bench.designs.counting.leaderships import Design
from bench.report.result import Facts

Scenario = Literal["creation", "death", "return"]
TITLES: Final[dict[Scenario, str]] = {"creation": "creation", "death": "a broker's death", "return": "its return"}
_WITHOUT_CAUSE: Final = "Fetch"
"""Followers send fetches all the time, so their number depends on the duration of a scenario."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Counted(_Row):
    """The counts of one scenario in one design; `bench.designs.measuring` explains each."""

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
        """The number of requests between servers."""
        return sum(count for api, count in self.messages.items() if api != _WITHOUT_CAUSE)

    def wrote(self, *kinds: str) -> int:
        """Return the number of znodes of these kinds that were created, changed or deleted."""
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
    """Only measured with a single partition, like `read_per_s`."""


class Failure(_Row):
    """A life that did not finish."""

    design: Design
    partitions: int
    error: str


class Result(_Row):
    """A whole result file."""

    began: str | None = None
    machine: Facts = {}
    settings: Facts = {}
    scenarios: tuple[Counted, ...] = ()
    throughput: tuple[Throughput, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def is_alone(self) -> bool:
        """True if nothing else ran on the machine, according to the user."""
        return self.settings.get("alone") is True

    @property
    def sizes(self) -> list[int]:
        """The measured numbers of partitions, ascending."""
        return sorted({row.partitions for row in self.scenarios})

    def find_counts(self, scenario: Scenario, partitions: int) -> dict[Design, Counted]:
        """Return the counts of each design that has them."""
        return {row.design: row for row in self.scenarios if (row.scenario, row.partitions) == (scenario, partitions)}

    def largest_of_both(self, scenario: Scenario) -> tuple[Counted, Counted] | None:
        """Return the counts of v2 and v3 at the largest size that both finished."""
        for size in reversed(self.sizes):
            found = self.find_counts(scenario, size)
            if len(found) == 2:
                return found["v2"], found["v3"]
        return None
