"""Charges clients' changes of the cluster to their quotas, and reports exceeded quotas in the log and in metrics.

Request versions that know the quota error get a strict quota, older ones a permissive one. In both cases the answer has
a throttle time, during which the client's requests are not read (`wire.listener`). The code that answers a request
decides what to charge, and when. As in Kafka, it charges partitions that passed all checks, just before they are
written.
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
"""Characters of a name in the log. Clients may choose names of many kilobytes."""


class MutationQuotas:
    """The mutation quotas of clients. `monotonic_ms` is a clock that never runs backwards."""

    def __init__(self, zk_quotas: ZkQuotas, monotonic_ms: Callable[[], float], registry: CollectorRegistry) -> None:
        self._zk_quotas = zk_quotas
        self._monotonic_ms = monotonic_ms
        self._buckets = Buckets(monotonic_ms)
        self._complaints = Complaints(log)
        self._exceeded = Counter(
            "kontroller_mutation_quota_exceeded_total",
            "Requests that exceeded their client's mutation quota, by enforcement",
            ["enforcement"],
            registry=registry,
        )
        buckets = Gauge("kontroller_mutation_quota_buckets", "Mutation quotas in use", registry=registry)
        buckets.set_function(lambda: len(self._buckets))
        unusable = Gauge(
            "kontroller_unusable_mutation_quotas", "Mutation quotas that cannot be used", registry=registry
        )
        unusable.set_function(zk_quotas.unusable.standing.total)

    async def find_quota(self, api: AnyServedApi, asked: Asked) -> MutationQuota:
        """Return the quota of a request. Raises `NoAnswerNow` if it cannot be determined."""
        if not isinstance(api.answer, Charged):
            return UNLIMITED
        quota = await self._zk_quotas.find_quota(asked.caller.principal.name, asked.client_id)
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
        """Report an exceeded quota, at most once a minute for the clients that share it."""
        enforcement = "strict" if is_strict else "permissive"
        self._exceeded.labels(enforcement).inc()
        self._complaints.warn(
            quota.sharing,
            "mutation quota exceeded",
            principal=str(asked.caller.principal)[:_SHOWN],
            client_id=asked.client_id[:_SHOWN],
            address=str(asked.caller.address),
            quota=quota.path[:_SHOWN],
            rate_per_s=quota.limit.rate_per_s,
            throttle_ms=throttle_ms,
            enforcement=enforcement,
        )
