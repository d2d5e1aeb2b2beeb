"""Where a broker's process is reached, of either design: its listeners."""

from typing import Final

from controller_core.process.connections import secured_listeners
from controller_core.wire.listener.listener import Acceptor, Listener, ListenerLimits
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import ZkSession
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.serving.served import RULES, Served

MOST_REQUEST_BYTES: Final = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""


def listening(settings: BrokerProcessSettings, served: Served, zk: ZkSession) -> Listener:
    """What listens at each address, and answers as the settings' listener there. Raises `InvalidSettings`."""
    secured = secured_listeners(settings.properties, settings.binds, ZkScramCredentials(zk))
    acceptors = [
        Acceptor(
            host=bind.host,
            port=bind.port,
            apis=served.apis(bind.listener),
            relay_targets=None,
            secured=secured.get(bind.listener),
        )
        for bind in settings.binds
    ]
    return Listener(acceptors, limits=ListenerLimits(max_own_request_bytes=MOST_REQUEST_BYTES), rules=RULES)
