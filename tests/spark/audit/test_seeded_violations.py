"""Each invariant is broken once, and is found with the records that prove it. A sound history gives no findings."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.audit.audit import INVARIANTS
from tests.spark.audit.mutations import MUTATIONS, Proof
from tests.spark.audit.story import story
from tests.spark.audit.tables import Record, Tables
from tests.spark.audit.test_rival_journals import SCENES as RIVALS

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
SOUND = "nothing is wrong"
FORGETFUL: dict[str, tuple[str, Record]] = {
    "a change that is not recorded": ("HistoryIsTheState", {"folded_checksum": 1, "snapshot_checksum": 2}),
    "a snapshot with another sum": ("SnapshotIsTheState", {"folded_checksum": None, "snapshot_checksum": 1}),
}
PROVEN: Record = {"checksum": 2, "snapshot_checksum": 2, "folded_checksum": 2, "entries": 3, "controller_epoch": 1}
FIRST: Record = {"controller_epoch": 1, "seq": 7, "event_time": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.fixture(scope="module")
def proofs() -> dict[str, Proof]:
    return {}


@pytest.fixture(scope="module")
def found(spark: SparkSession, proofs: dict[str, Proof]) -> Sequence[Row]:
    """Return the violations of all clusters, each of which has one fault."""
    tables = Tables()
    tables.add(story(), cluster_id=SOUND)
    for cluster_id, (_, mutate) in MUTATIONS.items():
        records = tables.add(story(), cluster_id=cluster_id)
        proofs[cluster_id] = mutate(records)
        tables.events = [r for r in tables.events if r["cluster_id"] != cluster_id] + records
    tables.proofs.append({**PROVEN, **FIRST, "cluster_id": SOUND})
    for cluster_id, (_, sums) in FORGETFUL.items():
        tables.proofs.append({**PROVEN, **FIRST, **sums, "cluster_id": cluster_id})
    # Settings without code generation. Compiling the plan takes far longer than running it on these few rows.
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    rows = tables.audit(spark)
    for name in INTERPRETED:
        spark.conf.unset(name)
    return rows


def select_violations(found: Sequence[Row], cluster_id: str, invariant: str) -> list[Row]:
    return [row for row in found if (row.cluster_id, row.invariant) == (cluster_id, invariant)]


def place(record: Record | Row) -> tuple[int, int]:
    return record["controller_epoch"], record["seq"]


@pytest.mark.parametrize("wrong", MUTATIONS)
def test_what_is_wrong_is_found_with_its_proof(wrong: str, found: Sequence[Row], proofs: dict[str, Proof]) -> None:
    invariant, _ = MUTATIONS[wrong]
    proof = proofs[wrong]
    violated = [
        row for row in select_violations(found, wrong, invariant) if place(row) in {place(record) for record in proof}
    ]
    assert violated, [(row.invariant, row.detail) for row in found if row.cluster_id == wrong]
    first = violated[0]
    assert [place(record) for record in first.evidence] == [place(record) for record in proof]
    assert {record.source for record in first.evidence} == {"memory"}
    assert [record.kind for record in first.evidence] == [record["kind"] for record in proof]


@pytest.mark.parametrize("wrong", FORGETFUL)
def test_a_snapshot_that_proves_the_contrary_is_a_violation(wrong: str, found: Sequence[Row]) -> None:
    invariant, _ = FORGETFUL[wrong]
    (row,) = [row for row in found if row.cluster_id == wrong]
    assert (row.invariant, place(row), place(row.evidence[0])) == (invariant, (1, 7), (1, 7))


def test_nothing_is_found_where_nothing_is_wrong(found: Sequence[Row]) -> None:
    assert [row.detail for row in found if row.cluster_id == SOUND] == []


def test_every_invariant_is_broken_once() -> None:
    broken = {invariant for invariant, _ in (*MUTATIONS.values(), *FORGETFUL.values())}
    broken |= {invariant for _, told in RIVALS.values() for invariant in told}
    assert broken == {invariant.id for invariant in INVARIANTS}


def test_every_invariant_is_explained() -> None:
    text = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()
    explained = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(explained) == sorted(["invariant", *(invariant.id for invariant in INVARIANTS)])
