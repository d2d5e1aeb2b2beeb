"""The parts of a secure connection to ZooKeeper or Kafka: property files, certificates, logins."""
