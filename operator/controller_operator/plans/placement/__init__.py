"""Where replicas may go, as far as KafkaClusters, KafkaTopics and PartitionReassignments say it together."""
