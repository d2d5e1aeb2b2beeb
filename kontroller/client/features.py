"""Features that a cluster finalizes: described, updated, deleted, as KIP-584 has it.

**All or nothing.** From version 2 of UpdateFeatures on a controller takes all updates of a request or none (ours does, and
Kafka's since 4.0); that version is used wherever it is offered. An older controller judges each update by itself. There all
are validated first and sent only if each may be; another change between the two can still have a part of them refused. One
that cannot validate either (before Kafka 3.3) is asked for one update at a time.

**The higher epoch wins.** Brokers hear of a change one after the other. What has a lower epoch than was seen before is not
believed, and another server is asked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.update_features.v0 import UpdateFeaturesRequest as UpdateFeaturesRequest0
from kio.schema.update_features.v0 import UpdateFeaturesResponse as UpdateFeaturesResponse0
from kio.schema.update_features.v0.request import FeatureUpdateKey as FeatureUpdateKey0
from kio.schema.update_features.v1 import UpdateFeaturesRequest as UpdateFeaturesRequest1
from kio.schema.update_features.v1 import UpdateFeaturesResponse as UpdateFeaturesResponse1
from kio.schema.update_features.v1.request import FeatureUpdateKey as FeatureUpdateKey1
from kio.schema.update_features.v2 import UpdateFeaturesRequest, UpdateFeaturesResponse
from kio.schema.update_features.v2.request import FeatureUpdateKey
from kio.static.primitive import i8, i16

from controller_core.wire.client.request_client import Address
from kontroller.client.cluster import GROWTH_OF_PATIENCE, PATIENCE_MS, Call, Question
from kontroller.client.errors import (
    InvalidArgument,
    OutcomeUnknown,
    PartlyRefused,
    Refused,
    Unreachable,
    Unsupported,
    error_of,
    require,
)

_SOFTWARE: Final = {"client_software_name": "kontroller", "client_software_version": "1"}
_UPDATE_FEATURES: Final = int(UpdateFeaturesRequest.__api_key__)
_ATOMIC_SINCE: Final = 2
_VALIDATES_SINCE: Final = 1
_NONE: Final = -1
_NO_EPOCH: Final = -1
_UPGRADE: Final = 1
_LARGEST_LEVEL: Final = (1 << 15) - 1


class UpdateType(Enum):
    """What an update may do; the names are KIP-584's, the numbers those that Kafka has for them now."""

    ADD_OR_UPDATE = 1
    ADD_OR_UPDATE_ALLOW_DOWNGRADE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """The level that a feature is to be finalized at."""

    feature: str
    level: int
    type: UpdateType = UpdateType.ADD_OR_UPDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedRange:
    """The levels of a feature that the server that answered supports."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMetadata:
    """What one server says of features."""

    finalized: Mapping[str, int]
    epoch: int | None
    """Rises with each change; None where the server knows of no finalized features."""
    supported: Mapping[str, SupportedRange]
    answered_by: Address
    updates_by_version: int
    """The newest version of UpdateFeatures that this server takes, -1 where it takes none."""

    @property
    def updates_are_atomic(self) -> bool:
        """Whether this server, where it is the controller, takes all updates of a request or none."""
        return self.updates_by_version >= _ATOMIC_SINCE


@dataclass(slots=True)
class EpochSeen:
    """The highest epoch that a client has seen."""

    epoch: int = _NO_EPOCH

    def believes(self, found: FeatureMetadata) -> bool:
        """Whether an answer is as new as all before."""
        epoch = _NO_EPOCH if found.epoch is None else found.epoch
        if epoch < self.epoch:
            return False
        self.epoch = epoch
        return True


async def describe(call: Call, seen: EpochSeen, *, of_controller: bool = False) -> FeatureMetadata:
    """What the first server says that is not behind, or the controller.

    Raises `Unreachable` where all are behind what was seen until the time is over."""

    def question(address: Address) -> Question[FeatureMetadata]:
        return partial(_believed, call, seen, address)

    if not of_controller:
        if not call.cluster.brokers:
            await call.metadata()
        return await call.first_of(question)
    patience_ms = PATIENCE_MS
    while True:
        address = await call.controller_address()
        try:
            return await question(address)(min(call.left_ms, patience_ms))
        except (Unreachable, OutcomeUnknown) as error:
            call.note(str(error))
        call.cluster.forget()
        patience_ms *= GROWTH_OF_PATIENCE
        await call.pause()


async def update(call: Call, seen: EpochSeen, updates: Sequence[FeatureUpdate]) -> FeatureMetadata:
    """Finalizes levels, all or none as far as the controller can, and returns what the controller says after it.

    Raises `InvalidArgument`, `Refused`, and `PartlyRefused` where an older controller has taken only some."""
    require_sound(updates)
    before = await describe(call, seen, of_controller=True)
    while True:
        try:
            await _send(call, updates, before)
        except Unsupported:
            refused_by = await call.controller_address()
            tried, before = before, await describe(call, seen, of_controller=True)
            # Where it is another again, the controller has moved to one of another version and back.
            if (before.updates_by_version, before.answered_by) == (tried.updates_by_version, refused_by):
                raise
        else:
            return await describe(call, seen, of_controller=True)


async def delete(call: Call, seen: EpochSeen, names: Sequence[str]) -> FeatureMetadata:
    """Has features finalized no more, whatever brokers support. See `update`."""
    return await update(call, seen, [FeatureUpdate(feature=name, level=0, type=UpdateType.DELETE) for name in names])


async def _believed(call: Call, seen: EpochSeen, address: Address, allowed_ms: int) -> FeatureMetadata:
    """What a server says. Raises `Unreachable` where that is behind what was seen: it may be better in a moment."""
    found = await _ask(call, address, allowed_ms)
    if not seen.believes(found):
        raise Unreachable(f"{address} answers epoch {found.epoch}, and {seen.epoch} was seen already")
    return found


async def _ask(call: Call, address: Address, allowed_ms: int) -> FeatureMetadata:
    """Version 4 names features whose range begins at 0, too."""
    response = await call.ask_at(address, ApiVersionsRequest(**_SOFTWARE), ApiVersionsResponse, allowed_ms)
    require(f"the features of {address}", response.error_code, None)
    has_epoch = response.finalized_features_epoch != _NO_EPOCH
    return FeatureMetadata(
        finalized={each.name: int(each.max_version_level) for each in response.finalized_features},
        epoch=int(response.finalized_features_epoch) if has_epoch else None,
        supported={
            each.name: SupportedRange(min_version=int(each.min_version), max_version=int(each.max_version))
            for each in response.supported_features
        },
        answered_by=address,
        updates_by_version=max(
            (int(each.max_version) for each in response.api_keys if each.api_key == _UPDATE_FEATURES), default=_NONE
        ),
    )


async def _send(call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata) -> None:
    """Raises `Unsupported` also where the controller has moved to one that takes another version. None is done then."""
    if before.updates_are_atomic:
        request = UpdateFeaturesRequest(timeout=call.for_server, feature_updates=_keys(updates, before))
        response = await call.ask_controller(request, UpdateFeaturesResponse)
        require("the features", response.error_code, response.error_message)
    elif before.updates_by_version < _VALIDATES_SINCE:
        await _send_unvalidated(call, updates, before)
    else:
        refused = await _send_one_by_one(call, updates, before, validate_only=True)
        if refused:
            raise refused[0] if len(refused) == 1 else PartlyRefused(refused, "nothing was changed")
        refused = await _send_one_by_one(call, updates, before, validate_only=False)
        if refused:
            others = f"{len(updates) - len(refused)} of {len(updates)} were changed, as something else came between"
            raise PartlyRefused(refused, others)


async def _send_one_by_one(
    call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata, *, validate_only: bool
) -> tuple[Refused | OutcomeUnknown, ...]:
    request = UpdateFeaturesRequest1(
        timeout=call.for_server,
        feature_updates=tuple(
            FeatureUpdateKey1(
                feature=key.feature, max_version_level=key.max_version_level, upgrade_type=key.upgrade_type
            )
            for key in _keys(updates, before)
        ),
        validate_only=validate_only,
    )
    response = await call.ask_controller(request, UpdateFeaturesResponse1, changes_nothing=validate_only)
    require("the features", response.error_code, response.error_message)
    found = (error_of(f"feature {each.feature}", each.error_code, each.error_message) for each in response.results)
    return tuple(error for error in found if error is not None)


async def _send_unvalidated(call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata) -> None:
    """Of one update all is done or none, by whichever version."""
    if before.updates_by_version < 0:
        raise Unsupported(f"the controller at {before.answered_by} takes no updates of features: Kafka does since 2.7")
    if len(updates) > 1:
        raise Unsupported(
            f"the controller at {before.answered_by} cannot validate updates before it does them, as Kafka can since 3.3:"
            " ask for one at a time"
        )
    (key,) = _keys(updates, before)
    request = UpdateFeaturesRequest0(
        timeout=call.for_server,
        feature_updates=(
            FeatureUpdateKey0(
                feature=key.feature,
                max_version_level=key.max_version_level,
                allow_downgrade=key.upgrade_type != _UPGRADE,
            ),
        ),
    )
    response = await call.ask_controller(request, UpdateFeaturesResponse0)
    require("the features", response.error_code, response.error_message)
    for each in response.results:
        require(f"feature {each.feature}", each.error_code, each.error_message)


def _keys(updates: Sequence[FeatureUpdate], before: FeatureMetadata) -> tuple[FeatureUpdateKey, ...]:
    """Kafka takes what is said to be a downgrade for nothing else, so it is said only of what is one."""
    return tuple(
        FeatureUpdateKey(
            feature=each.feature,
            max_version_level=i16(each.level),
            upgrade_type=i8(_upgrade_type(each, before.finalized.get(each.feature))),
        )
        for each in updates
    )


def _upgrade_type(update: FeatureUpdate, present: int | None) -> int:
    if update.type is UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE and (present is None or present <= update.level):
        return _UPGRADE
    return update.type.value


def require_sound(updates: Sequence[FeatureUpdate]) -> None:
    """Raises `InvalidArgument` of what makes no sense whatever the cluster has."""
    if not updates:
        raise InvalidArgument("no feature is named: name at least one")
    names = [each.feature for each in updates]
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InvalidArgument(f"{', '.join(twice)} is named twice: say once what is to become of it")
    for each in updates:
        if not each.feature:
            raise InvalidArgument("a feature has an empty name")
        if each.type is UpdateType.DELETE:
            continue
        if each.level == 0:
            raise InvalidArgument(
                f"{each.feature} cannot be finalized at 0, which is how Kafka writes a deletion: disable it, or choose 1 or"
                " more"
            )
        if not 1 <= each.level <= _LARGEST_LEVEL:
            raise InvalidArgument(f"{each.feature} cannot be finalized at {each.level}: choose 1 to {_LARGEST_LEVEL}")
