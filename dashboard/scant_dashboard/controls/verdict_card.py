"""The cards at the top of a result: who wins, at what cost, and what to take when."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from scant import verdict
from scant.events import Report
from scant_dashboard.controls.take_another import take_another


def card(report: Report, seconds: float | None = None) -> str:
    """The verdict of a report as HTML; of a report without one, what its figures alone say.

    Args:
        report: Of a run, or of a recording.
        seconds: That the run trained, where its report does not tell.

    Below stands where a rival is ahead (`take_another`), where the study tells it.
    """
    made = report.verdict or verdict.of_metrics(report.metrics)
    if seconds is not None and not made.seconds:
        made = replace(made, seconds={verdict.OURS: seconds})
    headline, *rest = made.sentences() or [""]
    if not headline:
        return ""
    kind = "error" if made.nothing else "warning" if made.take_another else "info"
    lines = "".join(f"<li>{escape(line)}</li>" for line in rest)
    code = ""
    if made.take_another and made.code:
        summary = f"Two lines of Python that fit {escape(made.other.rival)}"
        code = (
            f"<details><summary>{summary}</summary><div class='scroll' tabindex='0' role='group' "
            f"aria-label='Code'><pre><code>{escape(made.code)}</code></pre></div></details>"
        )
    return (
        f"<div class='message {kind}' role='note' data-part='verdict'><p><strong>"
        f"{escape(headline)}</strong></p><ul>{lines}</ul>{code}</div>{take_another(made)}"
    )
