"""Slow, obvious versions of the formulas, in float64: what the fast ones are compared with."""
