"""Configuration that somebody else set on a topic, as the object shows it. `differences` decides about its removal."""

from collections.abc import Callable
from typing import Final

from controller_core.model.snapshot import TopicSnapshot
from controller_core.model.topics.config_keys import find_undeclared_keys
from controller_core.model.wording import format_count, list_some, shorten
from controller_operator.plans.outcome import Notice
from controller_operator.resources.topic import (
    MAX_SHOWN_TEXT,
    MAX_UNDECLARED_KEYS,
    KafkaTopic,
    UndeclaredConfig,
    UndeclaredConfigPolicy,
    UndeclaredKey,
)

_IN_WORDS: Final = 60
"""Characters of a key, or a value, in a message."""


def find_undeclared(resource: KafkaTopic, topic: TopicSnapshot) -> dict[str, str]:
    """Return the configuration that the spec does not name and that this object has not set, by key."""
    return find_undeclared_keys(topic.config, resource.spec.config or {}, resource.status.config_keys)


def show_undeclared(resource: KafkaTopic, topic: TopicSnapshot) -> UndeclaredConfig | None:
    """Return it as the status shows it; None if the topic's configuration is not readable."""
    if not topic.is_config_known:
        return None
    found = find_undeclared(resource, topic)
    first = [
        UndeclaredKey(key=shorten(key, MAX_SHOWN_TEXT), value=shorten(value, MAX_SHOWN_TEXT))
        for key, value in list(found.items())[:MAX_UNDECLARED_KEYS]
    ]
    return UndeclaredConfig(total=len(found), keys=tuple(first))


def describe_undeclared(resource: KafkaTopic, topic: TopicSnapshot) -> str:
    """Return words about the keys on the topic that the spec does not name; empty if there are none.

    With the policy Remove these keys are differences, and the words about those are enough."""
    return _describe(resource, topic, lambda key, value: f"{key}={shorten(value, _IN_WORDS)}")


def make_undeclared_notices(resource: KafkaTopic, topic: TopicSnapshot) -> tuple[Notice, ...]:
    """Return an event if this configuration has changed since the last reconciliation."""
    # Events are also logged, and no log line may have the value of a configuration.
    before, words = resource.status.undeclared_config, _describe(resource, topic, lambda key, _: key)
    if before is None or not words or before == show_undeclared(resource, topic):
        return ()
    message = f"topic {topic.name} {words}"
    occurrence = str(topic.config_version)
    return (Notice(reason="UndeclaredConfig", message=message, is_warning=True, occurrence=occurrence),)


def _describe(resource: KafkaTopic, topic: TopicSnapshot, name: Callable[[str, str], str]) -> str:
    found = find_undeclared(resource, topic)
    if not found or resource.spec.undeclared_config_policy is UndeclaredConfigPolicy.REMOVE:
        return ""
    named = list_some(name(shorten(key, _IN_WORDS), value) for key, value in found.items())
    keys = format_count(len(found), "configuration key")
    return f"has {keys} that the spec does not name, kept by undeclaredConfigPolicy: {named}"
