"""The placement of replicas, as far as KafkaClusters, KafkaTopics and PartitionReassignments say it together."""
