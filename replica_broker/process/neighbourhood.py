"""Whether this broker can live beside those that are registered. Asked before it registers: it might harm them else."""

from controller_core.model.ids import BrokerId
from controller_core.process.settings import InvalidSettings
from controller_core.zk.session import ZkSession
from replica_broker.membership.registration import listeners_of_others, stock_brokers
from replica_broker.process.settings import BrokerProcessSettings


async def require_no_stock_brokers(settings: BrokerProcessSettings, zk: ZkSession) -> None:
    """Raises `InvalidSettings` where stock brokers are there and replicas would be cut as these do not expect it."""
    if settings.truncate_to == "high-watermark" and (stock := await stock_brokers(zk)):
        raise InvalidSettings(
            f"--truncate-to high-watermark may lose what stock brokers have committed, and {', '.join(map(str, stock))} "
            "are registered: use it in a cluster of brokers of ours alone"
        )


async def require_common_listener(settings: BrokerProcessSettings, zk: ZkSession) -> None:
    """Raises `InvalidSettings` where the others cannot be reached by the listener between brokers: nor could the
    controller reach this one, and Kafka's does nothing for anybody then."""
    others = await listeners_of_others(zk, BrokerId(settings.id))
    if others and settings.between_brokers not in others:
        raise InvalidSettings(
            f"no registered broker has a listener {settings.between_brokers}, theirs are {', '.join(sorted(others))}: say "
            "with --inter-broker-listener which of them is their inter.broker.listener.name, and listen under it"
        )
