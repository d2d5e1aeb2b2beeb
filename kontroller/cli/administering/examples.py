"""An example of each command, in an order in which they can all be run. Used by `docs/cli.md` and by a test."""

from typing import Final, NamedTuple

PLAN_FILE: Final = "plan.json"
PARTITIONS_FILE: Final = "partitions.json"
FILES: Final = {
    PLAN_FILE: '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2,3]}]}',
    PARTITIONS_FILE: '{"partitions":[{"topic":"orders","partition":0}]}',
}
"""The contents of the example files."""


class Example(NamedTuple):
    """A command line, and its purpose."""

    arguments: str
    """The arguments without `kontroller` and the address of the cluster."""
    about: str
    exit_code: int = 0
    """The exit code on a cluster of three stock brokers, which advertise no features."""

    @property
    def command(self) -> str:
        return " ".join(self.arguments.split()[:2])


EXAMPLES: Final = (
    Example("cluster describe", "members of the cluster, and unhealthy partitions"),
    Example(
        "topics create --topic orders --partitions 2 --replication-factor 2 --config retention.ms=60000", "with numbers"
    ),
    Example("topics create --topic invoices --replica-assignment 1:2,2:3", "partition 0 on 1 and 2, 1 on 2 and 3"),
    Example("topics list --exclude-internal -o json", "for a program"),
    Example("topics describe --topic orders --topic invoices", "leaders, replicas, ISRs and configurations"),
    Example("topics alter --topic orders --partitions 3 --add-config retention.ms=5000", "configurations, then "
    "partitions"),
    Example(f"reassign start --reassignment-json-file {PLAN_FILE} --throttle 10000000", "start the move, and wait for "
    "its end"),
    Example(f"reassign verify --reassignment-json-file {PLAN_FILE}", "progress of each partition"),
    Example("reassign list", "all moves"),
    Example(f"reassign cancel --reassignment-json-file {PLAN_FILE}", "move back the partitions that still move"),
    Example(f"elect preferred --path-to-json-file {PARTITIONS_FILE}", "with a file"),
    Example("elect verify --topic orders --partition 0", "check that the first replica leads"),
    Example("elect unclean --topic orders --partition 0 --yes", "may lose data of a partition without a leader"),
    Example("features describe --controller", "finalized levels, and the levels that the controller supports"),
    Example("features update --feature-upgrade group.version:1 --yes", "fails unless all brokers support it", 1),
    Example("features version-mapping --release-version 4.1", "levels of a release; asks no cluster"),
    Example("features feature-dependencies --feature eligible.leader.replicas.version=1", "asks no cluster"),
    Example("features upgrade --release-version 4.1 --yes", "for clusters without ZooKeeper", 1),
    Example("features downgrade --feature group.version=0 --dry-run", "level 0 disables"),
    Example("features disable --features group.version --yes", "only finalized features can be disabled", 1),
    Example("topics delete --topic orders --topic invoices --yes", "including their data"),
)  # fmt: skip
