"""Kubernetes events: few, named, and each recorded once.

An event's name follows from the object, the reason, the message and the occurrence, so what is recorded again, by this
operator or the one that it was before a restart, is refused by the API server as being there already.
"""

from collections import OrderedDict
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import structlog

from controller_operator.kubernetes.object_api import ApiError, ObjectApi
from controller_operator.kubernetes.object_store import Raw
from controller_operator.plans.outcome import Notice

_REMEMBERED: Final = 10_000
_MESSAGE_LIMIT: Final = 1_000
_COMPONENT: Final = "kontroller-operator"
_log = structlog.get_logger(__name__)


class EventRecorder:
    """Posts events; one that cannot be posted is logged and forgotten, as it decides nothing."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._told: OrderedDict[str, None] = OrderedDict()

    async def post(self, raw: Raw, notice: Notice) -> None:
        """Records something about an object, unless it was recorded already."""
        event = _event(raw, notice, datetime.now(UTC))
        name = event["metadata"]["name"]
        if name in self._told:
            return
        self._told[name] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        log = _log.warning if notice.is_warning else _log.info
        log(notice.message, reason=notice.reason, kind=raw["kind"], name=raw["metadata"]["name"])
        try:
            await self._api.create_event(raw["metadata"]["namespace"], event)
        except ApiError as error:
            _log.warning("event not posted", reason=notice.reason, error=str(error))


def _event(raw: Raw, notice: Notice, now: datetime) -> Raw:
    metadata = raw["metadata"]
    identity = (
        f"{metadata.get('uid')} {metadata.get('generation')} {notice.reason} {notice.message} {notice.occurrence}"
    )
    timestamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {
            "name": f"{metadata['name'][:200]}.{sha256(identity.encode()).hexdigest()[:16]}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": raw["apiVersion"],
            "kind": raw["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
        },
        "type": "Warning" if notice.is_warning else "Normal",
        "reason": notice.reason,
        "message": notice.message[:_MESSAGE_LIMIT],
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": 1,
        "source": {"component": _COMPONENT},
    }
