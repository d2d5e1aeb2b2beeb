"""AllocateProducerIds as brokers use it: an idempotent producer gets an id from its broker's block."""

from confluent_kafka import Producer

from tests.real.conformance.clusters import ConformanceCluster


def test_an_idempotent_producer_is_served(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("given-ids", [[1, 2, 3]])
    failures: list[object] = []
    producer = Producer({**cluster.librdkafka(cluster.kafka.bootstrap_servers), "enable.idempotence": True})
    producer.produce("given-ids", value=b"once", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None]
    block = cluster.znodes.read("/latest_producer_id_block")
    assert int(block["block_end"]) - int(block["block_start"]) == 999
