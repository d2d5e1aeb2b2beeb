"""Describes, updates and deletes the finalized features of a cluster (KIP-584).

From version 2 of UpdateFeatures on, a controller applies all updates of a request or none (Kontroller, and Kafka since
4.0). That version is used if it is offered. With an older controller all updates are validated first and sent only if
all are valid; a concurrent change can still make some fail. A controller that cannot validate either (before Kafka 3.3)
accepts only one update at a time.

Brokers learn of a change one after another. An answer with a lower epoch than an earlier one is stale, and another
server is asked."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.update_features.v0 import UpdateFeaturesResponse as UpdateFeaturesResponse0
from kio.schema.update_features.v1 import UpdateFeaturesResponse as UpdateFeaturesResponse1
from kio.schema.update_features.v2 import UpdateFeaturesResponse
from kio.static.primitive import i32Timedelta

from controller_core.client.cluster import GROWTH_OF_PATIENCE, PATIENCE_MS, Call, Question
from controller_core.client.errors import (
    InvalidArgument,
    OutcomeUnknown,
    PartlyRefused,
    Refused,
    Unreachable,
    Unsupported,
    require,
)
from controller_core.client.results import Result, Results
from controller_core.client.transport.request_client import Address, ControllerClient
from controller_core.model import features
from controller_core.model.features import UpgradeType
from controller_core.wire.requests.api_versions import SERVER_FEATURES
from controller_core.wire.requests.features import (
    make_atomic_updates_request,
    make_separate_updates_request,
    make_unvalidated_update_request,
)

_UPDATE_FEATURES: Final = int(UpdateFeaturesResponse.__api_key__)
_ATOMIC_SINCE: Final = 2
_VALIDATES_SINCE: Final = 1
_NONE: Final = -1
_NO_EPOCH: Final = -1
_LARGEST_LEVEL: Final = (1 << 15) - 1


class UpdateType(Enum):
    """The effect of an update. The names are those of KIP-584, the numbers those of today's Kafka."""

    ADD_OR_UPDATE = 1
    ADD_OR_UPDATE_ALLOW_DOWNGRADE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """The level to finalize for a feature."""

    feature: str
    level: int
    type: UpdateType = UpdateType.ADD_OR_UPDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedRange:
    """The levels of a feature that the answering server supports."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMetadata:
    """Features as one server reports them."""

    finalized: Mapping[str, int]
    epoch: int | None
    """Rises with each change. None if the server knows of no finalized features."""
    supported: Mapping[str, SupportedRange]
    answered_by: Address
    updates_by_version: int
    """The newest version of UpdateFeatures that this server accepts; -1 if it accepts none."""

    @property
    def updates_are_atomic(self) -> bool:
        """True if this server, as the controller, applies all updates of a request or none."""
        return self.updates_by_version >= _ATOMIC_SINCE


@dataclass(slots=True)
class EpochSeen:
    """The highest epoch that a client has seen."""

    epoch: int = _NO_EPOCH

    def believes(self, found: FeatureMetadata) -> bool:
        """Return True if an answer is not older than any earlier one."""
        epoch = _NO_EPOCH if found.epoch is None else found.epoch
        if epoch < self.epoch:
            return False
        self.epoch = epoch
        return True


async def describe(call: Call, seen: EpochSeen, *, of_controller: bool = False) -> FeatureMetadata:
    """Describe features as the controller, or the first server that is not behind, reports them.

    Raises `Unreachable` if all servers stay behind until the time is over."""

    def question(address: Address) -> Question[FeatureMetadata]:
        return partial(_ask_current, call, seen, address)

    if not of_controller:
        if not call.cluster.brokers:
            await call.metadata()
        return await call.find_first_answer(question)
    patience_ms = PATIENCE_MS
    while True:
        address = await call.find_controller_address()
        try:
            return await question(address)(min(call.left_ms, patience_ms))
        except (Unreachable, OutcomeUnknown) as error:
            call.note(str(error))
        call.cluster.forget()
        patience_ms *= GROWTH_OF_PATIENCE
        await call.pause()


async def update(
    call: Call, seen: EpochSeen, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
) -> FeatureMetadata:
    """Finalize levels, all or none if the controller can, and return the features afterwards.

    Raises `InvalidArgument`, `Refused`, and `PartlyRefused` if an older controller applied only some."""
    require_sound(updates)
    before = await describe(call, seen, of_controller=True)
    while True:
        try:
            await _send(call, updates, before, validate_only=validate_only)
        except Unsupported:
            refused_by = await call.find_controller_address()
            tried, before = before, await describe(call, seen, of_controller=True)
            # If the refusing server was another one, the role has moved to a controller with another version and back.
            if (before.updates_by_version, before.answered_by) == (tried.updates_by_version, refused_by):
                raise
        else:
            return await describe(call, seen, of_controller=True)


async def delete(call: Call, seen: EpochSeen, names: Sequence[str]) -> FeatureMetadata:
    """Remove finalized features, whatever the brokers support. See `update`."""
    return await update(call, seen, [FeatureUpdate(feature=name, level=0, type=UpdateType.DELETE) for name in names])


async def _ask_current(call: Call, seen: EpochSeen, address: Address, allowed_ms: int) -> FeatureMetadata:
    """Return a server's answer. Raises `Unreachable` if it is stale, because the server may catch up soon."""
    found = await _ask(call, address, allowed_ms)
    if not seen.believes(found):
        raise Unreachable(f"{address} answers epoch {found.epoch}, but {seen.epoch} was seen before")
    return found


