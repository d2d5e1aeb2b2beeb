"""Settings that have several values in a cluster: at its brokers, or at brokers and the controller."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.model.ids import BrokerId
from controller_core.model.settings.shared import SHARED, is_class, normalize
from controller_core.model.wording import list_some


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting with several values."""

    name: str
    nodes: Mapping[str, tuple[BrokerId, ...]]
    """The nodes by their value, most nodes first. The value of a class that is not set is empty."""

    def __str__(self) -> str:
        parts = (f"{value or 'not set'} at {list_some(nodes)}" for value, nodes in self.nodes.items())
        return f"{self.name} is {'; '.join(parts)}"


def find_differences(configs: Mapping[BrokerId, Mapping[str, str]]) -> tuple[Difference, ...]:
    """Return the shared settings that differ between nodes, by name. A node without a value agrees with all."""
    found = ((name, _group_by_value(name, configs)) for name in sorted(SHARED))
    return tuple(Difference(name=name, nodes=nodes) for name, nodes in found if len(nodes) > 1)


def _group_by_value(name: str, configs: Mapping[BrokerId, Mapping[str, str]]) -> dict[str, tuple[BrokerId, ...]]:
    nodes: defaultdict[str, list[BrokerId]] = defaultdict(list)
    for node, config in sorted(configs.items()):
        if name in config or is_class(name):
            nodes[normalize(name, config.get(name, ""))].append(node)
    return {value: tuple(ids) for value, ids in sorted(nodes.items(), key=lambda each: (-len(each[1]), each[0]))}
