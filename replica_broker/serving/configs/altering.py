"""The pure part of an alteration (KIP-339): the resulting configuration, or the refusal.

Every broker must be able to alter topics, because kafka-configs asks the first one that it knows. Of brokers'
configurations, only this broker's throttles can be altered: kafka-reassign-partitions sets and removes them at every
broker. They are stored and reported, but have no effect here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller_core.admin.refusals import ItemRefused
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, ConfigType, change_list, find_complaints
from controller_core.wire.messages import ErrorCode

SET, DELETE, APPEND, SUBTRACT = range(4)

THROTTLES: Final = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


def apply_changes(config: Mapping[str, str], changes: Iterable[Any], *, is_topic: bool) -> dict[str, str]:
    """Return the configuration after all changes of a request. Raises `ItemRefused`, and then none is made."""
    wanted = dict(config)
    seen: set[str] = set()
    for change in changes:
        if change.name in seen:
            raise ItemRefused(ErrorCode.invalid_request, "Error due to duplicate config keys")
        seen.add(change.name)
        if change.config_operation == DELETE:
            wanted.pop(change.name, None)
        elif change.value is None:
            raise ItemRefused(ErrorCode.invalid_request, f"Null value not supported for : {change.name}")
        else:
            wanted[change.name] = _value(wanted, change, is_topic=is_topic)
    if not is_topic and (foreign := sorted(wanted.keys() - config.keys() - THROTTLES)):
        raise ItemRefused(
            ErrorCode.invalid_config,
            f"{', '.join(foreign)}: only throttles of this broker can be altered, all else is set at its start",
        )
    if is_topic and (found := find_complaints({name: wanted[name] for name in seen & wanted.keys()})):
        raise ItemRefused(ErrorCode.invalid_config, "; ".join(found))
    return wanted


def _value(config: Mapping[str, str], change: Any, *, is_topic: bool) -> str:
    value = str(change.value)
    if change.config_operation == SET:
        return value
    known = TOPIC_CONFIGS.get(change.name) if is_topic else None
    if change.config_operation not in (APPEND, SUBTRACT) or known is None or known.type is not ConfigType.LIST:
        raise ItemRefused(ErrorCode.invalid_config, f"Config value append is not allowed for config key: {change.name}")
    present = config.get(change.name, known.default)
    return change_list(present, value, is_appended=change.config_operation == APPEND)
