"""Charges what clients change in the cluster to their quotas, and says who has exceeded his: in the log and in metrics.

Who asks by a version that knows the error has a strict quota, who asks by an older one a permissive one. Both are told
how long to wait, and not heard meanwhile (`wire.listener`). What is charged, and when, is up to what answers the request:
as with Kafka, the partitions of what has passed all checks, just before it is written.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from controller_core.admin.quotas.buckets import Buckets
from controller_core.admin.quotas.request_quota import RequestQuota
from controller_core.admin.quotas.zk_quotas import Quota, ZkQuotas
from controller_core.controller.serving.served_api import AnyServedApi, Charged
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.listener.owned_api import Asked

log = structlog.get_logger()

_SHOWN: Final = 100
"""How much of a name is put into the log: somebody may have chosen one of many kilobytes."""


class MutationQuotas:
    """`monotonic_ms`: a clock that never runs backwards."""

    def __init__(self, zk_quotas: ZkQuotas, monotonic_ms: Callable[[], float], registry: CollectorRegistry) -> None:
        self._zk_quotas = zk_quotas
        self._monotonic_ms = monotonic_ms
        self._buckets = Buckets(monotonic_ms)
        self._complaints = Complaints(log)
        self._exceeded = Counter(
            "kontroller_mutation_quota_exceeded_total",
            "Requests that exceeded the quota of mutations of who sent them, by how it is enforced",
            ["enforcement"],
            registry=registry,
        )
        buckets = Gauge("kontroller_mutation_quota_buckets", "Quotas of mutations in use", registry=registry)
        buckets.set_function(lambda: len(self._buckets))
        unusable = Gauge("kontroller_unusable_mutation_quotas", "Quotas of mutations that are none", registry=registry)
        unusable.set_function(zk_quotas.unusable.standing.total)

    async def of(self, api: AnyServedApi, asked: Asked) -> MutationQuota:
        """That of a request. Raises `NoAnswerNow` where it cannot be known."""
        if not isinstance(api.answer, Charged):
            return UNLIMITED
        quota = await self._zk_quotas.of(asked.caller.principal.name, asked.client_id)
        if quota is None or quota.limit.is_none:
            return UNLIMITED
        is_strict = asked.version >= api.answer.strict_since
        return RequestQuota(
            quota=quota,
            buckets=self._buckets,
            is_strict=is_strict,
            monotonic_ms=self._monotonic_ms,
            on_exceeded=partial(self._on_exceeded, asked, quota, is_strict),
        )

    def _on_exceeded(self, asked: Asked, quota: Quota, is_strict: bool, throttle_ms: int) -> None:
        """Says it: once a minute of those who share a quota."""
        enforcement = "strict" if is_strict else "permissive"
        self._exceeded.labels(enforcement).inc()
        self._complaints.warn(
            quota.sharing,
            "quota of mutations exceeded",
            principal=str(asked.caller.principal)[:_SHOWN],
            client_id=asked.client_id[:_SHOWN],
            address=str(asked.caller.address),
            quota=quota.path[:_SHOWN],
            rate_per_s=quota.limit.rate_per_s,
            throttle_ms=throttle_ms,
            enforcement=enforcement,
        )
