"""Programs that behave as a test needs: a controller that dies or stands still at a write, a broker that only answers."""
