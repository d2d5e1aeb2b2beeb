"""The levels of Kafka's features: `releases` has those of each release, and what they depend on."""
