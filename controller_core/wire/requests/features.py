"""UpdateFeatures (KIP-584). Version 2 applies all updates or none; older versions apply each valid update."""

from collections.abc import Iterable

from kio.schema.update_features.v0 import UpdateFeaturesRequest as UpdateFeaturesRequest0
from kio.schema.update_features.v0.request import FeatureUpdateKey as FeatureUpdateKey0
from kio.schema.update_features.v1 import UpdateFeaturesRequest as UpdateFeaturesRequest1
from kio.schema.update_features.v1.request import FeatureUpdateKey as FeatureUpdateKey1
from kio.schema.update_features.v2 import UpdateFeaturesRequest as UpdateFeaturesRequest2
from kio.schema.update_features.v2.request import FeatureUpdateKey as FeatureUpdateKey2
from kio.static.primitive import i8, i16, i32Timedelta

from controller_core.model.features import FeatureUpdate, UpgradeType


def make_atomic_updates_request(
    updates: Iterable[FeatureUpdate], timeout: i32Timedelta, *, validate_only: bool = False
) -> UpdateFeaturesRequest2:
    """Return a request for all of these updates or none."""
    keys = tuple(
        FeatureUpdateKey2(
            feature=each.feature, max_version_level=i16(each.max_version_level), upgrade_type=i8(each.upgrade_type)
        )
        for each in updates
    )
    return UpdateFeaturesRequest2(timeout=timeout, feature_updates=keys, validate_only=validate_only)


def make_separate_updates_request(
    updates: Iterable[FeatureUpdate], timeout: i32Timedelta, *, validate_only: bool
) -> UpdateFeaturesRequest1:
    """Return a request for updates of which each is applied or refused by itself. Kafka supports it since 3.3."""
    keys = tuple(
        FeatureUpdateKey1(
            feature=each.feature, max_version_level=i16(each.max_version_level), upgrade_type=i8(each.upgrade_type)
        )
        for each in updates
    )
    return UpdateFeaturesRequest1(timeout=timeout, feature_updates=keys, validate_only=validate_only)


def make_unvalidated_update_request(update: FeatureUpdate, timeout: i32Timedelta) -> UpdateFeaturesRequest0:
    """Return a request for one update, for a controller that cannot only validate, as before Kafka 3.3."""
    key = FeatureUpdateKey0(
        feature=update.feature,
        max_version_level=i16(update.max_version_level),
        allow_downgrade=update.upgrade_type is not UpgradeType.UPGRADE,
    )
    return UpdateFeaturesRequest0(timeout=timeout, feature_updates=(key,))
