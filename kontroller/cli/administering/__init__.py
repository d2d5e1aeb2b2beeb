"""The commands that administer a Kafka cluster from the outside, over the admin client."""
