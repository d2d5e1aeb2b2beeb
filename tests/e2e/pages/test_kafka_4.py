"""The commands for Kafka 4, word for word, on the cluster that `make try KRAFT=1` gives their readers."""

import pytest

from devcluster.filling.parts import Part
from devcluster.images import Image
from devcluster.node.pods import PodCluster
from tests.e2e.pages.conftest import find_installed
from tests.e2e.pages.walks import KAFKA_4, Reader

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(1800)]


def test_the_operator_serves_brokers_of_kafka_4_and_nothing_is_left_after_the_uninstall(
    reader: Reader, pods: PodCluster
) -> None:
    pods.load(Image.KAFKA_4)
    printed = reader.follow(KAFKA_4)
    assert "kafkacluster.kontroller.dev/demo condition met" in printed
    assert "hello" in printed.split()
    assert find_installed(pods) == []
