"""`kontroller import`: writes existing topics as KafkaTopics that change nothing about them."""
