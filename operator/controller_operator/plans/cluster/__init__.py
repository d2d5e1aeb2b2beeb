"""KafkaCluster: shows the state of the cluster, and changes only throttles that nobody owns."""
