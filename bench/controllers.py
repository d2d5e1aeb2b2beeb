"""The measured controllers: a real Kafka broker beside the fleet, and our own process."""

import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bench.evaluation import Distribution
from bench.setup.jvm import BenchBroker
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.scraping import open_locally
from devcluster.running.servers import Server

_MB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident memory of a process, in MiB: now, and its maximum so far."""

    now_mb: float
    most_mb: float


class MeasuredController(ABC):
    """A controller process. `spawn` does not wait; `close` kills it."""

    name: str
    server: Server

    @abstractmethod
    def spawn(self) -> None:
        """Start the process."""

    @abstractmethod
    def is_standing_by(self) -> bool:
        """Return True if a process without the role would take it as soon as it is free."""

    @abstractmethod
    def event_times(self) -> dict[str, Distribution]:
        """Return the distribution of event times so far, by kind; empty if the controller does not report them."""

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.server.process.pid

    def cpu_s(self) -> float:
        """Return the processor seconds of all its threads since its start."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> Memory:
        """Return its resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        now, most = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
        assert now is not None
        assert most is not None
        return Memory(now_mb=int(now[1]) / _MB, most_mb=int(most[1]) / _MB)

    def close(self) -> None:
        """Kill the process."""
        self.server.close()


class KafkaController(MeasuredController):
    """A broker of Kafka 3.9.1 without partitions, which competes for the role as every broker does."""

    name = "kafka"

    def __init__(self, folder: RunFolder, zookeeper_connect: str, *, number: int) -> None:
        self.broker = BenchBroker(folder, zookeeper_connect, 100 + number)
        self.server = self.broker

    def spawn(self) -> None:
        self.broker.spawn()

    def is_standing_by(self) -> bool:
        # The broker logs this last, after it has looked at /controller.
        return "started (kafka.server.KafkaServer)" in self.broker.process.log_path.read_text(errors="replace")

    def event_times(self) -> dict[str, Distribution]:
        return {}


class OurController(MeasuredController):
    """`kontroller controller run`."""

    name = "kontroller"

    def __init__(self, folder: RunFolder, zookeeper_connect: str, *, number: int) -> None:
        self.process = ControllerProcess(
            folder,
            zookeeper_connect,
            controller_id=1000 + number,
            name=f"controller-{number}",
            # The fleet's brokers return no settings, and until one does, no topic is deleted.
            settings={"delete_topic_enable": True},
        )
        self.server = self.process

    def spawn(self) -> None:
        self.process.process.spawn()

    def is_standing_by(self) -> bool:
        return '"standing by"' in self.process.process.log_path.read_text(errors="replace")

    def event_times(self) -> dict[str, Distribution]:
        found: dict[str, Distribution] = {}
        with open_locally(f"http://127.0.0.1:{self.process.metrics_port}/metrics") as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        for family in families:
            if family.name == "kontroller_event_time_seconds":
                for kind in {sample.labels["event"] for sample in family.samples}:
                    samples = [sample for sample in family.samples if sample.labels["event"] == kind]
                    value = {sample.name.rpartition("_")[2]: sample.value for sample in samples}
                    found[kind] = Distribution(
                        count=value["count"],
                        total=value["sum"],
                        at_most=tuple((float(s.labels["le"]), s.value) for s in samples if "le" in s.labels),
                    )
        return found


CONTROLLERS: Final[dict[str, type[KafkaController] | type[OurController]]] = {
    "kafka": KafkaController,
    "kontroller": OurController,
}
