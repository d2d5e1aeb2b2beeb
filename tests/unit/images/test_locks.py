"""All installed packages are pinned: locks hold what pyproject.toml asks for, agree with one another and name no
index."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from devcluster.images.wheels import divide_lock

PROJECT = Path(__file__).resolve().parents[3]
LOCKS = sorted((PROJECT / "locks").glob("*.txt"))
PYPROJECT: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PYPROJECT["dependency-groups"]
DEMO = [*PYPROJECT["project"]["dependencies"], *EXTRAS["journal-topic"]]
RUNTIME = [*DEMO, *GROUPS["image"]]
# The purpose of each lock file.
WANTED = {
    "build": GROUPS["build"],
    "demo": DEMO,
    "dev": [*PYPROJECT["project"]["dependencies"], *(wanted for extra in EXTRAS.values() for wanted in extra)],
    "history": [*RUNTIME, *EXTRAS["pipeline"]],
    "image": RUNTIME,
    "programs": GROUPS["programs"],
    "s3": GROUPS["s3"],
    "tools": GROUPS["tools"],
}


def entries(lock: Path) -> Iterator[tuple[Requirement, int]]:
    """Yield each pinned distribution, and the number of its hashes."""
    for entry in re.split(r"\n(?=\S)", lock.read_text().strip()):
        pin, *hashes = entry.replace("\\\n", "").split("--hash=sha256:")
        yield Requirement(pin.strip()), len(hashes)


def versions(lock: Path) -> dict[str, set[str]]:
    """The pinned versions of each distribution: one, or one for each kind of Python."""
    found: dict[str, set[str]] = {}
    for pin, _ in entries(lock):
        (specifier,) = pin.specifier
        assert specifier.operator == "=="
        found.setdefault(canonicalize_name(pin.name), set()).add(specifier.version)
    return found


def lock_of(purpose: str) -> Path:
    return PROJECT / "locks" / f"{purpose}.txt"


def test_there_is_a_lock_file_for_each_purpose_and_no_other() -> None:
    assert {lock.stem for lock in LOCKS} == WANTED.keys()


@pytest.mark.parametrize("purpose", WANTED)
def test_everything_that_is_asked_for_is_pinned_to_a_version_that_will_do(purpose: str) -> None:
    pinned = versions(lock_of(purpose))
    for wanted in map(Requirement, WANTED[purpose]):
        if wanted.name == PYPROJECT["project"]["name"]:
            assert wanted.extras <= EXTRAS.keys()
            continue
        name = canonicalize_name(wanted.name)
        assert name in pinned, f"make lock: {purpose}.txt has no {name}"
        assert all(wanted.specifier.contains(version) for version in pinned[name]), (
            f"make lock: {name} in {purpose}.txt"
        )


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_distribution_has_hashes(lock: Path) -> None:
    assert [pin.name for pin, hashes in entries(lock) if not hashes] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_no_lock_names_an_index_or_another_place(lock: Path) -> None:
    assert re.findall(r"://|--index|--find-links| @ ", lock.read_text()) == []


@pytest.mark.parametrize("purpose", ["build", "demo", "history", "image"])
def test_what_ships_is_what_is_tested(purpose: str) -> None:
    tested, of_the_image = (
        versions(lock_of("dev")),
        {canonicalize_name(Requirement(name).name) for name in GROUPS["image"]},
    )
    shipped = versions(lock_of(purpose))
    assert {name for name in shipped.keys() & tested.keys() if not shipped[name] <= tested[name]} == set()
    if purpose != "build":
        assert shipped.keys() - tested.keys() <= of_the_image


def test_only_the_image_of_the_history_has_spark() -> None:
    of_spark = {"pyspark", "py4j", "pandas"}
    assert versions(lock_of("history")).keys() >= of_spark
    assert versions(lock_of("image")).keys().isdisjoint(of_spark)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_the_part_of_kio_that_needs_a_distribution_under_the_lgpl_is_not_used_and_that_is_left_out(lock: Path) -> None:
    assert "crc32c" not in versions(lock)
    packages = ["replica_broker", *PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
    sources = [path for package in packages for path in (PROJECT / package).rglob("*.py")]
    assert sources
    assert [path for path in sources if re.search(r"\bkio(\.| import )records\b", path.read_text())] == []


@pytest.mark.parametrize("purpose", ["history", "image"])
def test_the_image_s_python_and_system_need_no_markers(purpose: str) -> None:
    assert [pin.name for pin, _ in entries(lock_of(purpose)) if pin.marker] == []


def test_one_entry_of_a_lock_is_taken_out_whole() -> None:
    first = "a==1 \\\n    --hash=sha256:1"
    spark = "pyspark==2 \\\n    --hash=sha256:2 \\\n    --hash=sha256:3"
    last = "z==3 \\\n    --hash=sha256:4"
    assert divide_lock(f"{first}\n{spark}\n{last}\n", ["pyspark"]) == (spark, f"{first}\n{last}")
