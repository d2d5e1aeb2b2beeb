"""UpdateFeatures: which version of a feature the whole cluster may use from now on (KIP-584).

Every update is judged by itself and by the present registration of every live broker, and the valid ones are written in
one transaction: only where they change anything, and only while `/feature` is what they were judged by. Whatever the
answer is, what it does not confirm is not written, unless the controller died over it: then the client looks.
"""

from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.update_features.v0 import UpdateFeaturesRequest as UpdateFeaturesRequest0
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.primitive import i8
from kio.static.protocol import RequestPayload

from controller_core.controller.operations import brokers, features
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.term.term import Term
from controller_core.model.features import (
    FeatureUpdate,
    FinalizedFeatures,
    UpdatedFeatures,
    UpgradeType,
    updated_features,
)
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import paths


async def on_update_features(term: Term, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Judges all updates, finalizes the valid ones unless they are only to be validated, and answers each of them."""
    updates = _updates(request)
    live = (await brokers.read_live_brokers(term)).values()

    def judged(finalized: FinalizedFeatures) -> UpdatedFeatures:
        return updated_features(finalized.features, updates.values(), live)

    failure = None
    try:
        finalized = await features.finalize(
            term, lambda present: present.features if request.validate_only else judged(present).features
        )
    except features.FeaturesNotWrittenError as error:
        finalized = term.state.finalized_features
        failure = (
            f"{paths.FEATURE} could not be written and is unchanged: {error}. Describe the features and try again."
        )
    if finalized is None:
        return _response(updates, UpdatedFeatures(features={}, refused={}), _unreadable())
    return _response(updates, judged(finalized), failure)


def refusal(request: UpdateFeaturesRequest, error_code: ErrorCode) -> UpdateFeaturesResponse:
    """The answer that carries one error for all updates."""
    return UpdateFeaturesResponse(throttle_time=NO_THROTTLE, error_code=error_code, error_message=None, results=())


def _updates(request: UpdateFeaturesRequest) -> dict[str, FeatureUpdate]:
    """The updates by feature; of two for one feature the first counts, as with Kafka."""
    updates: dict[str, FeatureUpdate] = {}
    for key in request.feature_updates:
        update = FeatureUpdate(
            feature=key.feature,
            max_version_level=key.max_version_level,
            upgrade_type=UpgradeType.of_code(key.upgrade_type),
        )
        updates.setdefault(key.feature, update)
    return updates


def _unreadable() -> str:
    return f"The finalized features are missing or cannot be read, so none can be changed: {features.REPAIR}."


def _response(
    updates: Mapping[str, FeatureUpdate], updated: UpdatedFeatures, failure: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        results=tuple(_result(feature, updated.refused.get(feature), failure) for feature in updates),
    )


def _result(feature: str, refused: str | None, failure: str | None) -> UpdatableFeatureResult:
    if refused is not None:
        return UpdatableFeatureResult(feature=feature, error_code=ErrorCode.invalid_request, error_message=refused)
    if failure is not None:
        return UpdatableFeatureResult(
            feature=feature, error_code=ErrorCode.feature_update_failed, error_message=failure
        )
    return UpdatableFeatureResult(feature=feature, error_code=ErrorCode.none, error_message=None)


def _lifted(request: RequestPayload) -> UpdateFeaturesRequest:
    """Version 0 knows only whether a downgrade is allowed, and writes what it validates."""
    assert isinstance(request, UpdateFeaturesRequest0), f"{type(request).__name__} is no older UpdateFeatures"
    return UpdateFeaturesRequest(
        timeout=request.timeout,
        feature_updates=tuple(
            FeatureUpdateKey(
                feature=key.feature,
                max_version_level=key.max_version_level,
                upgrade_type=i8(UpgradeType.SAFE_DOWNGRADE if key.allow_downgrade else UpgradeType.UPGRADE),
            )
            for key in request.feature_updates
        ),
        validate_only=False,
    )


API: Final = ServedApi(
    versions=Versions(UpdateFeaturesRequest, oldest=0, lift=_lifted), answer=on_update_features, refuse=refusal
)
