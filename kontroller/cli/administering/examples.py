"""An example of each command, in an order in which all of them can be run: for `docs/cli.md`, and for a test."""

from typing import Final, NamedTuple

PLAN_FILE: Final = "plan.json"
PARTITIONS_FILE: Final = "partitions.json"
FILES: Final = {
    PLAN_FILE: '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,3]}]}',
    PARTITIONS_FILE: '{"partitions":[{"topic":"orders","partition":0}]}',
}
"""What the files of the examples say."""


class Example(NamedTuple):
    """A command line, and what it does."""

    arguments: str
    """Without `kontroller`, and where the cluster is."""
    about: str
    exit_code: int = 0
    """On a cluster of three stock brokers: those advertise no features."""

    @property
    def command(self) -> str:
        return " ".join(self.arguments.split()[:2])


EXAMPLES: Final = (
    Example("cluster describe", "who is there, and whether partitions ail"),
    Example(
        "topics create --topic orders --partitions 2 --replication-factor 2 --config retention.ms=60000", "by numbers"
    ),
    Example("topics create --topic invoices --replica-assignment 1:2,2:3", "partition 0 on 1 and 2, 1 on 2 and 3"),
    Example("topics list --exclude-internal -o json", "for a program"),
    Example("topics describe --topic orders --topic invoices", "leaders, replicas, ISRs and configurations"),
    Example("topics alter --topic orders --partitions 3 --add-config retention.ms=5000", "configurations, then partitions"),
    Example(f"reassign start --reassignment-json-file {PLAN_FILE} --throttle 10000000", "moves, and waits for the end"),
    Example(f"reassign verify --reassignment-json-file {PLAN_FILE}", "how far each partition is"),
    Example("reassign list", "all that moves"),
    Example("reassign limits", "limits that PartitionReassignments have set, without ZooKeeper"),
    Example(f"reassign cancel --reassignment-json-file {PLAN_FILE}", "back to where it was, as far as it moves"),
    Example(f"elect preferred --path-to-json-file {PARTITIONS_FILE}", "by a file"),
    Example("elect verify --topic orders --partition 0", "whether its first replica leads"),
    Example("elect unclean --topic orders --partition 0 --yes", "of a partition without a leader: its data may be lost"),
    Example("features describe --controller", "what is finalized, and what the controller supports"),
    Example("features update --feature-upgrade group.version:1 --yes", "all brokers have to support it", 1),
    Example("features disable --features group.version --yes", "only what is finalized", 1),
    Example("topics delete --topic orders --topic invoices --yes", "with all that is in them"),
)  # fmt: skip
