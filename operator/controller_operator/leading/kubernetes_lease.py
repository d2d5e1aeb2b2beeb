"""`LeaseApi` on a real API server. Other content of the Lease, labels for example, is kept."""

from datetime import UTC, datetime
from typing import Any, Final

from controller_operator.kubernetes.api_client import MERGE_PATCH, ApiRequests
from controller_operator.kubernetes.object_api import ObjectGone
from controller_operator.kubernetes.object_store import Raw
from controller_operator.leading.lease import NOBODY, Claim, Lease

_API_VERSION: Final = "coordination.k8s.io/v1"
_UNWRITTEN: Final = datetime.fromtimestamp(0, UTC)
_MICRO_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class KubernetesLease:
    """`LeaseApi` for the Lease of a name in a namespace."""

    def __init__(self, requests: ApiRequests, namespace: str, name: str) -> None:
        self._requests = requests
        self._namespace = namespace
        self._name = name
        self._leases = f"/apis/{_API_VERSION}/namespaces/{namespace}/leases"

    async def read(self, timeout_s: float) -> Lease | None:
        try:
            return _lease(await self._requests.ask("GET", f"{self._leases}/{self._name}", timeout_s=timeout_s))
        except ObjectGone:
            return None

    async def create(self, claim: Claim, timeout_s: float) -> Lease:
        body = {
            "apiVersion": _API_VERSION,
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": _spec(claim),
        }
        return _lease(await self._requests.ask("POST", self._leases, body=body, timeout_s=timeout_s))

    async def write(self, known: Lease, claim: Claim, timeout_s: float) -> Lease:
        body = {"metadata": {"uid": known.uid, "resourceVersion": known.version}, "spec": _spec(claim)}
        path = f"{self._leases}/{self._name}"
        return _lease(await self._requests.ask("PATCH", path, body=body, content_type=MERGE_PATCH, timeout_s=timeout_s))


def _spec(claim: Claim) -> Raw:
    return {
        "holderIdentity": claim.holder or None,
        "leaseDurationSeconds": claim.duration_s,
        "acquireTime": claim.acquired_at.strftime(_MICRO_TIME),
        "renewTime": claim.renewed_at.strftime(_MICRO_TIME),
        "leaseTransitions": claim.transitions,
    }


def _lease(raw: Any) -> Lease:
    """Return a Lease as the API server has it. People may have removed any of its fields."""
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
