"""Where runs are submitted, watched, paused, resumed, stopped and asked. Never imports torch."""

from scant.runs.service import RunService, Status

__all__ = ["RunService", "Status"]
