"""The state of each feature of a FeatureSet in the cluster, and the update that it needs."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.model.features import (
    FeatureUpdate,
    UpgradeType,
    apply_updates,
    find_common_range,
    find_unsupporting,
)
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import FeatureRange
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.resources.conditions import Reason
from controller_operator.resources.feature_set import Feature, FeatureStatus, SupportedVersions
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

_MESSAGE_LIMIT = 1_000
_BROKERS_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRow:
    """One feature. With neither `update` nor `obstacle` it is as the spec says."""

    feature: Feature
    finalized_level: int | None
    supported: FeatureRange | None
    blocked_by: tuple[BrokerId, ...] = ()
    update: FeatureUpdate | None = None
    """The request to the controller."""
    obstacle: tuple[Reason, str] | None = None
    """The reason why nothing is requested, or why the request was refused."""

    @property
    def is_in_order(self) -> bool:
        return self.update is None and self.obstacle is None

    @property
    def change(self) -> str:
        """The change that the spec asks for, in words."""
        before = "not finalized" if self.finalized_level is None else str(self.finalized_level)
        return f"{self.feature.name} from {before} to {self.feature.max_version_level}"

    def status(self) -> FeatureStatus:
        message = self.obstacle[1] if self.obstacle else f"to be changed: {self.change}" if self.update else None
        supported = self.supported
        return FeatureStatus(
            name=self.feature.name,
            max_version_level=self.feature.max_version_level,
            finalized_level=self.finalized_level,
            supported=SupportedVersions(min_version=supported.min_version, max_version=supported.max_version)
            if supported
            else None,
            blocked_by=self.blocked_by[:MAX_STATUS_ENTRIES],
            message=message and message[:_MESSAGE_LIMIT],
        )


def feature_row(feature: Feature, view: Snapshot, *, allow_downgrade: bool) -> FeatureRow:
    """Return a feature's state in the cluster, judged by the controller's rules."""
    finalized = view.features.features if view.features else {}
    level, wanted = finalized.get(feature.name), feature.max_version_level
    blocking = find_unsupporting(feature.name, wanted, view.brokers.values())
    update, obstacle = None, None
    if level is not None and level > wanted and not allow_downgrade:
        message = f"{feature.name} is finalized at {level}: set allowDowngrade, or maxVersionLevel to {level}"
        obstacle = (Reason.DOWNGRADE_NOT_ALLOWED, message)
    elif level != wanted:
        update, obstacle = _update(feature, finalized, view, blocking)
    return FeatureRow(
        feature=feature,
        finalized_level=level,
        supported=find_common_range(feature.name, view.brokers.values()),
        blocked_by=tuple(blocking),
        update=update,
        obstacle=obstacle,
    )


def _update(
    feature: Feature, finalized: Mapping[str, int], view: Snapshot, blocking: Mapping[BrokerId, str]
) -> tuple[FeatureUpdate | None, tuple[Reason, str] | None]:
    is_downgrade = finalized.get(feature.name, 0) > feature.max_version_level
    update = FeatureUpdate(
        feature=feature.name,
        max_version_level=feature.max_version_level,
        upgrade_type=UpgradeType.SAFE_DOWNGRADE if is_downgrade else UpgradeType.UPGRADE,
    )
    refused = apply_updates(finalized, [update], view.brokers.values()).refused
    if not refused:
        return update, None
    in_words = list_some(blocking.values(), _BROKERS_NAMED) or "no broker is live"
    message = f"{feature.name} cannot be finalized at {feature.max_version_level}: {in_words}"
    return None, (Reason.FEATURE_UNSUPPORTED, message)
