"""What an alteration makes of a configuration (KIP-339), pure; and in which words it is refused.

A topic's configuration is altered through any broker, so this one must take it, too: kafka-configs asks the first that it
knows. Of brokers only this one is altered here, and only its throttles: kafka-reassign-partitions sets them, and takes them
away, at every broker of the cluster. They are written down and told, and not heeded: nothing is throttled here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller_core.admin.refusals import Refused
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, ConfigType, complaints
from controller_core.wire.messages import ErrorCode

SET, DELETE, APPEND, SUBTRACT = range(4)

THROTTLES: Final = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


def altered(config: Mapping[str, str], changes: Iterable[Any], *, is_topic: bool) -> dict[str, str]:
    """The configuration after all changes of a request. Raises `Refused`: none of them is made then."""
    wanted = dict(config)
    seen: set[str] = set()
    for change in changes:
        if change.name in seen:
            raise Refused(ErrorCode.invalid_request, "Error due to duplicate config keys")
        seen.add(change.name)
        if change.config_operation == DELETE:
            wanted.pop(change.name, None)
        elif change.value is None:
            raise Refused(ErrorCode.invalid_request, f"Null value not supported for : {change.name}")
        else:
            wanted[change.name] = _value(wanted, change, is_topic=is_topic)
    if not is_topic and (foreign := sorted(wanted.keys() - config.keys() - THROTTLES)):
        raise Refused(
            ErrorCode.invalid_config,
            f"{', '.join(foreign)}: of a broker of ours only throttles are altered, all else is said when it starts",
        )
    if is_topic and (found := complaints({name: wanted[name] for name in seen & wanted.keys()})):
        raise Refused(ErrorCode.invalid_config, "; ".join(found))
    return wanted


def _value(config: Mapping[str, str], change: Any, *, is_topic: bool) -> str:
    value = str(change.value)
    if change.config_operation == SET:
        return value
    known = TOPIC_CONFIGS.get(change.name) if is_topic else None
    if change.config_operation not in (APPEND, SUBTRACT) or known is None or known.type is not ConfigType.LIST:
        raise Refused(ErrorCode.invalid_config, f"Config value append is not allowed for config key: {change.name}")
    present = _items(config.get(change.name, known.default))
    named = _items(value)
    if change.config_operation == APPEND:
        return ",".join([*present, *(item for item in named if item not in present)])
    return ",".join(item for item in present if item not in named)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
