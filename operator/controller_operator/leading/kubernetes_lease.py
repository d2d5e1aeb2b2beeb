"""`LeaseApi` on a real API server. What others have written about the Lease, labels for example, stays."""

from datetime import UTC, datetime
from typing import Any, Final

import kubernetes_asyncio.client as kubernetes

from controller_operator.kubernetes.kubernetes_objects import asked
from controller_operator.kubernetes.object_api import ObjectGone
from controller_operator.kubernetes.object_store import Raw
from controller_operator.leading.lease import NOBODY, Claim, Lease

_PLACE: Final = ("coordination.k8s.io", "v1")
_PLURAL: Final = "leases"
_MERGE: Final = "application/merge-patch+json"
_UNWRITTEN: Final = datetime.fromtimestamp(0, UTC)
_MICRO_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class KubernetesLease:
    """`LeaseApi` for the Lease of a name in a namespace."""

    def __init__(self, client: kubernetes.ApiClient, namespace: str, name: str) -> None:
        # As any other object: the generated model of a Lease reads times and writes them back with less precision.
        self._objects: Any = kubernetes.CustomObjectsApi(client)
        self._namespace = namespace
        self._name = name

    async def read(self, timeout_s: float) -> Lease | None:
        """See `LeaseApi`."""
        where = (*_PLACE, self._namespace, _PLURAL, self._name)
        try:
            return _lease(await asked(self._objects.get_namespaced_custom_object(*where, _request_timeout=timeout_s)))
        except ObjectGone:
            return None

    async def create(self, claim: Claim, timeout_s: float) -> Lease:
        """See `LeaseApi`."""
        body = {
            "apiVersion": "/".join(_PLACE),
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": _spec(claim),
        }
        where = (*_PLACE, self._namespace, _PLURAL)
        request = self._objects.create_namespaced_custom_object(*where, body, _request_timeout=timeout_s)
        return _lease(await asked(request))

    async def write(self, known: Lease, claim: Claim, timeout_s: float) -> Lease:
        """See `LeaseApi`."""
        body = {"metadata": {"uid": known.uid, "resourceVersion": known.version}, "spec": _spec(claim)}
        where = (*_PLACE, self._namespace, _PLURAL, self._name)
        request = self._objects.patch_namespaced_custom_object(
            *where, body, _content_type=_MERGE, _request_timeout=timeout_s
        )
        return _lease(await asked(request))


def _spec(claim: Claim) -> Raw:
    return {
        "holderIdentity": claim.holder or None,
        "leaseDurationSeconds": claim.duration_s,
        "acquireTime": claim.acquired_at.strftime(_MICRO_TIME),
        "renewTime": claim.renewed_at.strftime(_MICRO_TIME),
        "leaseTransitions": claim.transitions,
    }


def _lease(raw: Raw) -> Lease:
    """A Lease as the API server has it; people may have left out anything of what it says."""
    spec = raw.get("spec") or {}
    claim = Claim(
        holder=spec.get("holderIdentity") or NOBODY,
        duration_s=spec.get("leaseDurationSeconds") or 0,
        acquired_at=_time(spec.get("acquireTime")),
        renewed_at=_time(spec.get("renewTime")),
        transitions=spec.get("leaseTransitions") or 0,
    )
    return Lease(uid=raw["metadata"]["uid"], version=raw["metadata"]["resourceVersion"], claim=claim)


def _time(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else _UNWRITTEN
