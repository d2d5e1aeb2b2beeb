"""The placement of replicas, as the result of KafkaClusters, KafkaTopics and PartitionReassignments together."""
