"""Worker processes: the cluster they run on, the client that sends them work, and that work."""
