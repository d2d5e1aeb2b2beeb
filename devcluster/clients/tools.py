"""Kafka's own command line tools, run as a user of the cluster would."""

import subprocess

from devcluster.building.java import tool_command
from devcluster.running.processes import spawn

TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ACLS = "kafka.admin.AclCommand"


def run_tool(
    main_class: str, *arguments: str, stdin: str | None = None, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; the caller checks `returncode`, `stdout` and `stderr`.

    Raises `subprocess.TimeoutExpired` after `timeout_s`; the tool is killed then.
    """
    with start_tool(main_class, *arguments) as tool:
        try:
            stdout, stderr = tool.communicate(stdin, timeout=timeout_s)
        except BaseException:
            tool.kill()
            raise
    return subprocess.CompletedProcess(tool.args, tool.returncode, stdout, stderr)


def start_tool(main_class: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a tool with pipes for its standard streams; it is killed when this process ends."""
    pipe = subprocess.PIPE
    return spawn(tool_command(main_class, *arguments), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