async def _ask(call: Call, address: Address, allowed_ms: int) -> FeatureMetadata:
    """Return the features as a server reports them."""
    response = await call.ask_at(address, SERVER_FEATURES, ApiVersionsResponse, allowed_ms)
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


async def _send(call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata, *, validate_only: bool) -> None:
    """Send updates. Raises `Unsupported` also if the role has moved to a controller with another version. Then nothing
    was done."""
    if before.updates_are_atomic:
        converted = _convert_updates(updates, before)
        request = make_atomic_updates_request(converted, call.for_server, validate_only=validate_only)
        response = await call.ask_controller(request, UpdateFeaturesResponse)
        require("the features", response.error_code, response.error_message)
    elif before.updates_by_version < _VALIDATES_SINCE:
        if validate_only:
            raise Unsupported(f"the controller at {before.answered_by} cannot only validate, as Kafka can since 3.3")
        await _send_unvalidated(call, updates, before)
    else:
        refused = await _send_one_by_one(call, updates, before, validate_only=True)
        if refused:
            raise refused[0] if len(refused) == 1 else PartlyRefused(refused, "nothing was changed")
        if validate_only:
            return
        refused = await _send_one_by_one(call, updates, before, validate_only=False)
        if refused:
            others = f"{len(updates) - len(refused)} of {len(updates)} were changed, because of a concurrent change"
            raise PartlyRefused(refused, others)


async def _send_one_by_one(
    call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata, *, validate_only: bool
) -> tuple[Refused | OutcomeUnknown, ...]:
    results = await update_separately(
        call.target_controller(changes_nothing=validate_only),
        _convert_updates(updates, before),
        call.for_server,
        validate_only=validate_only,
    )
    found = (each.make_error(f"feature {name}") for name, each in results.require("the features").items())
    return tuple(error for error in found if error is not None)


async def update_separately(
    client: ControllerClient, updates: Iterable[features.FeatureUpdate], timeout: i32Timedelta, *, validate_only: bool
) -> Results[str]:
    """Request updates of which each is applied or refused by itself. Return the result of each feature."""
    request = make_separate_updates_request(updates, timeout, validate_only=validate_only)
    response = await client.ask(request, UpdateFeaturesResponse1)
    return Results(
        overall=Result(code=response.error_code, message=response.error_message),
        by_item={each.feature: Result(code=each.error_code, message=each.error_message) for each in response.results},
    )


async def _send_unvalidated(call: Call, updates: Sequence[FeatureUpdate], before: FeatureMetadata) -> None:
    """Send one update, which any version applies as a whole."""
    if before.updates_by_version < 0:
        raise Unsupported(
            f"the controller at {before.answered_by} accepts no updates of features: Kafka does since 2.7"
        )
    if len(updates) > 1:
        raise Unsupported(
            f"the controller at {before.answered_by} cannot validate updates first, as Kafka can since 3.3:"
            " ask for one at a time"
        )
    (converted,) = _convert_updates(updates, before)
    request = make_unvalidated_update_request(converted, call.for_server)
    response = await call.ask_controller(request, UpdateFeaturesResponse0)
    require("the features", response.error_code, response.error_message)
    for each in response.results:
        require(f"feature {each.feature}", each.error_code, each.error_message)


def _convert_updates(updates: Sequence[FeatureUpdate], before: FeatureMetadata) -> tuple[features.FeatureUpdate, ...]:
    """Convert the updates. Kafka refuses an upgrade that is declared as a downgrade, so only real downgrades are
    declared."""
    return tuple(
        features.FeatureUpdate(
            feature=each.feature,
            max_version_level=each.level,
            upgrade_type=_find_upgrade_type(each, before.finalized.get(each.feature)),
        )
        for each in updates
    )


def _find_upgrade_type(update: FeatureUpdate, present: int | None) -> UpgradeType:
    if update.type is UpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE and (present is None or present <= update.level):
        return UpgradeType.UPGRADE
    return UpgradeType(update.type.value)


def require_sound(updates: Sequence[FeatureUpdate]) -> None:
    """Raise `InvalidArgument` if the updates make no sense in any cluster."""
    if not updates:
        raise InvalidArgument("no feature is named: name at least one")
    names = [each.feature for each in updates]
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InvalidArgument(f"{', '.join(twice)} is named twice: name it once")
    for each in updates:
        if not each.feature:
            raise InvalidArgument("a feature has an empty name")
        if each.type is UpdateType.DELETE:
            continue
        if each.level == 0:
            raise InvalidArgument(
                f"{each.feature} cannot be finalized at 0, because 0 means deletion in Kafka: disable it, or choose 1 "
                f"or"
                " more"
            )
        if not 1 <= each.level <= _LARGEST_LEVEL:
            raise InvalidArgument(f"{each.feature} cannot be finalized at {each.level}: choose 1 to {_LARGEST_LEVEL}")
