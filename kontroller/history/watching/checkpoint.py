"""The state that a restarted watch needs: the raised alarms and the known clusters, as one small file.

The state of the clusters is read from their journals again, which takes seconds. Only this file records the alarms that
were sent.
"""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kontroller.history.alarms.records import PROBLEMS, RAISED, Alarm
from kontroller.history.watching.board import Board, Key, Standing
from kontroller.history.watching.fleet import Fleet

_VERSION = 1


class UnusableCheckpoint(Exception):
    """The file is not a checkpoint, or has a later version. Use another file, or remove this one."""


class _Standing(BaseModel):
    model_config = ConfigDict(frozen=True)

    cluster_id: str
    topic: str | None
    partition: int | None
    problem: str
    began_us: int
    at_us: int
    cause: str | None
    controller_epoch: int
    seq: int
    raised_s: float


class Kept(BaseModel):
    """The contents of the file. `clusters`: the event time of each cluster's last record."""

    version: int = _VERSION
    clusters: dict[str, int] = {}
    standing: list[_Standing] = []

    def alarms(self) -> list[tuple[Key, Standing]]:
        return [_restore(each) for each in self.standing if each.problem in PROBLEMS]


def read(path: Path) -> Kept:
    """Read the file; an absent one is empty. Raises `UnusableCheckpoint`, and `OSError`."""
    try:
        kept = Kept.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Kept()
    except ValidationError as error:
        raise UnusableCheckpoint(f"--checkpoint {path} is not a checkpoint of a watch: give another file") from error
    if kept.version != _VERSION:
        raise UnusableCheckpoint(f"--checkpoint {path} is of version {kept.version}: use the Kontroller that wrote it")
    return kept


def take_checkpoint(fleet: Fleet, board: Board) -> Kept:
    """Return the checkpoint of the current state."""
    return Kept(
        clusters={name: cluster.time.stamp_us for name, cluster in fleet.clusters.items()},
        standing=[
            _Standing(
                **key._asdict(),
                began_us=standing.alarm.began_us,
                at_us=standing.alarm.at_us,
                cause=standing.alarm.cause,
                controller_epoch=standing.alarm.position[0],
                seq=standing.alarm.position[1],
                raised_s=standing.raised_s,
            )
            for key, standing in board.standing.items()
        ],
    )


def write(path: Path, kept: Kept) -> None:
    """Replace the file atomically. Raises `OSError`."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(kept.model_dump_json().encode())
        file.flush()
        os.fsync(file.fileno())
    # The rename is atomic, and the data is on the disk by now, so a crash leaves the old file or the new one.
    new.replace(path)


def _restore(it: _Standing) -> tuple[Key, Standing]:
    position = it.controller_epoch, it.seq
    alarm = Alarm(it.topic, it.partition, it.problem, RAISED, it.began_us, it.at_us, it.cause, position)
    return Key(it.cluster_id, it.topic, it.partition, it.problem), Standing(alarm, it.raised_s)
