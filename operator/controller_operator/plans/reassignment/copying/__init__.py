"""The copies that a move makes: the brokers' answers about them, their progress, and stalled copies."""
