"""Authorization of requests by Kafka's ACLs. Some requests are authorized in parts."""
