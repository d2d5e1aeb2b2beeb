"""Who asks, and what he may: principals and Kafka's ACLs, as values and decisions."""
