"""The listeners of a broker process, for both designs."""

from dataclasses import replace

from controller_core.process.connections import make_secured_listeners
from controller_core.wire.limits.admission import fit_to_descriptors
from controller_core.wire.listener.listener import Acceptor, Listener
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import ZkSession
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.serving.served import RULES, Served


def make_listener(settings: BrokerProcessSettings, served: Served, zk: ZkSession) -> Listener:
    """Return the listener that serves all addresses of the settings. Raises `InvalidSettings`."""
    secured = make_secured_listeners(settings.properties, settings.binds, ZkScramCredentials(zk))
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
    limits = fit_to_descriptors(settings.listener_limits)
    return Listener(acceptors, limits=replace(limits, max_own_request_bytes=limits.max_frame_bytes), rules=RULES)
