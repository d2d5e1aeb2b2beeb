"""A broker of our own: it hosts replicas of partitions beside stock Kafka 3.9 brokers, as seed 004 writes a broker."""
