"""The configuration of topics, as it is now: what each says itself, and the default of all brokers.

All of it is read when the broker starts, that of a topic again before its replicas start, and whatever `/config/changes`
names. Changes that were missed while ZooKeeper was away are found there, too: every look goes through all notifications
that are newer than the last one that was seen.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import structlog

from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Watch, ZkNode, ZkSession
from replica_broker.log.config import LogConfig, TimestampType
from replica_broker.log.record_batches import Compression
from replica_broker.membership.heeded_configs import OF_BROKERS, refusal
from replica_broker.membership.looking import keep_looking

log = structlog.get_logger()

_LONG_MAX: Final = (1 << 63) - 1
_CODECS: Final[Mapping[str, Compression | None]] = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_TOPICS: Final = "topics/"
_DEFAULTS: Final = f"brokers/{paths.DEFAULT_ENTITY}"


class ZkTopicConfigs:
    """A `TopicConfigs` from ZooKeeper. `own` is what this process was started with, by Kafka's names of it."""

    def __init__(self, zk: ZkSession, own: Mapping[str, str]) -> None:
        self._zk = zk
        self.own = own
        self._defaults: Mapping[str, str] = {}
        self._overrides: dict[TopicName, Mapping[str, str]] = {}
        self._log_configs: dict[TopicName, LogConfig] = {}
        self._seen = ""

    @property
    def defaults(self) -> Mapping[str, str]:
        """What all brokers were told as the default, by the names that topics have for it."""
        return self._defaults

    def overrides(self, topic: TopicName) -> Mapping[str, str]:
        """What a topic itself says."""
        return self._overrides.get(topic, {})

    def log_config(self, topic: TopicName) -> LogConfig:
        """See `TopicConfigs`."""
        known = self._log_configs.get(topic)
        if known is None:
            known = self._log_configs[topic] = self._log_config(topic)
        return known

    def min_insync_replicas(self, topic: TopicName) -> int:
        """See `TopicConfigs`."""
        return int(self._value(topic, "min.insync.replicas"))

    async def load(self) -> None:
        """Reads all of it. Raises the errors of ZooKeeper."""
        topics, changes = await self._zk.children_many([paths.TOPIC_CONFIGS, paths.CONFIG_CHANGES])
        self._seen = max(changes or (), default="")
        await self._load_defaults()
        await self.load_topics(map(TopicName, topics or ()))

    async def load_topics(self, topics: Iterable[TopicName]) -> None:
        """Reads what these topics say. Raises the errors of ZooKeeper."""
        names = list(dict.fromkeys(topics))
        nodes = await self._zk.read_many([paths.topic_config(name) for name in names])
        for name, node in zip(names, nodes, strict=True):
            config = _decoded(paths.topic_config(name), node)
            if config is not None:
                self._overrides[name] = config
                self._log_configs.pop(name, None)

    async def keep(self, on_changed: Callable[[TopicName], Awaitable[None]]) -> None:
        """Follows all changes, and says which topics they concern, until cancelled."""

        async def look(watch: Watch) -> None:
            for topic in await self._look(watch):
                await on_changed(topic)

        await keep_looking(self._zk, look)

    async def _look(self, watch: Watch) -> Iterable[TopicName]:
        names = await self._zk.children_watched(paths.CONFIG_CHANGES, watch) or ()
        new = [name for name in names if name > self._seen]
        entities = {
            entity
            for node in await self._zk.read_many([paths.config_change(name) for name in new])
            if node is not None and (entity := _entity(node)) is not None
        }
        topics = {TopicName(entity.removeprefix(_TOPICS)) for entity in entities if entity.startswith(_TOPICS)}
        await self.load_topics(topics)
        if _DEFAULTS in entities:
            await self._load_defaults()
            topics = set(self._overrides)
        self._seen = max(new, default=self._seen)
        return topics

    async def _load_defaults(self) -> None:
        path = paths.broker_config(None)
        (node,) = await self._zk.read_many([path])
        config = _decoded(path, node)
        if config is not None:
            self._defaults = {name: config[said] for name, said in OF_BROKERS.items() if said in config}
            self._log_configs.clear()

    def _log_config(self, topic: TopicName) -> LogConfig:
        values = {name: self._value(topic, name) for name in OF_BROKERS}
        retention_ms, retention_bytes = int(values["retention.ms"]), int(values["retention.bytes"])
        return LogConfig(
            segment_bytes=int(values["segment.bytes"]),
            segment_ms=int(values["segment.ms"]),
            is_deleted="delete" in values["cleanup.policy"],
            is_compacted="compact" in values["cleanup.policy"],
            retention_ms=None if retention_ms < 0 else retention_ms,
            retention_bytes=None if retention_bytes < 0 else retention_bytes,
            unsupported=refusal(self.overrides(topic)),
            compression=_CODECS[values["compression.type"]],
            max_message_bytes=int(values["max.message.bytes"]),
            message_timestamp_type=TimestampType(values["message.timestamp.type"]),
            message_timestamp_before_max_ms=_timestamp_limit_ms(values, "before"),
            message_timestamp_after_max_ms=_timestamp_limit_ms(values, "after"),
            index_interval_bytes=int(values["index.interval.bytes"]),
        )

    def _value(self, topic: TopicName, name: str) -> str:
        """What holds for a topic: its own word, else that for all brokers, this process's, or Kafka's default."""
        known = TOPIC_CONFIGS[name]
        said = (self.overrides(topic).get(name), self._defaults.get(name), self.own.get(OF_BROKERS[name]))
        for value in said:
            if value is not None and (complaint := known.complaint(value)) is None:
                return value.strip()
            if value is not None:
                log.error("impossible configuration, ignored", topic=topic, config=name, why=complaint)
        return known.default


def _timestamp_limit_ms(values: Mapping[str, str], side: str) -> int | None:
    """Return how far producers' times may be from the broker's clock; None without a limit.

    `difference` is the older name of both limits, and holds where it is the stricter one."""
    limit_ms = min(int(values[f"message.timestamp.{name}.max.ms"]) for name in (side, "difference"))
    return None if limit_ms == _LONG_MAX else limit_ms


def _decoded(path: str, node: ZkNode | None) -> Mapping[str, str] | None:
    """What a znode says, nothing where it is not there; None where it makes no sense, and what was known stays."""
    try:
        return {} if node is None else codecs.decode_config(node.data, path)
    except MalformedZnode as error:
        log.error("unreadable configuration, ignored", path=path, error=str(error))
        return None


def _entity(node: ZkNode) -> str | None:
    try:
        return codecs.decode_config_change(node.data)
    except MalformedZnode as error:
        log.error("unreadable notification of a changed configuration, ignored", error=str(error))
        return None
