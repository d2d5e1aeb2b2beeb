"""Finalized features (KIP-584): the level of a feature that the whole cluster may use, and the rules for its changes.

Every broker registers which versions of a feature it supports. `/feature` holds the level up to which the cluster may
use it. A level is finalized only if every live broker supports it, so a client may rely on a finalized level at every
broker. The rules, their order and their words are those of Kafka 3.9's ZooKeeper controller, with two differences. A
message names the brokers that do not support the level. "Not supported" means "by no live broker": Kafka asks the
broker that is the controller, but Kontroller is no broker and supports no feature itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker, FeatureRange

DELETED_LEVEL: Final = 0
"""The level that a downgrade asks for to delete a feature."""


class UpgradeType(IntEnum):
    """The direction in which an update may change a finalized level (`FeatureUpdate.UpgradeType` of the admin client)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def parse_code(cls, code: int) -> "UpgradeType":
        """Return the type of a code on the wire; `UNKNOWN` for a code that Kafka does not know."""
        return cls(code) if code in cls.__members__.values() else cls.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeatures:
    """The finalized level of each feature, and the epoch: the version of `/feature`, which rises with every change."""

    features: Mapping[str, int] = field(default_factory=dict)
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """A requested level of one feature."""

    feature: str
    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE

    @property
    def is_deletion(self) -> bool:
        return self.max_version_level < 1 and self.upgrade_type is not UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedFeatures:
    """The levels after all valid updates, and the reason for each refused one."""

    features: Mapping[str, int]
    refused: Mapping[str, str]


def apply_updates(
    finalized: Mapping[str, int], updates: Iterable[FeatureUpdate], brokers: Iterable[Broker]
) -> UpdatedFeatures:
    """Apply the valid updates. Each is judged by `finalized` alone, so a refused one holds up no other (KIP-584)."""
    live = list(brokers)
    features, refused = dict(finalized), {}
    for update in updates:
        existing = finalized.get(update.feature)
        refusal = _refusal(update, existing) or (None if update.is_deletion else _explain_unsupported(update, live))
        if refusal is not None:
            refused[update.feature] = refusal
        elif update.is_deletion:
            features.pop(update.feature, None)
        else:
            features[update.feature] = update.max_version_level
    return UpdatedFeatures(features=features, refused=refused)


def find_incompatibilities(broker: Broker, finalized: Mapping[str, int]) -> list[str]:
    """Return the reasons why a broker must not join a cluster with these levels, one for each feature; empty if it may."""
    return [
        f"{feature} is finalized at {level}, the broker supports {describe_range(broker.features.get(feature))}"
        for feature, level in finalized.items()
        if not supports(broker, feature, level)
    ]


def supports(broker: Broker, feature: str, level: int) -> bool:
    versions = broker.features.get(feature)
    return versions is not None and versions.min_version <= level <= versions.max_version


def find_common_range(feature: str, brokers: Iterable[Broker]) -> FeatureRange | None:
    """Return the versions that all of the brokers support; None if there are none, or no brokers."""
    ranges = [broker.features.get(feature) for broker in brokers]
    known = [versions for versions in ranges if versions is not None]
    if not known or len(known) < len(ranges):
        return None
    lowest = max(versions.min_version for versions in known)
    highest = min(versions.max_version for versions in known)
    return FeatureRange(min_version=lowest, max_version=highest) if lowest <= highest else None


def find_unsupporting(feature: str, level: int, brokers: Iterable[Broker]) -> dict[BrokerId, str]:
    """Return the brokers that do not support a level, each with the versions that it supports, in words."""
    return {
        broker.id: f"broker {broker.id} supports {describe_range(broker.features.get(feature))}"
        for broker in sorted(brokers, key=lambda broker: broker.id)
        if not supports(broker, feature, level)
    }


def describe_range(versions: FeatureRange | None) -> str:
    """Describe a range of versions in words."""
    return "none" if versions is None else f"{versions.min_version} to {versions.max_version}"


def _refusal(update: FeatureUpdate, existing: int | None) -> str | None:
    """Return the reason to refuse an update for what it asks, whatever the brokers support; None if it is fine."""
    level, upgrade_type = update.max_version_level, update.upgrade_type
    if not update.feature:
        return "Feature name can not be empty."
    if upgrade_type is UpgradeType.UNKNOWN:
        return "Received unknown upgrade type."
    if update.is_deletion:
        return "Can not delete non-existing finalized feature." if existing is None else None
    if level < 1:
        return (
            f"Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType in the request."
        )
    return None if existing is None else _illegal_change(existing, level, upgrade_type)


def _illegal_change(existing: int, level: int, upgrade_type: UpgradeType) -> str | None:
    # In ZooKeeper mode an UNSAFE_DOWNGRADE can delete a feature, and neither lower nor raise a level.
    is_safe_downgrade = upgrade_type is UpgradeType.SAFE_DOWNGRADE
    if level == existing:
        verb = "downgrade" if is_safe_downgrade else "upgrade"
        return f"Can not {verb} a finalized feature from existing versionLevel:{existing} to the same value."
    if level < existing and not is_safe_downgrade:
        return (
            f"Can not downgrade finalized feature from existing versionLevel:{existing} to provided versionLevel:{level}"
            " without setting the downgradeType to SAFE in the request."
        )
    if level > existing and upgrade_type is not UpgradeType.UPGRADE:
        return (
            f"When the downgradeType is set to SAFE in the request, the provided versionLevel:{level} can not be greater"
            f" than existing versionLevel:{existing}."
        )
    return None


def _explain_unsupported(update: FeatureUpdate, brokers: Iterable[Broker]) -> str | None:
    live = list(brokers)
    feature, level = update.feature, update.max_version_level
    if all(feature not in broker.features for broker in live):
        named = f" (live brokers: {', '.join(str(broker.id) for broker in live)})" if live else " (no broker is live)"
        return f"Could not apply finalized feature update because the provided feature is not supported{named}."
    if blocking := find_unsupporting(feature, level, live):
        return (
            "Could not apply finalized feature update because brokers were found to have incompatible versions for the"
            f" feature: {'; '.join(blocking.values())}; versionLevel:{level} was asked for."
        )
    return None
