"""Capacities of brokers from a file in the format of Cruise Control (`capacity.json`).

DISK is in MiB, for the broker or for each log directory. NW_IN and NW_OUT are in KiB per second. CPU is read and not
used. Broker -1 has the capacities of all brokers that have no entry of their own."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from controller_core.model.wording import name_all
from controller_planner.loads import LoadSnapshot

_ALL_OTHERS: Final = -1
_MIB: Final = 1 << 20
_KIB: Final = 1 << 10
_NONE: Final = (None, None, None)
_NAMES: Final = ("DISK", "NW_IN", "NW_OUT")
_EXAMPLE: Final = (
    '{"brokerCapacities":[{"brokerId":"-1","capacity":{"DISK":"100000","CPU":"100","NW_IN":"10000","NW_OUT":"10000"}}]}'
)


class UnusableCapacitiesError(Exception):
    """A file that has no capacities. The message says what to change."""


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, le=1e18)]


class _Capacity(BaseModel):
    model_config = ConfigDict(frozen=True)

    disk: Positive | dict[str, Positive] | None = Field(default=None, alias="DISK")
    nw_in: Positive | None = Field(default=None, alias="NW_IN")
    nw_out: Positive | None = Field(default=None, alias="NW_OUT")

    @field_validator("disk")
    @classmethod
    def _has_a_directory(cls, disk: float | dict[str, float] | None) -> float | dict[str, float] | None:
        if disk == {}:
            raise ValueError("no log directory is named")
        return disk

    def list_values(self) -> tuple[float | None, float | None, float | None]:
        """Return bytes on disks, and bytes per second in and out."""
        disk = sum(self.disk.values()) if isinstance(self.disk, dict) else self.disk
        return tuple(  # type: ignore[return-value]  # it has three
            None if value is None else value * unit
            for value, unit in ((disk, _MIB), (self.nw_in, _KIB), (self.nw_out, _KIB))
        )


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)

    broker_id: int = Field(alias="brokerId", ge=_ALL_OTHERS, le=2**31 - 1)
    capacity: _Capacity


class _File(BaseModel):
    model_config = ConfigDict(frozen=True)

    entries: tuple[_Entry, ...] = Field(alias="brokerCapacities", min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacities:
    """The capacities of brokers: bytes on disks, and bytes per second in and out. None: not in the file."""

    of: Mapping[int, tuple[float | None, float | None, float | None]]
    of_others: tuple[float | None, float | None, float | None] = (None, None, None)

    def find_unknown_brokers(self, snapshot: LoadSnapshot) -> tuple[int, ...]:
        """Return the brokers of the file that the snapshot lacks."""
        return tuple(sorted(self.of.keys() - set(snapshot.brokers.ids.tolist())))

    def list_gaps(self, snapshot: LoadSnapshot) -> Iterator[str]:
        """Yield a line for each capacity that the file has for some brokers of the snapshot only."""
        brokers = snapshot.brokers
        given = self._list_given(snapshot)
        known = (
            brokers.capacity_disk_bytes,
            brokers.capacity_in_bytes_per_second,
            brokers.capacity_out_bytes_per_second,
        )
        for column, name in enumerate(_NAMES):
            lacks = np.isnan(given[:, column])
            if lacks.all():
                continue
            for which, holds in (
                (lacks & ~np.isnan(known[column]), "what the snapshot has holds"),
                (lacks & np.isnan(known[column]), "unknown"),
            ):
                if which.any():
                    yield f"no {name} for {name_all('broker', np.sort(brokers.ids[which]).tolist())}: {holds}"

    def put_into(self, snapshot: LoadSnapshot) -> LoadSnapshot:
        """Return the snapshot with these capacities. Those that the file lacks stay as brokers told them."""
        brokers = snapshot.brokers
        given = self._list_given(snapshot)

        def choose(column: int, known: Any) -> Any:
            return np.where(np.isnan(given[:, column]), known, given[:, column])

        return replace(
            snapshot,
            brokers=replace(
                brokers,
                capacity_disk_bytes=choose(0, brokers.capacity_disk_bytes),
                capacity_in_bytes_per_second=choose(1, brokers.capacity_in_bytes_per_second),
                capacity_out_bytes_per_second=choose(2, brokers.capacity_out_bytes_per_second),
            ),
        )

    def _list_given(self, snapshot: LoadSnapshot) -> NDArray[np.float64]:
        """Return what the file has for each broker of the snapshot. NaN: nothing."""
        ids = snapshot.brokers.ids.tolist()
        given = [
            [math.nan if value is None else value for value in self.of.get(broker, self.of_others)] for broker in ids
        ]
        return np.array(given, dtype=np.float64).reshape(len(ids), len(_NAMES))


def read_capacities(text: str) -> Capacities:
    """Return the capacities in a file's text. Raises `UnusableCapacitiesError`."""
    try:
        file = _File.model_validate_json(text)
    except ValidationError as error:
        raise UnusableCapacitiesError(f"{_describe(error)}: write it as {_EXAMPLE}") from error
    of: dict[int, tuple[float | None, float | None, float | None]] = {}
    for entry in file.entries:
        if entry.broker_id in of:
            raise UnusableCapacitiesError(f"broker {entry.broker_id} is there twice: give its capacity once")
        if entry.capacity.list_values() == _NONE:
            raise UnusableCapacitiesError(f"broker {entry.broker_id} has none of DISK, NW_IN and NW_OUT: give one")
        of[entry.broker_id] = entry.capacity.list_values()
    others = of.pop(_ALL_OTHERS, _NONE)
    return Capacities(of=of, of_others=others)


def _describe(error: ValidationError) -> str:
    """Return the first errors, with the entries that they are in."""
    found = error.errors()
    # A wrong entry also makes the list too short, and a wrong number for DISK is no object, either.
    inner = [each for each in found if each["type"] not in ("too_short", "dict_type", "float_type")] or found
    return "; ".join(
        f"{'.'.join(str(part) for part in each['loc'] if 'constrained-float' not in str(part)) or 'it'}: {each['msg']}"
        for each in inner[:3]
    )
