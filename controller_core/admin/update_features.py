"""UpdateFeatures: which version of a feature the whole cluster may use from now on (KIP-584).

Every update is judged by itself and by the present registration of every live broker, and the valid ones are written in
one transaction: only where they change anything, and only while `/feature` is what they were judged by. From version 2 on
(Kafka 4.0, KIP-1022) it is all or nothing: where one update is refused none is written, and the answer is that of all.
Whatever the answer is, what it does not confirm is not written, unless the controller died over it: then the client looks.
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
    """What became of the updates of a request."""

    refused: Mapping[str, str]
    """Features whose update may not be, each with the reason."""
    failure: str | None = None
    """Why none that may be is written."""


async def on_update_features(term: Term, request: AnyRequest) -> AnyResponse:
    """Judges all updates, and finalizes the valid ones unless they are only to be validated, or one of all is refused."""
    updates = _updates(request)
    live = (await brokers.read_live_brokers(term)).values()

    def judged(present: FinalizedFeatures) -> UpdatedFeatures:
        return apply_updates(present.features, updates.values(), live)

    def wanted(present: FinalizedFeatures) -> Mapping[str, int]:
        found = judged(present)
        is_off = request.validate_only or (isinstance(request, UpdateFeaturesRequest) and found.refused)
        return present.features if is_off else found.features

    failure = None
    try:
        finalized = await features.finalize(term, wanted)
    except features.FeaturesNotWrittenError as error:
        finalized = term.state.finalized_features
        failure = (
            f"{paths.FEATURE} could not be written and is unchanged: {error}. Describe the features and try again."
        )
    if finalized is None:
        return _response(request, updates, _Outcome(refused={}, failure=_unreadable()))
    return _response(request, updates, _Outcome(refused=judged(finalized).refused, failure=failure))


def refusal(request: AnyRequest, error_code: ErrorCode) -> AnyResponse:
    """The answer that carries one error for all updates."""
    if isinstance(request, UpdateFeaturesRequest):
        return UpdateFeaturesResponse(throttle_time=NO_THROTTLE, error_code=error_code, error_message=None)
    return UpdateFeaturesResponse1(throttle_time=NO_THROTTLE, error_code=error_code, error_message=None, results=())


def _updates(request: AnyRequest) -> dict[str, FeatureUpdate]:
    """The updates by feature; of two for one feature the first counts, as with Kafka."""
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
    """That of the first update that is refused, as Kafka has it, or of the write."""
    error_code, message = ErrorCode.none, None
    first = next((feature for feature in updates if feature in outcome.refused), None)
    if first is not None:
        error_code = ErrorCode.invalid_request
        message = f"No feature is updated, as {first} cannot be: {outcome.refused[first]}"
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


def _lifted(request: RequestPayload) -> UpdateFeaturesRequest1:
    """Version 0 knows only whether a downgrade is allowed, and writes what it validates.

    Version 1 stays as it is. Neither is all or nothing."""
    if isinstance(request, UpdateFeaturesRequest1):
        return request
    assert isinstance(request, UpdateFeaturesRequest0), f"{type(request).__name__} is no older UpdateFeatures"
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
    versions=Versions[AnyRequest](UpdateFeaturesRequest, oldest=0, lift=_lifted),
    answer=on_update_features,
    refuse=refusal,
    takes=(UpdateFeaturesRequest1,),
)
