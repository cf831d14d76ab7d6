"""Dispatch of runs to workers: queue, assignment, messages, and retries after losses."""
