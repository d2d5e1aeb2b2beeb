"""Accepts the controller's commands only from its hosts, and followers' fetches and transactions' markers from brokers'.

Without ACLs nothing else tells the controller from a stranger: any epoch can be sent. The hosts are in ZooKeeper
(`membership.controller_hosts`). A sender at another address may be a new controller, so they are read again before it
is refused.
"""

from collections.abc import Callable, Collection, Set
from typing import Final

import structlog
from kio.schema.errors import ErrorCode

from controller_core.model.access import AccessRules, Address, Network
from controller_core.model.authorization.principal import Caller
from controller_core.wire.limits.broker_addresses import BrokerAddresses
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.listener.owned_api import CONTROL_API_KEYS, NoAnswerNow
from controller_core.zk.session import ZkError
from replica_broker.membership.controller_hosts import ControllerHosts

log = structlog.get_logger()

_HINT: Final = (
    "the controller in ZooKeeper has not registered this address; if it belongs to a controller, add it to "
    "--controller-cidr"
)
_HINT_ABOUT_BROKERS: Final = (
    "no broker in the metadata has this address; if it belongs to a broker or an administrator, add it to "
    "--controller-cidr"
)
_FOREIGN_MARKERS: Final = "transaction markers refused: they do not come from a broker"
_FOREIGN_FOLLOWER: Final = "fetch refused: it has a broker's id, and does not come from a broker"
_WRITE_TXN_MARKERS: Final = 27

AddressesOf = Callable[[Callable[[], Collection[str]]], BrokerAddresses]


class CommandGate:
    """A `Gate` of addresses. `broker_hosts` returns the hosts of all nodes in the metadata. `networks`: further
    addresses of controllers."""

    def __init__(
        self,
        controller: ControllerHosts,
        broker_hosts: Callable[[], Collection[str]],
        networks: tuple[Network, ...] = (),
        *,
        addresses_of: AddressesOf = BrokerAddresses,
    ) -> None:
        self._controller = controller
        self._of_controller = addresses_of(controller.list_known)
        self._of_nodes = addresses_of(lambda: {*broker_hosts(), *controller.list_known()})
        self._rules = AccessRules(brokers=networks)
        self._complaints = Complaints(log)

    def is_broker(self, caller: Caller) -> bool:
        """Return True if the caller is at the address of a broker or the controller: connections are kept for them."""
        return caller.address is not None and self._is_in(caller.address, self._of_nodes.look(caller.address))

    def is_administrator(self, caller: Caller) -> bool:
        """Return False: by its address no client differs from others."""
        return False

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        """See `Gate`. Raises `NoAnswerNow` if ZooKeeper does not say who the controller is."""
        if api_key == _WRITE_TXN_MARKERS:
            is_brokers = await self._is_brokers(caller, _FOREIGN_MARKERS)
            return None if is_brokers else ErrorCode.cluster_authorization_failed
        if api_key not in CONTROL_API_KEYS:
            return None
        if caller.address is not None and await self._is_controllers(caller.address):
            return None
        self._complaints.warn(
            caller.address,
            "command refused: it does not come from the controller",
            api_key=api_key,
            address=str(caller.address),
            controller_hosts=sorted(self._controller.list_known()),
            why=_HINT,
        )
        return ErrorCode.cluster_authorization_failed

    async def may_follow(self, caller: Caller) -> bool:
        """Return True if the caller, which says that it is a broker, is at the address of one. Otherwise complain."""
        return await self._is_brokers(caller, _FOREIGN_FOLLOWER)

    async def _is_brokers(self, caller: Caller, otherwise: str) -> bool:
        address = caller.address
        if address is not None and self._is_in(address, await self._of_nodes.look_up(address)):
            return True
        self._complaints.warn((otherwise, address), otherwise, address=str(address), why=_HINT_ABOUT_BROKERS)
        return False

    async def _is_controllers(self, address: Address) -> bool:
        if self._is_in(address, self._of_controller.look(address)):
            return True
        try:
            await self._controller.refresh()
        except ZkError as error:
            raise NoAnswerNow(f"ZooKeeper does not say who the controller is: {error}") from error
        return self._is_in(address, await self._of_controller.look_up(address))

    def _is_in(self, address: Address, found: Set[Address]) -> bool:
        return self._rules.is_brokers(address, found)
