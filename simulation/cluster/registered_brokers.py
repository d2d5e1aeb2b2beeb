"""Simulated brokers and their registrations.

A broker registers with its own session. Its death ends the session, and a bounce gives it another epoch.
"""

from collections.abc import Mapping

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
)
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, SessionId, SetData
from simulation.brokers import SimulatedBroker
from simulation.cluster.znodes import Znodes


class RegisteredBrokers(Znodes):
    """Brokers, and the ZooKeeper in which they register."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        super().__init__(empty_zookeeper=empty_zookeeper)
        self.brokers: dict[BrokerId, SimulatedBroker] = {}
        self.features: dict[BrokerId, Mapping[str, FeatureRange]] = {}
        """The supported features for the brokers' next registrations."""
        self.ours: set[int] = set()
        """The brokers that declare themselves as reference brokers at their next registration."""
        self._sessions: dict[BrokerId, SessionId] = {}

    def broker(self, number: int) -> SimulatedBroker:
        return self.brokers[BrokerId(number)]

    @property
    def live(self) -> set[BrokerId]:
        return set(self._sessions)

    def start_brokers(self, *numbers: int) -> None:
        for number in numbers:
            self.start_broker(number)

    def start_broker(self, number: int) -> None:
        """Start or restart a broker and register it."""
        broker_id = BrokerId(number)
        epoch = self._register(broker_id)
        if broker_id in self.brokers:
            self.brokers[broker_id].bounce(epoch)
        else:
            self.brokers[broker_id] = SimulatedBroker(broker_id, epoch)

    def kill_broker(self, number: int) -> None:
        """Kill a broker and end its session."""
        self.broker(number).crash()
        self.zk.end(self._sessions.pop(BrokerId(number)))

    def bounce_broker(self, number: int) -> None:
        """Kill and restart a broker before any reaction."""
        self.kill_broker(number)
        self.start_broker(number)

    def expire_broker(self, number: int) -> None:
        """End a broker's session in ZooKeeper. The broker keeps running with its memory."""
        self.zk.end(self._sessions.pop(BrokerId(number)))

    def register_again(self, number: int) -> None:
        """Register a broker again after its session has ended, without a restart."""
        self.broker(number).epoch = self._register(BrokerId(number))

    def move_broker(self, number: int, port: int) -> None:
        """Rewrite a live broker's registration with another port."""
        self.write(SetData(path=paths.broker(BrokerId(number)), data=self._registration(BrokerId(number), port)))

    def support(self, number: int, **features: tuple[int, int]) -> None:
        """Set the supported versions of features, in the next registration or in the present one."""
        broker_id = BrokerId(number)
        self.features[broker_id] = {
            name: FeatureRange(min_version=lowest, max_version=highest) for name, (lowest, highest) in features.items()
        }
        if broker_id in self.live:
            self.move_broker(number, 9000 + number)

    def fail_log_dir(self, number: int, *partitions: TopicPartition) -> None:
        """Fail a broker's log directory with these partitions, and report it to the controller."""
        self.broker(number).offline.update(partitions)
        data, mode = codecs.encode_log_dir_event(BrokerId(number)), CreateMode.PERSISTENT_SEQUENTIAL
        self.write(Create(path=paths.LOG_DIR_EVENT_PREFIX, data=data, mode=mode))

    def make_kafka_controller(self, number: int) -> ControllerEpoch:
        """Let a broker's own controller take the role, like Kafka's brokers if nobody has it."""
        node = self.zk.tree.read(paths.CONTROLLER_EPOCH)
        epoch = ControllerEpoch(codecs.decode_controller_epoch(node.data) + 1 if node else 1)
        self.put(paths.CONTROLLER_EPOCH, codecs.encode_controller_epoch(epoch))
        data = codecs.encode_controller(BrokerId(number), self.clock.now_ms())
        create = Create(path=paths.CONTROLLER, data=data, mode=CreateMode.EPHEMERAL)
        self.write(create, owner=self._sessions[BrokerId(number)])
        return epoch

    def _register(self, broker_id: BrokerId) -> BrokerEpoch:
        session = self._sessions[broker_id] = self.zk.new_session_id()
        data = self._registration(broker_id, 9000 + broker_id)
        path = paths.broker(broker_id)
        self.write(Create(path=path, data=data, mode=CreateMode.EPHEMERAL), owner=session)
        node = self.zk.tree.read(path)
        assert node is not None
        return BrokerEpoch(node.czxid)

    def _registration(self, broker_id: BrokerId, port: int) -> bytes:
        endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host=f"broker-{broker_id}", port=port)
        features = self.features.get(broker_id, {})
        return codecs.encode_broker(
            Broker(
                id=broker_id,
                epoch=BrokerEpoch(0),
                endpoints=(endpoint,),
                features=features,
                is_ours=broker_id in self.ours,
            )
        )
