"""What strangers may take and ask: connections, bytes, items, and by address."""
