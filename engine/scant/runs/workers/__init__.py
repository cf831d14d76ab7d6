"""Worker processes: cluster, client, and tasks."""
