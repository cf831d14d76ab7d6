"""Cards at the top of a result: the verdict, and when to take another tool."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from scant import verdict
from scant.events import Report
from scant_dashboard.controls.take_another import take_another
from scant_dashboard.engine_text import translated
from scant_dashboard.translate import tr


def card(report: Report, seconds: float | None = None) -> str:
    """Return the verdict of a report, and below it the card `take_another`, as HTML.

    A report without a verdict gets one from its metrics.

    Args:
        report: Report of a run or recording.
        seconds: Training time, used if the report has none.
    """
    made = report.verdict or verdict.of_metrics(report.metrics)
    if seconds is not None and not made.seconds:
        made = replace(made, seconds={verdict.OURS: seconds})
    headline, *rest = map(translated, made.sentences() or [""])
    if not headline:
        return ""
    kind = "error" if made.nothing else "warning" if made.take_another else "info"
    lines = "".join(f"<li>{escape(line)}</li>" for line in rest)
    code = ""
    if made.take_another and made.code:
        summary = escape(tr("Two lines of Python that fit {method}", method=made.other.rival))
        code = (
            f"<details><summary>{summary}</summary><div class='scroll' tabindex='0' role='group' "
            f"aria-label='{tr('Code')}'><pre><code>{escape(made.code)}</code></pre></div></details>"
        )
    return (
        f"<div class='message {kind}' role='note' data-part='verdict'><p><strong>"
        f"{escape(headline)}</strong></p><ul>{lines}</ul>{code}</div>{take_another(made)}"
    )
