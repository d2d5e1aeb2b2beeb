"""A pod with Kafka's own tools beside the brokers, and a producer in it that records every acknowledgement."""

import json
import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from devcluster.node.pods import PodCluster
from tests.e2e.release import NAME, Release

BOOTSTRAP = f"{NAME}-kafka:9092"
ZOOKEEPER = f"{NAME}-zookeeper:2181/kafka"

_SESSION_TIMEOUT_S = (
    18  # zookeeper.session.timeout.ms of the brokers: a dead leader keeps its role for at least as long
)

_POD = "toolbox"
_WORK = "/work"

_KEYS = 30  # so that every partition of a topic gets messages all the time
_PRODUCER = "retries=2147483647"  # a producer's default: the tool itself would retry nothing
_LOGGED = "log4j.logger.org.apache.kafka.clients.NetworkClient=INFO"
_TOO_LATE = "due to socket connection setup timeout"


class Toolbox:
    """The pod. Entering starts it, leaving removes it. `bootstrap`: the brokers of its tools."""

    def __init__(self, pods: PodCluster, release: Release, bootstrap: str = BOOTSTRAP) -> None:
        self._release = release
        self.bootstrap = bootstrap
        self._image = f"{pods.images}kontroller-kafka:0.1.0"

    def __enter__(self) -> Self:
        self._release.apply(self._pod())
        self._release.kubectl("wait", "--for=condition=Ready", f"pod/{_POD}", "--timeout=120s")
        return self

    def __exit__(self, *error: object) -> None:
        self._release.kubectl("delete", "pod", _POD, "--ignore-not-found", "--grace-period=0", "--force")

    def run(self, *command: str) -> str:
        """Run a command in the pod and return its output. Raises CommandError."""
        return self._release.kubectl("exec", _POD, "--", *command)

    def shell(self, script: str) -> str:
        """Run a shell script in the pod and return its output. Raises CommandError."""
        return self.run("sh", "-ec", script)

    def start_load(self, topic: str) -> "Load":
        """Start to produce with acks=all to an existing topic, and wait for the first acknowledgements."""
        load = Load(toolbox=self, topic=topic, folder=f"{_WORK}/{uuid.uuid4()}")
        load.start()
        self._release.wait_for(lambda: load.count_acknowledged() > 0, f"the first message to {topic} is acknowledged")
        return load

    def wait_for_progress(self, load: "Load") -> None:
        """Wait until every partition that has taken messages takes more."""
        before = load.list_acknowledged()
        partitions = {each.partition for each in before}

        def go_on() -> bool:
            return partitions <= {each.partition for each in load.list_acknowledged()[len(before) :]}

        self._release.wait_for(go_on, f"every partition of {load.topic} takes messages again")

    @contextmanager
    def watch_for_offline(self) -> Iterator["OfflineWatch"]:
        """Look for partitions without a live leader while the block runs."""
        watch = OfflineWatch(toolbox=self, folder=f"{_WORK}/{uuid.uuid4()}")
        watch.start()
        yield watch
        watch.stop()

    def fill(self, topic: str, *, megabytes: int) -> None:
        """Write data to a topic."""
        records = f"--num-records {megabytes * 100} --record-size 10000 --throughput -1"
        properties = f"--producer-props bootstrap.servers={self.bootstrap} acks=all"
        self.shell(f"kafka-producer-perf-test.sh --topic {topic} {records} {properties}")

    def throttle(self, topic: str, *, bytes_per_second: int) -> None:
        """Throttle the replication of a topic between brokers."""
        rate = ",".join(f"{side}.replication.throttled.rate={bytes_per_second}" for side in ("leader", "follower"))
        replicas = "leader.replication.throttled.replicas=*,follower.replication.throttled.replicas=*"
        self._configure("--entity-type brokers --entity-default", f"--add-config {rate}")
        self._configure(f"--entity-type topics --entity-name {topic}", f"--add-config {replicas}")

    def unthrottle(self, topic: str) -> None:
        """Remove the throttles."""
        for what in ("brokers --entity-default", f"topics --entity-name {topic}"):
            suffix = "rate" if what.startswith("brokers") else "replicas"
            keys = ",".join(f"{side}.replication.throttled.{suffix}" for side in ("leader", "follower"))
            self._configure(f"--entity-type {what}", f"--delete-config {keys}")

    def _configure(self, entity: str, change: str) -> None:
        self.shell(f"kafka-configs.sh --bootstrap-server {self.bootstrap} --alter {entity} {change}")

    def _pod(self) -> dict[str, Any]:
        mounts = [{"name": "work", "mountPath": _WORK}, {"name": "tmp", "mountPath": "/tmp"}]
        container = {
            "name": "tools",
            "image": self._image,
            "command": ["sleep", "infinity"],
            # A pod that requests nothing gets next to no time on a busy machine: its producer gives up after 120 s.
            "resources": {"requests": {"cpu": "100m"}},
            "volumeMounts": mounts,
            "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
        }
        spec = {
            "containers": [container],
            "volumes": [{"name": mount["name"], "emptyDir": {}} for mount in mounts],
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "fsGroup": 65532},
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POD}, "spec": spec}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineWatch:
    """Looks at ZooKeeper and the brokers repeatedly, from a pod beside them."""

    toolbox: Toolbox
    folder: str

    def start(self) -> None:
        script = Path(__file__).with_name("offline_watcher.py").read_text()
        run = f"/opt/kontroller/bin/python -c {shlex.quote(script)} {ZOOKEEPER} {self.folder}/go-on {self.folder}/begun"
        self.toolbox.shell(
            f"mkdir {self.folder}; touch {self.folder}/go-on; nohup {run} > {self.folder}/seen 2>&1 < /dev/null &"
            f" until [ -e {self.folder}/begun ] || [ -s {self.folder}/seen ]; do sleep 0.1; done"
        )

    def stop(self) -> None:
        self.toolbox.shell(f"rm {self.folder}/go-on; while [ ! -s {self.folder}/seen ]; do sleep 0.1; done")

    def partitions(self) -> list[str]:
        """Return the partitions without a live leader at the worst moment.

        If there is none, assert that no gap between two looks was as long as a session.
        """
        seen = json.loads(self.toolbox.run("cat", f"{self.folder}/seen"))
        found: list[str] = seen["partitions"]
        assert found or seen["away_s"] < _SESSION_TIMEOUT_S
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A message that the cluster took, and when the producer learned it by its pod's clock."""

    value: int
    partition: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Kafka's verifiable producer, with a producer's default settings: it writes numbers to all partitions, and records
    the acknowledged ones.
    """

    toolbox: Toolbox
    topic: str
    folder: str

    def start(self) -> None:
        log = f"{self.folder}/log4j.properties"
        files = f"echo {_PRODUCER} > producer; (cat /opt/kafka/config/tool-log4j.properties; echo {_LOGGED}) > {log}"
        where = f"--bootstrap-server {self.toolbox.bootstrap} --topic {self.topic} --repeating-keys {_KEYS}"
        what = f"{where} --acks -1 --throughput 100 --producer.config producer"
        produce = f"nohup kafka-verifiable-producer.sh {what} > said 2> errors < /dev/null"
        options = f"export KAFKA_LOG4J_OPTS=-Dlog4j.configuration=file:{log}"
        self.toolbox.shell(f"mkdir {self.folder}; cd {self.folder}; {files}; {options}; {produce} & echo $! > pid")

    def count_acknowledged(self) -> int:
        """Return the number of acknowledged messages so far."""
        return int(self.toolbox.shell(f"grep -c producer_send_success {self.folder}/said || true"))

    def list_acknowledged(self) -> list[Acknowledgement]:
        """Return the acknowledged messages so far, in the order in which the producer learned it."""
        return [
            Acknowledgement(
                value=int(event["value"]), partition=int(event["partition"]), at_s=event["timestamp"] / 1000
            )
            for event in self._list_events("producer_send_success")
        ]

    def list_errors(self) -> list[str]:
        """Return why the producer gave messages up so far, one reason for each."""
        return [f"{event['exception']}: {event['message']}" for event in self._list_events("producer_send_error")]

    def list_timeouts(self) -> list[str]:
        """Return what the producer logged about brokers that did not accept its connections in time: at an address that
        nobody has, for example.
        """
        return self.toolbox.shell(f"grep '{_TOO_LATE}' {self.folder}/errors || true").splitlines()

    def stop(self) -> set[int]:
        """End it, wait for messages in flight, and return the acknowledged ones."""
        self.toolbox.shell(
            f"kill $(cat {self.folder}/pid); until grep -q shutdown_complete {self.folder}/said; do sleep 0.2; done"
        )
        return {each.value for each in self.list_acknowledged()}

    def _list_events(self, name: str) -> list[Any]:
        # The last line may be incomplete while it is written.
        lines = self.toolbox.shell(f"grep '\"{name}\".*}}$' {self.folder}/said || true").splitlines()
        return [json.loads(line) for line in lines]

    def read_back(self) -> set[int]:
        """Return every message of the topic, however long the first one takes.

        A consumer waits for the coordinator of its group, which may have to read its own log first, after a restart.
        """
        where = f"--bootstrap-server {self.toolbox.bootstrap} --topic {self.topic}"
        ends = self.toolbox.shell(f"kafka-get-offsets.sh {where}").split()
        count = sum(int(end.rsplit(":", 1)[1]) for end in ends)
        consume = f"kafka-console-consumer.sh {where} --from-beginning --max-messages {count} --timeout-ms 120000"
        read = self.toolbox.shell(f"{consume} 2> {self.folder}/reader-said").split()
        assert len(read) == count, self.toolbox.run("cat", f"{self.folder}/reader-said")
        return {int(value) for value in read}

    def find_lost(self) -> set[int]:
        """Stop it, and return the acknowledged messages that cannot be read: empty if the cluster lost nothing."""
        acknowledged = self.stop()
        assert acknowledged
        return acknowledged - self.read_back()
