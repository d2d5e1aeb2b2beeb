"""The current configuration of topics: their overrides, and the cluster-wide default.

Everything is read at the start. A topic is read again before its replicas start, and after a notification in
`/config/changes`. Each look reads all notifications newer than the last one seen, so none is missed while ZooKeeper is
unreachable.
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
from replica_broker.membership.heeded_configs import OF_BROKERS, find_refusal
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
    """A `TopicConfigs` from ZooKeeper. `own` has this process's settings, by Kafka's names for brokers."""

    def __init__(self, zk: ZkSession, own: Mapping[str, str]) -> None:
        self._zk = zk
        self.own = own
        self._defaults: Mapping[str, str] = {}
        self._overrides: dict[TopicName, Mapping[str, str]] = {}
        self._log_configs: dict[TopicName, LogConfig] = {}
        self._seen = ""

    @property
    def defaults(self) -> Mapping[str, str]:
        """The cluster-wide defaults of all brokers, by the topics' names."""
        return self._defaults

    def overrides(self, topic: TopicName) -> Mapping[str, str]:
        """Return the overrides of a topic."""
        return self._overrides.get(topic, {})

    def log_config(self, topic: TopicName) -> LogConfig:
        """Return the log configuration of a topic. See `TopicConfigs`."""
        known = self._log_configs.get(topic)
        if known is None:
            known = self._log_configs[topic] = self._log_config(topic)
        return known

    def min_insync_replicas(self, topic: TopicName) -> int:
        """Return `min.insync.replicas` of a topic. See `TopicConfigs`."""
        return int(self._value(topic, "min.insync.replicas"))

    async def load(self) -> None:
        """Read all configurations. Raises the errors of ZooKeeper."""
        topics, changes = await self._zk.children_many([paths.TOPIC_CONFIGS, paths.CONFIG_CHANGES])
        self._seen = max(changes or (), default="")
        await self._load_defaults()
        await self.load_topics(map(TopicName, topics or ()))

    async def load_topics(self, topics: Iterable[TopicName]) -> None:
        """Read the overrides of these topics. Raises the errors of ZooKeeper."""
        names = list(dict.fromkeys(topics))
        nodes = await self._zk.read_many([paths.topic_config(name) for name in names])
        for name, node in zip(names, nodes, strict=True):
            config = _decode(paths.topic_config(name), node)
            if config is not None:
                self._overrides[name] = config
                self._log_configs.pop(name, None)

    async def keep(self, on_changed: Callable[[TopicName], Awaitable[None]]) -> None:
        """Follow all changes until cancelled, and call `on_changed` for each topic concerned."""

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
        config = _decode(path, node)
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
            unsupported=find_refusal(self.overrides(topic)),
            compression=_CODECS[values["compression.type"]],
            max_message_bytes=int(values["max.message.bytes"]),
            message_timestamp_type=TimestampType(values["message.timestamp.type"]),
            message_timestamp_before_max_ms=_timestamp_limit_ms(values, "before"),
            message_timestamp_after_max_ms=_timestamp_limit_ms(values, "after"),
            index_interval_bytes=int(values["index.interval.bytes"]),
        )

    def _value(self, topic: TopicName, name: str) -> str:
        """Return the effective value: the topic's, else the cluster default, this process's, or Kafka's default."""
        known = TOPIC_CONFIGS[name]
        said = (self.overrides(topic).get(name), self._defaults.get(name), self.own.get(OF_BROKERS[name]))
        for value in said:
            if value is not None and (complaint := known.complaint(value)) is None:
                return value.strip()
            if value is not None:
                log.error("invalid configuration is ignored", topic=topic, config=name, why=complaint)
        return known.default


def _timestamp_limit_ms(values: Mapping[str, str], side: str) -> int | None:
    """Return the limit of the distance between a producer's timestamp and the broker's clock; None if there is none.

    `difference` is the older name of both limits. The stricter one applies.
    """
    limit_ms = min(int(values[f"message.timestamp.{name}.max.ms"]) for name in (side, "difference"))
    return None if limit_ms == _LONG_MAX else limit_ms


def _decode(path: str, node: ZkNode | None) -> Mapping[str, str] | None:
    """Return the configuration of a znode, empty if there is no znode.

    None if it is unreadable, so that the old one stays.
    """
    try:
        return {} if node is None else codecs.decode_config(node.data, path)
    except MalformedZnode as error:
        log.error("unreadable configuration is ignored", path=path, error=str(error))
        return None


def _entity(node: ZkNode) -> str | None:
    try:
        return codecs.decode_config_change(node.data)
    except MalformedZnode as error:
        log.error("unreadable notification of a configuration change is ignored", error=str(error))
        return None
