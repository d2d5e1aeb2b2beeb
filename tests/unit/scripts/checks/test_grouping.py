"""The tests that one process runs, if several processes share a run."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PROJECT = Path(__file__).parents[4]
CONFTEST = """
import pytest
from tests.grouping import group_items

def pytest_collection_modifyitems(config, items):
    group_items(config, items)

@pytest.fixture(scope="session", params=["a", "b"])
def served(request):
    return request.param

@pytest.fixture(scope="session", params=["a", "b"])
def operated_cluster(request):
    return request.param
"""
ALONE = """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_alone(number): ...
"""
SERVED = "def test_one(served): ...\ndef test_two(served): ...\ndef test_three(served): ..."
OPERATED = "def test_one(operated_cluster): ...\ndef test_two(operated_cluster): ..."


def test_one_process_runs_a_file_or_its_tests_on_a_shared_cluster_or_a_folder_on_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_alone.py").write_text(ALONE)
    (tmp_path / "test_served.py").write_text(SERVED)
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "test_kind_1.py").write_text(OPERATED)
    (tmp_path / "kinds" / "test_kind_2.py").write_text(OPERATED)
    options = ("-v", "-p", "no:cacheprovider", "--numprocesses=2", "--dist=loadgroup", "--no-loadscope-reorder")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    processes = defaultdict(set)
    for process, group in re.findall(r"^\[(gw\d)\].*@(/.+?) *$", ended.stdout, re.MULTILINE):
        processes[Path(group).name].add(process)
    assert set(processes) == {"test_alone.py", "test_served.py a", "test_served.py b", "kinds a", "kinds b"}
    assert all(len(each) == 1 for each in processes.values()), processes
