"""UpdateFeatures: changes the finalized version of features for the whole cluster (KIP-584).

Each update is checked against the current registration of every live broker. The valid updates are written in one
transaction, if they change anything and `/feature` has not changed since the check. From version 2 on (Kafka 4.0,
KIP-1022) one refused update refuses all, with one answer. Updates that an answer does not confirm are not written,
unless the controller failed during the request; then the client has to look.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.update_features.v0 import UpdateFeaturesRequest as UpdateFeaturesRequest0
from kio.schema.update_features.v1 import UpdateFeaturesRequest as UpdateFeaturesRequest1
from kio.schema.update_features.v1 import UpdateFeaturesResponse as UpdateFeaturesResponse1
from kio.schema.update_features.v1.request import FeatureUpdateKey
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2 import UpdateFeaturesRequest, UpdateFeaturesResponse
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
    apply_updates,
)
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import paths

AnyRequest = UpdateFeaturesRequest | UpdateFeaturesRequest1
AnyResponse = UpdateFeaturesResponse | UpdateFeaturesResponse1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """The outcome of the updates of a request."""

    refused: Mapping[str, str]
    """The refused features, with the reasons."""
    failure: str | None = None
    """The reason why no permitted update is written."""


async def on_update_features(term: Term, request: AnyRequest) -> AnyResponse:
    """Check all updates, and finalize the valid ones, unless the request only validates or one refusal refuses all."""
    updates = _updates(request)
    live = (await brokers.read_live_brokers(term)).values()

    def judge(present: FinalizedFeatures) -> UpdatedFeatures:
        return apply_updates(present.features, updates.values(), live)

    def choose_levels(present: FinalizedFeatures) -> Mapping[str, int]:
        found = judge(present)
        is_off = request.validate_only or (isinstance(request, UpdateFeaturesRequest) and found.refused)
        return present.features if is_off else found.features

    failure = None
    try:
        finalized = await features.finalize(term, choose_levels)
    except features.FeaturesNotWrittenError as error:
        finalized = term.state.finalized_features
        failure = (
            f"{paths.FEATURE} could not be written and is unchanged: {error}. Describe the features and try again."
        )
    if finalized is None:
        return _response(request, updates, _Outcome(refused={}, failure=_unreadable()))
    return _response(request, updates, _Outcome(refused=judge(finalized).refused, failure=failure))


def refusal(request: AnyRequest, error_code: ErrorCode) -> AnyResponse:
    """Return the answer with one error for all updates."""
    if isinstance(request, UpdateFeaturesRequest):
        return UpdateFeaturesResponse(throttle_time=NO_THROTTLE, error_code=error_code, error_message=None)
    return UpdateFeaturesResponse1(throttle_time=NO_THROTTLE, error_code=error_code, error_message=None, results=())


def _updates(request: AnyRequest) -> dict[str, FeatureUpdate]:
    """Return the updates by feature. Like in Kafka, the first of two updates of a feature counts."""
    updates: dict[str, FeatureUpdate] = {}
    for key in request.feature_updates:
        update = FeatureUpdate(
            feature=key.feature,
            max_version_level=key.max_version_level,
            upgrade_type=UpgradeType.parse_code(key.upgrade_type),
        )
        updates.setdefault(key.feature, update)
    return updates


def _unreadable() -> str:
    return f"The finalized features are missing or cannot be read, so none can be changed: {features.REPAIR}."


def _response(request: AnyRequest, updates: Mapping[str, FeatureUpdate], outcome: _Outcome) -> AnyResponse:
    if isinstance(request, UpdateFeaturesRequest):
        return _response_to_all(updates, outcome)
    return UpdateFeaturesResponse1(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        results=tuple(_result(feature, outcome.refused.get(feature), outcome.failure) for feature in updates),
    )


def _response_to_all(updates: Mapping[str, FeatureUpdate], outcome: _Outcome) -> UpdateFeaturesResponse:
    """Return the answer for all updates: the error of the first refused one, as in Kafka, or of the write."""
    error_code, message = ErrorCode.none, None
    first = next((feature for feature in updates if feature in outcome.refused), None)
    if first is not None:
        error_code = ErrorCode.invalid_request
        message = f"No feature is updated, because {first} cannot be: {outcome.refused[first]}"
    elif outcome.failure is not None:
        error_code, message = ErrorCode.feature_update_failed, outcome.failure
    return UpdateFeaturesResponse(throttle_time=NO_THROTTLE, error_code=error_code, error_message=message)


def _result(feature: str, refused: str | None, failure: str | None) -> UpdatableFeatureResult:
    if refused is not None:
        return UpdatableFeatureResult(feature=feature, error_code=ErrorCode.invalid_request, error_message=refused)
    if failure is not None:
        return UpdatableFeatureResult(
            feature=feature, error_code=ErrorCode.feature_update_failed, error_message=failure
        )
    return UpdatableFeatureResult(feature=feature, error_code=ErrorCode.none, error_message=None)


def _convert_older(request: RequestPayload) -> UpdateFeaturesRequest1:
    """Convert version 0, which has only a flag for downgrades, and cannot ask for mere validation.

    Version 1 is returned unchanged. In neither version does one refusal refuse all updates.
    """
    if isinstance(request, UpdateFeaturesRequest1):
        return request
    assert isinstance(request, UpdateFeaturesRequest0), f"{type(request).__name__} is not an older UpdateFeatures"
    return UpdateFeaturesRequest1(
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
    versions=Versions[AnyRequest](UpdateFeaturesRequest, oldest=0, lift=_convert_older),
    answer=on_update_features,
    refuse=refusal,
    takes=(UpdateFeaturesRequest1,),
)
