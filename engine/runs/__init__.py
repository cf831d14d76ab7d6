"""Where runs are submitted, watched, paused, resumed, stopped and asked. Never imports torch."""

from engine.runs.service import RunService, Status

__all__ = ["RunService", "Status"]
