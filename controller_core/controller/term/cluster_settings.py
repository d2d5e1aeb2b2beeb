"""The settings that hold in the cluster: those that the process was given, otherwise those in the brokers' files.

The brokers' answers are part of the cluster state, so a value may change with each event. Until a broker has answered,
values whose guess may lose data are unknown, and what depends on them waits or is refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.model.ids import BrokerId
from controller_core.model.settings import shared
from controller_core.model.settings.differences import Difference, find_differences

_IMBALANCE_PERCENTAGE: Final = 10
_IMBALANCE_INTERVAL_S: Final = 300
DEFAULT_QUOTA_WINDOWS_S: Final = 11
"""Kafka's defaults, until a broker has answered. A window has one second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The shared settings of one term."""

    given: Mapping[str, str]
    """Those that the process was given, by their names in a broker's file."""
    state: ReadOnlyState

    @property
    def default_replication_factor(self) -> int | None:
        """The number of replicas of a partition whose creator does not say it; None if it is unknown."""
        return self._number(shared.REPLICATION_FACTOR)

    @property
    def num_partitions(self) -> int | None:
        """The number of partitions of a topic whose creator does not say it; None if it is unknown."""
        return self._number(shared.PARTITIONS)

    @property
    def delete_topic_enable(self) -> bool | None:
        """True if topics may be deleted; None if that is unknown."""
        return self._switch(shared.DELETE_TOPIC)

    @property
    def unclean_leader_election_enable(self) -> bool:
        """The default for topics without `unclean.leader.election.enable`; False if it is unknown."""
        return self._switch(shared.UNCLEAN_ELECTION) or False

    @property
    def auto_leader_rebalance_enable(self) -> bool | None:
        """True if leaders go back to their preferred replicas automatically; None if that is unknown."""
        return self._switch(shared.AUTO_REBALANCE)

    @property
    def leader_imbalance_per_broker_percentage(self) -> int:
        """The percentage of its leaderships that a broker may miss before they are given back."""
        percentage = self._number(shared.IMBALANCE_PERCENTAGE)
        return _IMBALANCE_PERCENTAGE if percentage is None else percentage

    @property
    def leader_imbalance_check_interval_seconds(self) -> int:
        """Seconds between checks of the leader imbalance."""
        return self._number(shared.IMBALANCE_INTERVAL) or _IMBALANCE_INTERVAL_S

    @property
    def remote_log_storage_system_enable(self) -> bool:
        """True if all brokers have remote storage. Brokers without it refuse to start with topics that need it."""
        return self._switch(shared.REMOTE_STORAGE) or False

    @property
    def quota_windows_s(self) -> int:
        """Seconds whose quota of mutations may be used up at once."""
        number = self._number(shared.QUOTA_WINDOWS) or DEFAULT_QUOTA_WINDOWS_S
        return number * (self._number(shared.QUOTA_WINDOW_SIZE) or 1)

    @property
    def values(self) -> dict[str, str]:
        """The known values that hold here, by their names in a broker's file."""
        held = {name: shared.choose_value(name, self._texts(name)) for name in sorted(shared.SHARED)}
        return {name: value for name, value in held.items() if value is not None} | dict(self.given)

    def find_differences(self, own_id: BrokerId) -> tuple[Difference, ...]:
        """Return the settings that differ between brokers, or between brokers and this controller."""
        configs = {broker: answer.config for broker, answer in self.state.static_configs.items()}
        return find_differences({**configs, own_id: self.values} if configs else {})

    def _number(self, name: str) -> int | None:
        return shared.choose_number(name, self._texts(name))

    def _switch(self, name: str) -> bool | None:
        return shared.choose_switch(name, self._texts(name))

    def _texts(self, name: str) -> Collection[str]:
        if name in self.given:
            return (self.given[name],)
        return {answer.config[name] for answer in self.state.static_configs.values() if name in answer.config}
