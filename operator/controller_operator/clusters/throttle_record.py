"""The record of throttles in clusters without ZooKeeper: a ConfigMap beside the operator, with an entry for each Kafka
cluster."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controller_core.model.throttles import Record
from controller_core.zk.codecs import MalformedZnode, decode_record, encode_record
from controller_operator.kafka.requests.throttles import Recorded, RefusedError, ThrottleRecord
from controller_operator.kubernetes.object_api import ApiRefused, ObjectApi, ObjectChanged, ObjectGone

OpenRecord = Callable[[str], ThrottleRecord]
"""Returns the record of the Kafka cluster with this id."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConfigMapRecord:
    """See `ThrottleRecord`. `cluster_id` is the name of the entry."""

    api: ObjectApi
    namespace: str
    name: str
    cluster_id: str

    async def read(self) -> Recorded:
        try:
            found = await self.api.read_config_map(self.namespace, self.name)
        except ApiRefused as error:
            raise RefusedError(f"{self} cannot be read: {error}") from error
        text = found.entries.get(self.cluster_id) if found is not None else None
        try:
            record = decode_record(self.cluster_id, text.encode()) if text is not None else Record()
        except MalformedZnode as error:
            raise RefusedError(f"{self} is unreadable: {error.reason}. Correct or remove this entry") from error
        return Recorded(record=record, version=found.version if found is not None else None)

    async def write(self, record: Record, known: Recorded) -> None:
        text = encode_record(record).decode() if record != Record() else None
        try:
            await self.api.write_entry(self.namespace, self.name, self.cluster_id, text, known.version)
        except (ObjectChanged, ObjectGone) as error:
            _log.info("record of throttles was changed", record=str(self), error=str(error))
        except ApiRefused as error:
            raise RefusedError(f"{self} cannot be written: {error}") from error

    def __str__(self) -> str:
        return f"entry {self.cluster_id} of ConfigMap {self.namespace}/{self.name}"


def refuse_record(cluster_id: str) -> ThrottleRecord:
    """Open no record, for a process that only observes clusters."""
    raise RefusedError(f"no record of throttles for Kafka cluster {cluster_id}")
