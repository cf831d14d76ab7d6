"""What `scripts/measure_watchers.py` measures, a module for each kind of visitor."""
