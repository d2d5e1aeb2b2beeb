"""A client for administrators of any Kafka cluster, with any controller: `admin_client.AdminClient`."""
