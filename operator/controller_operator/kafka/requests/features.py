"""Requests that change finalized features. No znode exists for that, so the cluster's controller is asked.

UpdateFeatures judges each update separately and explains each refusal. The next plan gets the reply, because the
controller has the last word, and a person must read its message.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import structlog
from kio.static.primitive import i32Timedelta

from controller_core.client.errors import AdminError, InvalidArgument
from controller_core.client.features import update_separately
from controller_core.client.transport.request_client import Address, ControllerClient, parse_addresses
from controller_core.model.features import FeatureUpdate
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.kafka.requests.rights import ALTER_CLUSTER
from controller_operator.kafka.requests.verdicts import read_verdict

_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_METADATA_VERSION: Final = "metadata.version"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeatures:
    """Asks the controller for other levels of features."""

    updates: tuple[FeatureUpdate, ...]
    validates_only: bool = False
    """If true, only asks for the controller's verdict (needs `Abilities.validates_features`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureReply:
    """The result of an `UpdateFeatures`."""

    step: UpdateFeatures
    trouble: str | None = None
    """The reason why there is no answer; None if there is one. It is then unknown if the update was done."""
    refused: tuple[tuple[str, str], ...] = field(default=())
    """The features that stay as they are, and the controller's reasons."""


def bootstrap_addresses(
    configured: str | None, view: Snapshot, listener: BrokerListener = ANY_PLAINTEXT
) -> tuple[Address, ...]:
    """Return the addresses to ask: `spec.bootstrapServers`, or else those that the live brokers register.

    Anybody who may write a KafkaCluster could name a server of their own, so only registered addresses get a login.

    Raises `InvalidArgument`."""
    registered = tuple(address for broker in view.brokers.values() for address in listener.addresses(broker))
    if configured is not None:
        named = _parse_addresses(configured)
        if listener.is_secured and not set(named) <= set(registered):
            raise InvalidArgument(
                f"spec.bootstrapServers of the KafkaCluster names addresses that no broker registers as a listener "
                f"{listener}: remove it, because only brokers get the operator's login"
            )
        return named
    if not registered:
        remedy = "correct the operator's file of properties" if listener.is_secured else "set spec.bootstrapServers"
        raise InvalidArgument(f"no live broker has a listener {listener}: {remedy} of the KafkaCluster")
    return registered


def can_be_asked(configured: str | None, view: Snapshot, listener: BrokerListener = ANY_PLAINTEXT) -> bool:
    """Return True if servers are configured, or if a broker may have a listener that the operator can use."""
    is_other_kind_only = any(broker.endpoints for broker in view.brokers.values()) and not any(
        listener.addresses(broker) for broker in view.brokers.values()
    )
    return configured is not None or not is_other_kind_only


def _parse_addresses(configured: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(configured)
    except ValueError as error:
        raise InvalidArgument(f"correct spec.bootstrapServers of the KafkaCluster: {error}") from error


async def update_features(step: UpdateFeatures, client: ControllerClient) -> FeatureReply:
    """Ask the controller and return its reply. An error is trouble for the plan to report and retry."""
    try:
        results = await update_separately(client, step.updates, _TIMEOUT, validate_only=step.validates_only)
    except AdminError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return FeatureReply(step=step, trouble=str(error))
    verdict = read_verdict(results.spread([update.feature for update in step.updates]), ALTER_CLUSTER)
    return FeatureReply(step=step, trouble=verdict.trouble, refused=verdict.refused)


async def update_features_singly(step: UpdateFeatures, client: ControllerClient) -> FeatureReply:
    """Like `update_features`, for a controller that applies all updates of a request or none. Each update is a request
    of its own, so that a refusal affects no other. `metadata.version` goes first, because other features may need its
    level."""
    reply = FeatureReply(step=step)
    for update in sorted(step.updates, key=lambda each: each.feature != _METADATA_VERSION):
        found = await update_features(replace(step, updates=(update,)), client)
        reply = replace(reply, trouble=found.trouble, refused=(*reply.refused, *found.refused))
        if found.trouble is not None:
            break
    return reply
