"""Authorizes callers by ACLs, and reports refusals: rate-limited in the log, and in a metric."""

from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.admin.authorizing.known_acls import OF_CONTROLLERS, KnownAcls
from controller_core.model.authorization.acls import AclTable, Operation, Resource, ResourceType
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.authorization.principal import Caller
from controller_core.wire.limits.complaints import Complaints
from controller_core.zk.session import ZkSession

log = structlog.get_logger()

_SHOWN: Final = 300
"""Characters of a name in the log. Clients may choose names of many kilobytes."""


class Authorization:
    """The rights that ACLs and the authorizer's other rules give to callers."""

    def __init__(self, rules: AuthorizerRules, acls: KnownAcls, registry: CollectorRegistry) -> None:
        self._rules = rules
        self._acls = acls
        self._complaints = Complaints(log)
        self._refused = Counter(
            "kontroller_authorization_refused_total",
            "Operations that ACLs refused, by operation",
            ["operation"],
            registry=registry,
        )
        registry.register(_UnusableAcls(acls))

    async def rights_of(self, caller: Caller) -> "CallerRights":
        """Return a caller's rights. Raises `NoAnswerNow` if the ACLs are not known yet; super users do not need
        them."""
        table = AclTable() if self._rules.is_super_user(caller) else await self._acls.table()
        return CallerRights(caller, table, self._rules, self)

    def report_refusal(self, caller: Caller, operation: Operation, resource: Resource) -> None:
        """Report a refusal. The log has one line a minute for each principal, address and operation, with one of the
        resources."""
        self._refused.labels(operation.title).inc()
        principal, address = str(caller.principal)[:_SHOWN], str(caller.address)
        self._complaints.warn(
            (principal, address, operation),
            "request refused by ACLs",
            principal=principal,
            address=address,
            operation=operation.title,
            resource=str(resource)[:_SHOWN],
        )


@dataclass(frozen=True, slots=True)
class CallerRights:
    """The rights of one caller (`admin.rights.Rights`)."""

    _caller: Caller
    _acls: AclTable
    _rules: AuthorizerRules
    _authorization: Authorization

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        is_allowed = self._rules.allows(self._acls, self._caller, operation, resource)
        if is_wanted and not is_allowed:
            self._authorization.report_refusal(self._caller, operation, resource)
        return is_allowed

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        return self._rules.allows_on_any(self._acls, self._caller, operation, kind)


def begin_authorization(
    rules: AuthorizerRules | None,
    zk: ZkSession,
    registry: CollectorRegistry,
    stack: AsyncExitStack,
    *,
    kinds: Collection[ResourceType] = OF_CONTROLLERS,
) -> Authorization | None:
    """Read the ACLs of these resource types until the stack is closed. Return None without rules."""
    if rules is None:
        return None
    acls = KnownAcls(zk, kinds=kinds)
    task = acls.begin()
    stack.callback(task.cancel)
    return Authorization(rules, acls, registry)


class _UnusableAcls(Collector):
    def __init__(self, acls: KnownAcls) -> None:
        self._acls = acls

    def collect(self) -> list[Metric]:
        number = self._acls.unusable.standing.total()
        return [GaugeMetricFamily("kontroller_unusable_acls", "Unreadable ACLs", value=number)]
