"""Runs on their way through workers: queued, assigned, listened to, and tried again when lost."""
