"""Checks before the registration that this broker fits the registered ones; otherwise it might harm them."""

from controller_core.model.ids import BrokerId
from controller_core.process.settings import InvalidSettings
from controller_core.zk.session import ZkSession
from replica_broker.membership.registration import read_other_listeners, read_stock_brokers
from replica_broker.process.settings import BrokerProcessSettings


async def require_no_stock_brokers(settings: BrokerProcessSettings, zk: ZkSession) -> None:
    """Raise `InvalidSettings` if stock brokers are registered and this broker truncates in a way they do not expect."""
    if settings.truncate_to == "high-watermark" and (stock := await read_stock_brokers(zk)):
        raise InvalidSettings(
            "--truncate-to high-watermark may lose messages that stock brokers have committed, and "
            f"{', '.join(map(str, stock))} are registered: use it only if all brokers are reference brokers"
        )


async def require_common_listener(settings: BrokerProcessSettings, zk: ZkSession) -> None:
    """Raise `InvalidSettings` if no registered broker has the listener between brokers.

    The controller could not reach this broker either, and then Kafka's controller stops serving the whole cluster.
    """
    others = await read_other_listeners(zk, BrokerId(settings.id))
    if others and settings.between_brokers not in others:
        raise InvalidSettings(
            f"no registered broker has a listener {settings.between_brokers}, only {', '.join(sorted(others))}: set "
            "--inter-broker-listener to the brokers' inter.broker.listener.name, and --listen on it"
        )
