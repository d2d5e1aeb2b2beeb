"""Design v2 (seed 003): brokers elect partition leaders through ZooKeeper, without a controller."""
