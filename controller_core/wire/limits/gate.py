"""Authorizes requests at the listener by the address of the connection (`model.access`).

A process without a term knows no brokers, and answers NOT_CONTROLLER to all requests for controllers.

An address identifies a caller only if nothing on the way changes it. The log says so at the start, and when a caller's
address shows that something does.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog
from kio.schema.errors import ErrorCode

from controller_core.model.access import LOCALHOST, SIDECARS, AccessRules, Address, Need
from controller_core.model.authorization.principal import Caller
from controller_core.wire.api_table import need_of
from controller_core.wire.limits.broker_addresses import BrokerAddresses, is_of_this_machine
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.limits.ledger import Standing

log = structlog.get_logger()

_SETTING = {
    Need.BROKER: "no registered broker has this address; if it belongs to a broker, add it to --broker-cidr",
    Need.ADMINISTRATOR: "to permit administration from this address, add it to --admin-cidr",
    Need.KEEPER_OF_CREDENTIALS: "to permit changes of credentials from this address, add it to --admin-cidr",
}
_SHARED: Final = (
    "behind a sidecar of a service mesh (127.0.0.6) or source NAT, many callers share one address and its rights: "
    "exclude the port from the mesh and from NAT, or require logins (--listen SASL_SSL://...) with authorizer.class.name"
)


def report_identity_by_address(rules: AccessRules, *, is_local: bool, node: Address | None = None) -> None:
    """Log that addresses alone decide, and which networks cannot tell callers apart.

    `is_local`: see `AddressGate`. `node`: the address of the pod's node, which source NAT gives to callers.
    """
    if rules.administrators is None:
        log.warning("every client in a private network may change the cluster: restrict it with --admin-cidr")
    if not is_local:
        log.warning("only their addresses decide what callers may do", why=_SHARED)
    proxies = () if is_local else (LOCALHOST, *(() if node is None else (node,)))
    for network in rules.find_shared(*proxies):
        log.warning(
            "a network of --admin-cidr or --broker-cidr has an address that many callers share", network=str(network)
        )


def find_standing(gate: "Gate", caller: Caller) -> Standing:
    """Return the standing of a caller, without waiting."""
    if gate.is_broker(caller):
        return Standing.BROKER
    return Standing.KNOWN if caller.is_authenticated or gate.is_administrator(caller) else Standing.STRANGER


class Gate(Protocol):
    """Authorizes requests."""

    def is_broker(self, caller: Caller) -> bool:
        """Return True if the caller is known to be a broker, without waiting. Otherwise start looking for it."""
        ...

    def is_administrator(self, caller: Caller) -> bool:
        """Return True if the caller has an administrator's address."""
        ...

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """Return the error for a caller's request to an API, or None if it is permitted."""
        ...


class OpenGate:
    """Permits everything to everybody, and knows no brokers."""

    def is_broker(self, caller: Caller) -> bool:
        """See `Gate`."""
        return False

    def is_administrator(self, caller: Caller) -> bool:
        """See `Gate`."""
        return True

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """See `Gate`."""
        return None


class AddressGate:
    """Authorizes by rules, and by the addresses of registered brokers.

    `in_charge` returns True in a term. While a term begins it waits, because the brokers are not known yet. `is_own`
    returns True for addresses of this machine, which have the rights of loopback. `is_local` is True if only this
    machine can reach the listener.
    """

    def __init__(
        self,
        rules: AccessRules,
        brokers: BrokerAddresses,
        in_charge: Callable[[], Awaitable[bool]],
        *,
        is_own: Callable[[Address], bool] = is_of_this_machine,
        is_local: bool = False,
    ) -> None:
        self._rules = rules
        self._brokers = brokers
        self._in_charge = in_charge
        self._is_own = is_own
        self._may_be_hidden = not is_local
        self._complaints = Complaints(log)

    def is_broker(self, caller: Caller) -> bool:
        """See `Gate`."""
        address = caller.address
        return address is not None and self._rules.is_brokers(address, self._brokers.look(address))

    def is_administrator(self, caller: Caller) -> bool:
        """See `Gate`."""
        return caller.address is not None and self._may_by_rules(Need.ADMINISTRATOR, caller.address)

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """See `Gate`."""
        need, address = need_of(api_key), caller.address
        if need is Need.NOBODY:
            return None
        if not await self._in_charge():
            return ErrorCode.not_controller
        if address is not None:
            self._report_hidden(address)
            if need is not Need.BROKER and self._may_by_rules(need, address):
                return None
            if self._rules.allows(need, address, await self._brokers.look_up(address)):
                return None
        why = _SHARED if address in SIDECARS else _SETTING[need]
        self._complaints.warn((need, address), "request refused", api_key=api_key, address=str(address), why=why)
        return ErrorCode.cluster_authorization_failed

    def _report_hidden(self, address: Address) -> None:
        """Warn once if the caller's address may be that of a proxy on this machine."""
        if self._may_be_hidden and (address.is_loopback or address in SIDECARS):
            self._may_be_hidden = False
            log.warning(
                "a caller's address is loopback, although other machines reach this port: unless a broker or a tool "
                "of this machine asked, a proxy hides the callers",
                address=str(address),
                why=_SHARED,
            )

    def _may_by_rules(self, need: Need, address: Address) -> bool:
        places = (address, LOCALHOST) if self._is_own(address) else (address,)
        return any(self._rules.allows(need, place, frozenset()) for place in places)
