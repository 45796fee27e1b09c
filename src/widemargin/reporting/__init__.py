"""A page about a model: what was fitted, how sure we are, and where it fails."""

from widemargin.reporting.model_report import report

__all__ = ["report"]
