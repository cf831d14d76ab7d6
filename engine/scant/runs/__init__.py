"""Service that submits, monitors, pauses, resumes, stops and queries runs, without PyTorch."""

from scant.runs.service import RunService, Status

__all__ = ["RunService", "Status"]
