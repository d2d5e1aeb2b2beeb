"""Every log line is written, with any content: one that cannot be written would end the process."""

import json
import subprocess
import sys

import pytest

LOGGED = """
import structlog
from controller_core.process.logging import configure_logging
configure_logging("json")
structlog.get_logger().warning("odd", by_number={1: "one"}, members={1, 2}, error=OSError("gone"))
"""


LEVELLED = """
import structlog
from controller_core.process.logging import configure_logging
configure_logging("json", "warning")
structlog.get_logger().info("usual")
structlog.get_logger().warning("unusual")
"""


OF_A_LIBRARY = """
import logging
from controller_core.process.logging import configure_logging
configure_logging("json")
logging.getLogger("kazoo.client").info("usual")
logging.getLogger("kazoo.client").warning("Connection dropped: %s", "gone")
"""


@pytest.mark.timeout(60)
def test_libraries_write_the_same_lines() -> None:
    ended = subprocess.run([sys.executable, "-c", OF_A_LIBRARY], capture_output=True, text=True, check=True, timeout=50)
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert (line["event"], line["level"], line["logger"]) == ("Connection dropped: gone", "warning", "kazoo.client")


@pytest.mark.timeout(60)
def test_lines_below_the_level_are_not_written() -> None:
    ended = subprocess.run([sys.executable, "-c", LEVELLED], capture_output=True, text=True, check=True, timeout=50)
    assert [json.loads(line)["event"] for line in ended.stderr.splitlines()] == ["unusual"]


@pytest.mark.timeout(60)
def test_values_that_json_does_not_have_are_written_all_the_same() -> None:
    ended = subprocess.run([sys.executable, "-c", LOGGED], capture_output=True, text=True, check=True, timeout=50)
    line = json.loads(ended.stderr)
    assert (line["event"], line["by_number"], line["error"]) == ("odd", {"1": "one"}, "gone")
