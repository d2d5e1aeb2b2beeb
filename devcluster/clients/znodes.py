"""A cluster's znodes as a tool or a person reads and writes them, for the demo and the tests.

Nothing here uses the production code: the controller's work is checked against plain JSON.
"""

import base64
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError, RolledBackError, RuntimeInconsistency

REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
PARTITIONS_ADD = "/admin/partitions_add"
PARTITIONS_REMOVE = "/admin/partitions_remove"
PARTITIONS_REASSIGNED = "/admin/partitions_reassigned"


class ClusterZnodes:
    """One cluster's znodes, over a connected client whose root is the cluster's chroot."""

    def __init__(self, client: KazooClient) -> None:
        self.client = client

    # Reading

    def read(self, path: str) -> Any:
        """Return the JSON at the path, or None if there is no such znode."""
        try:
            data, _ = self.client.get(path)
        except NoNodeError:
            return None
        return json.loads(data) if data else None

    def controller(self) -> int | None:
        """Return the id in `/controller`, or None if there is no controller."""
        znode = self.read("/controller")
        return None if znode is None else int(znode["brokerid"])

    def live_brokers(self) -> set[int]:
        """Return the ids of the registered brokers."""
        return {int(broker) for broker in self.client.get_children("/brokers/ids")}

    def read_assignment(self, topic: str, partition: int) -> list[int]:
        """Return AR of a partition; empty if there is no such partition."""
        znode = self.read(f"/brokers/topics/{topic}")
        return list(znode["partitions"].get(str(partition), [])) if znode else []

    def partitions(self, topic: str) -> dict[int, list[int]]:
        """Return AR of each partition; empty if there is no such topic."""
        znode = self.read(f"/brokers/topics/{topic}")
        return {int(number): list(brokers) for number, brokers in znode["partitions"].items()} if znode else {}

    def origin(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return OAR: AR without the replicas that a running reassignment adds."""
        znode = self.read(f"/brokers/topics/{topic}") or {"partitions": {}}
        adding = znode.get("adding_replicas", {}).get(str(partition), [])
        return tuple(broker for broker in znode["partitions"].get(str(partition), []) if broker not in adding)

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """Return the state of a partition; leader -1 and an empty ISR if it has none yet."""
        state = self.read(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return dict(state) if state else {"leader": -1, "isr": [], "leader_epoch": -1, "controller_epoch": -1}

    def leader(self, topic: str, partition: int) -> int:
        return int(self.state(topic, partition)["leader"])

    def isr(self, topic: str, partition: int) -> list[int]:
        return sorted(self.state(topic, partition)["isr"])

    def is_served(self, topic: str, partitions: Sequence[int]) -> bool:
        """Return True if every partition has a leader and all of AR in the ISR."""
        return all(
            self.leader(topic, partition) >= 0
            and self.isr(topic, partition) == sorted(self.read_assignment(topic, partition))
            for partition in partitions
        )

    def reassignments(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """Return RAR of each partition whose reassignment is requested and not done."""
        znode = self.read(REASSIGN_PARTITIONS) or {"partitions": []}
        return {(entry["topic"], int(entry["partition"])): tuple(entry["replicas"]) for entry in znode["partitions"]}

    def is_reassigning(self, topic: str, partition: int = 0) -> bool:
        """Return True if a reassignment of the partition has begun and is not done."""
        znode = self.read(f"/brokers/topics/{topic}") or {}
        return any(str(partition) in znode.get(field, {}) for field in ("adding_replicas", "removing_replicas"))

    def has_reassignments(self) -> bool:
        return self.client.exists(REASSIGN_PARTITIONS) is not None

    def list_throttled_brokers(self) -> list[str]:
        """Return the names in `/config/brokers` with a limit of replication: ids, and `<default>` for all brokers."""
        try:
            names = self.client.get_children("/config/brokers")
        except NoNodeError:
            return []
        configs = {name: (self.read(f"/config/brokers/{name}") or {}).get("config", {}) for name in sorted(names)}
        return [name for name, config in configs.items() if any(key.endswith(".throttled.rate") for key in config)]

    def has_election(self) -> bool:
        return self.client.exists(PREFERRED_ELECTION) is not None

    # Writing

    def create_topic(
        self, topic: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic whose partitions 0, 1, ... have the given replicas, as Kafka's tools do."""
        topic_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        partitions = {str(partition): list(brokers) for partition, brokers in enumerate(replicas)}
        content = {"version": 3, "topic_id": topic_id, "partitions": partitions}
        self.client.ensure_path("/config/topics")
        self.client.ensure_path("/brokers/topics")
        # Together, so that a lost connection never leaves one without the other.
        self._write_together({
            f"/config/topics/{topic}": {"version": 1, "config": dict(config or {})},
            f"/brokers/topics/{topic}": {**content, "adding_replicas": {}, "removing_replicas": {}},
        })  # fmt: skip

    def add_partitions(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Add partitions to a topic, as Kafka's tools do; retry if the controller wrote the topic in between."""
        path = f"/brokers/topics/{topic}"
        while True:
            data, stat = self.client.get(path)
            content = json.loads(data)
            content["partitions"].update({str(partition): list(brokers) for partition, brokers in replicas.items()})
            try:
                self.client.set(path, json.dumps(content).encode(), version=stat.version)
            except BadVersionError:
                continue
            return

    def change_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Set some of a topic's configuration and notify the brokers, as Kafka's tools do."""
        path = f"/config/topics/{topic}"
        content = self.read(path) or {"version": 1, "config": {}}
        content["config"].update(config)
        self.client.set(path, json.dumps(content).encode())
        notification = json.dumps({"version": 2, "entity_path": f"topics/{topic}"}).encode()
        self.client.create("/config/changes/config_change_", notification, sequence=True, makepath=True)

    def reassign(self, targets: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Request the reassignment of partitions to RAR."""
        self.client.create(REASSIGN_PARTITIONS, _encode_targets(targets), makepath=True)

    def rewrite_reassignment(self, targets: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """Request other targets while the znode of the former request is still there."""
        self.client.set(REASSIGN_PARTITIONS, _encode_targets(targets))

    def ask_of_partition(self, kind: str, topic: str, partition: int, replicas: Sequence[int] | None = None) -> str:
        """Request a change of one partition, in one of the three `PARTITIONS_...`; returns the path of the request."""
        path = f"{kind}/{topic}/{partition}"
        content = b"" if replicas is None else json.dumps({"version": 1, "replicas": list(replicas)}).encode()
        self.client.create(path, content, makepath=True)
        return path

    def elect_preferred(self, partitions: Sequence[tuple[str, int]]) -> None:
        """Request the election of the partitions' preferred replicas."""
        entries = [{"topic": topic, "partition": partition} for topic, partition in partitions]
        self._create(PREFERRED_ELECTION, {"version": 1, "partitions": entries})

    def mark_for_deletion(self, topic: str) -> None:
        self.client.ensure_path(f"/admin/delete_topics/{topic}")

    def _write_together(self, contents: Mapping[str, Mapping[str, Any]]) -> None:
        transaction = self.client.transaction()
        for path, content in contents.items():
            transaction.create(path, json.dumps(content).encode())
        for outcome in transaction.commit():
            if isinstance(outcome, Exception) and not isinstance(outcome, RolledBackError | RuntimeInconsistency):
                raise outcome

    def _create(self, path: str, content: Mapping[str, Any]) -> None:
        self.client.create(path, json.dumps(content).encode(), makepath=True)


def _encode_targets(targets: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in targets.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions}).encode()
