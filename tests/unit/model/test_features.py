"""Finalized features: Kafka's rules in Kafka's order and words, and which brokers stand in the way."""

import pytest

from controller_core.model.feature_levels.releases import UnknownLevel, find_dependencies, map_release
from controller_core.model.features import (
    FeatureUpdate,
    UpgradeType,
    apply_updates,
    find_common_range,
    find_incompatibilities,
    find_unsupporting,
)
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, FeatureRange

UNKNOWN, UPGRADE, SAFE, UNSAFE = UpgradeType


def broker(number: int, **features: tuple[int, int]) -> Broker:
    ranges = {name: FeatureRange(min_version=low, max_version=high) for name, (low, high) in features.items()}
    return Broker(id=BrokerId(number), epoch=BrokerEpoch(1), endpoints=(), features=ranges)


BROKERS = (broker(1, f=(1, 5)), broker(2, f=(2, 4)))


@pytest.mark.parametrize(
    ("finalized", "feature", "level", "upgrade_type", "refusal"),
    [
        (None, "", 0, UNKNOWN, "Feature name can not be empty."),
        (None, "f", 0, UNKNOWN, "Received unknown upgrade type."),
        (None, "f", 0, SAFE, "Can not delete non-existing finalized feature."),
        (None, "f", -1, UNSAFE, "Can not delete non-existing finalized feature."),
        (3, "f", 0, UPGRADE, "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType"),
        (3, "f", 3, UPGRADE, "Can not upgrade a finalized feature from existing versionLevel:3 to the same value."),
        (3, "f", 3, SAFE, "Can not downgrade a finalized feature from existing versionLevel:3 to the same value."),
        (3, "f", 2, UPGRADE, "Can not downgrade finalized feature from existing versionLevel:3 to provided"),
        (3, "f", 2, UNSAFE, "without setting the downgradeType to SAFE in the request."),
        (3, "f", 4, SAFE, "the provided versionLevel:4 can not be greater than existing versionLevel:3."),
        (3, "f", 4, UNSAFE, "the provided versionLevel:4 can not be greater than existing versionLevel:3."),
        (None, "h", 1, UPGRADE, "the provided feature is not supported (live brokers: 1, 2)."),
        (3, "f", 1, SAFE, "incompatible versions for the feature: broker 2 supports 2 to 4; versionLevel:1"),
        (3, "f", 6, UPGRADE, "broker 1 supports 1 to 5; broker 2 supports 2 to 4; versionLevel:6"),
        (3, "f", 1, UPGRADE, "Can not downgrade finalized feature"),
    ],
)  # fmt: skip
def test_an_invalid_update_is_refused_with_the_first_reason_that_kafka_checks(
    finalized: int | None, feature: str, level: int, upgrade_type: UpgradeType, refusal: str
) -> None:
    before = {} if finalized is None else {"f": finalized}
    update = FeatureUpdate(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    updated = apply_updates(before, [update], BROKERS)
    assert refusal in updated.refused[feature]
    assert updated.features == before


@pytest.mark.parametrize(
    ("finalized", "level", "upgrade_type", "after"),
    [
        (None, 4, UPGRADE, {"f": 4}),
        (None, 4, SAFE, {"f": 4}),
        (3, 4, UPGRADE, {"f": 4}),
        (3, 2, SAFE, {"f": 2}),
        (3, 0, SAFE, {}),
        (3, -7, UNSAFE, {}),
    ],
)
def test_a_valid_update_changes_its_feature_and_no_other(
    finalized: int | None, level: int, upgrade_type: UpgradeType, after: dict[str, int]
) -> None:
    before = {"other": 9} | ({} if finalized is None else {"f": finalized})
    update = FeatureUpdate(feature="f", max_version_level=level, upgrade_type=upgrade_type)
    updated = apply_updates(before, [update], BROKERS)
    assert updated.refused == {}
    assert updated.features == {"other": 9} | after


def test_nothing_is_supported_where_no_broker_is_live() -> None:
    updated = apply_updates({}, [FeatureUpdate(feature="f", max_version_level=1)], [])
    assert "is not supported (no broker is live)" in updated.refused["f"]


@pytest.mark.parametrize("code", [-128, -1, 0, 4, 127])
def test_a_code_that_kafka_does_not_know_is_an_unknown_upgrade_type(code: int) -> None:
    assert UpgradeType.parse_code(code) is UNKNOWN


@pytest.mark.parametrize(
    ("ranges", "common"),
    [
        ([], None),
        ([(1, 5)], (1, 5)),
        ([(1, 5), (2, 7)], (2, 5)),
        ([(1, 2), (3, 4)], None),
        ([(1, 2), None], None),
    ],
)
def test_what_all_brokers_support_is_the_overlap_of_their_ranges(
    ranges: list[tuple[int, int] | None], common: tuple[int, int] | None
) -> None:
    brokers = [broker(number, **({"f": pair} if pair else {})) for number, pair in enumerate(ranges)]
    expected = FeatureRange(min_version=common[0], max_version=common[1]) if common else None
    assert find_common_range("f", brokers) == expected


def test_a_broker_says_for_each_feature_why_it_may_not_join() -> None:
    assert find_incompatibilities(broker(1, f=(1, 5), g=(2, 2)), {"f": 5, "g": 1, "h": 1}) == [
        "g is finalized at 1, the broker supports 2 to 2",
        "h is finalized at 1, the broker supports none",
    ]
    assert find_unsupporting("f", 5, BROKERS) == {BrokerId(2): "broker 2 supports 2 to 4"}


# Levels by release


def test_a_release_has_the_levels_of_its_last_metadata_version() -> None:
    assert map_release("4.0-IV0")["group.version"] == 1
    assert map_release("4.0-IV0")["transaction.version"] == 0
    for release in ("4.1", "4.1.2", " 4.1-IV1"):
        assert map_release(release) == {
            "metadata.version": 27,
            "kraft.version": 1,
            "transaction.version": 2,
            "group.version": 1,
            "eligible.leader.replicas.version": 1,
            "share.version": 0,
            "streams.version": 0,
        }


@pytest.mark.parametrize("release", ["3.2", "4", "4.99", "", "4.1-IV9", "x"])
def test_an_unknown_release_is_refused_with_the_known_ones(release: str) -> None:
    with pytest.raises(UnknownLevel, match=r"Supported versions are: 3\.3-IV0 to"):
        map_release(release)


def test_a_level_has_dependencies_or_is_unknown() -> None:
    assert find_dependencies("eligible.leader.replicas.version", 1) == {"metadata.version": 23}
    assert find_dependencies("eligible.leader.replicas.version", 0) == {}
    assert find_dependencies("metadata.version", 26) == {}
    for feature, level in (("group.version", 9), ("nobody.version", 1), ("metadata.version", 3)):
        with pytest.raises(UnknownLevel):
            find_dependencies(feature, level)
