"""Compares the journals of the soak's controllers with ZooKeeper, and checks their history for violated invariants."""

from collections.abc import Collection, Iterator
from pathlib import Path

from controller_core.journal.fold import Folded, fold
from controller_core.journal.reader import read
from devcluster.soak.snapshot import Snapshot


def journal_problems(directories: Collection[Path], snapshot: Snapshot) -> list[str]:
    """Return the findings about journals of controllers that have ended.

    `snapshot` was taken before, of a cluster at rest.
    """
    folded = fold(read(*directories))
    found = [f"the journal has a finding at {finding.position}: {finding.problem}" for finding in folded.findings]
    found += [f"the journal lacks {gap.count} records at {gap.position}" for gap in folded.gaps]
    return found + list(_differences(folded, snapshot))


def _differences(folded: Folded, snapshot: Snapshot) -> Iterator[str]:
    image = folded.image
    if image is None:
        yield "the journal does not come to a known state"
        return
    told = {
        partition: (fields["leader"], fields["leader_epoch"], tuple(sorted(fields["isr"])))
        for partition, fields in image.leaderships.items()
    }
    found = {partition: (state.leader, state.leader_epoch, state.isr) for partition, state in snapshot.states.items()}
    for topic, number in sorted(told.keys() | found.keys()):
        in_journal, in_zookeeper = told.get((topic, number)), found.get((topic, number))
        if in_journal != in_zookeeper:
            yield f"{topic}-{number} is {in_journal} (leader, epoch, ISR) by the journal, {in_zookeeper} in ZooKeeper"
    if image.brokers.keys() != set(snapshot.registered):
        yield f"the journal has brokers {sorted(image.brokers)}, ZooKeeper {sorted(snapshot.registered)}"
