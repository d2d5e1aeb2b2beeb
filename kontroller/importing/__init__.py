"""`kontroller import`: topics that are there already, as KafkaTopics that change nothing about them."""
