"""The `scant` command."""
