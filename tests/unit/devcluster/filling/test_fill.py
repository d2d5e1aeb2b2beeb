"""Parts of the cache are filled side by side, say why they cannot be, and end with the run that wanted them.

The Go that builds them is a script of each test; the processes, the locks and the cache are those of every run.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.building.cache import cache_folder
from devcluster.building.go import build_programs, compilers
from devcluster.building.progress import Step
from devcluster.building.toolchain import BuildError
from devcluster.filling.fill import fill_cache, fill_meanwhile
from devcluster.filling.parts import Part, find_missing
from devcluster.running.processes import wait_until
from tests.unit.devcluster.test_toolchain import is_alive

UseGo = Callable[[str], None]

GO = """\
#!/bin/sh
case "$1" in
env) echo go1.99 ;;
mod) echo '{{"GoMod": "go.mod", "Replace": []}}' ;;
list) printf 'some/package\\nanother/package\\n' ;;
build) {build} ;;
esac
"""
BOTH = "mkdir bin; touch bin/health bin/kube-apiserver"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and no Kubernetes that the machine may have."""
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path / "cache"))
    for name in ("KUBEBUILDER_ASSETS", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "kube-apiserver").touch(0o755)


@pytest.fixture
def use_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UseGo:
    """Put a fake Go first on the PATH. Its builds do what the test says, in the folder of the module."""

    def use(build: str) -> None:
        program = tmp_path / "go"
        program.write_text(GO.format(build=build))
        program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return use


def list_unfinished() -> list[Path]:
    return list((cache_folder() / "building").iterdir())


def test_only_what_is_named_is_filled_and_only_once(use_go: UseGo, tmp_path: Path) -> None:
    use_go(f"{BOTH}; echo x >> {tmp_path}/builds")
    assert find_missing([Part.KUBERNETES, Part.HEALTH]) == [Part.KUBERNETES, Part.HEALTH]
    fill_cache([Part.HEALTH])
    fill_cache([Part.HEALTH])
    assert find_missing([Part.KUBERNETES, Part.HEALTH]) == [Part.KUBERNETES]
    assert (tmp_path / "builds").read_text() == "x\n"


def test_two_parts_are_built_side_by_side(use_go: UseGo, tmp_path: Path) -> None:
    meet = f"mkdir {tmp_path}/$$.here; until [ $(ls -d {tmp_path}/*.here | wc -l) = 2 ]; do sleep 0.02; done"
    use_go(f"{BOTH}; {meet}")
    fill_cache([Part.HEALTH, Part.KUBERNETES])
    assert find_missing([Part.KUBERNETES, Part.HEALTH]) == []


def test_two_runs_that_need_the_same_part_build_it_once(use_go: UseGo, tmp_path: Path) -> None:
    use_go(f"echo x >> {tmp_path}/builds; until [ -e {tmp_path}/go-on ]; do sleep 0.02; done; {BOTH}")
    waits = threading.Event()

    def tell(line: str) -> None:
        if line.startswith("Waiting for another run"):
            waits.set()

    with fill_meanwhile([Part.HEALTH]) as first:
        wait_until((tmp_path / "builds").exists, "the first builds")
        with fill_meanwhile([Part.HEALTH], tell=tell) as second:
            assert waits.wait(30)
            (tmp_path / "go-on").touch()
            first.wait()
            second.wait()
    assert (tmp_path / "builds").read_text() == "x\n"


def test_a_failed_build_is_told_at_once_and_again_to_who_waits_for_it(use_go: UseGo) -> None:
    use_go("echo some/package >&2; echo '# another/package' >&2; echo 'no such symbol' >&2; exit 2")
    told: list[str] = []
    with fill_meanwhile([Part.HEALTH], tell=told.append) as parts:
        wait_until(lambda: "no such symbol" in told, "it is told")
        with pytest.raises(BuildError, match=r"(?s)^health could not be had:.*exit status 2.*no such symbol$"):
            parts.wait()
    assert "some/package" not in told
    assert find_missing([Part.HEALTH])
    assert list_unfinished() == []


def test_a_build_ends_with_the_block_that_began_it_and_leaves_nothing(use_go: UseGo, tmp_path: Path) -> None:
    use_go(f'echo half > "$GOTMPDIR/half"; sleep 600 & echo $$ $! >> {tmp_path}/pids; wait')
    told: list[str] = []

    def begin_and_leave() -> None:
        with fill_meanwhile([Part.HEALTH, Part.KUBERNETES, Part.KRAFT], tell=told.append):
            wait_until(lambda: (tmp_path / "pids").exists() and bool((tmp_path / "pids").read_text()), "it builds")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_leave()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert pids
    wait_until(lambda: not any(map(is_alive, pids)), "Go and what it started are gone")
    assert list_unfinished() == []
    assert find_missing([Part.HEALTH, Part.KUBERNETES, Part.KRAFT]) == [Part.HEALTH, Part.KUBERNETES, Part.KRAFT]
    assert not any("failed" in line for line in told)


def test_a_polite_build_leaves_the_cores_to_others(use_go: UseGo, tmp_path: Path) -> None:
    share, niceness = "/proc/self/autogroup", min(19, os.nice(0) + 10)
    shared = f"[ ! -e {share} ] || until grep nice.{niceness} {share}; do sleep 0.02; done"
    use_go(f"{BOTH}; nice > {tmp_path}/niceness; {shared}")
    with fill_meanwhile([Part.HEALTH], politely=True) as parts:
        parts.wait()
    assert int((tmp_path / "niceness").read_text()) == niceness


def test_the_command_builds_politely_if_it_is_asked_to(use_go: UseGo, tmp_path: Path) -> None:
    use_go(f"{BOTH}; nice > {tmp_path}/niceness")
    subprocess.run([sys.executable, "-m", "devcluster", "build", "health", "--politely"], check=True)
    assert int((tmp_path / "niceness").read_text()) == min(19, os.nice(0) + 10)


def test_a_build_counts_its_packages_and_keeps_what_it_compiles_in_its_own_folder(
    use_go: UseGo, tmp_path: Path
) -> None:
    use_go(f'{BOTH}; echo "$GOTMPDIR" > {tmp_path}/objects; echo some/package >&2; echo another/package >&2')
    folder = tmp_path / "folder"
    folder.mkdir()
    step = Step("Building")
    build_programs(step, folder, (1, 25), ["some/package"], [])
    assert str(step) == "Building (2 of at most 2 packages)"
    assert Path((tmp_path / "objects").read_text().strip()).parent == folder
    assert sorted(path.name for path in folder.iterdir()) == ["bin"]


def test_at_least_one_compiler_runs() -> None:
    assert compilers() >= 1
