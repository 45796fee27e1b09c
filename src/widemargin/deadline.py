"""When the time of a fit is over: what its parts, one after another, have to keep to."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Deadline:
    """The end of the time that a user allows.

    Attributes
    ----------
    max_time : float or None
        Seconds that were allowed at the beginning; None for no limit.
    at : float
        When they are over, on the clock of `time.perf_counter`.

    Examples
    --------
    >>> deadline = Deadline.after(60.0)
    >>> deadline.passed, deadline.left() <= 60.0, deadline.part(0.5).left() <= 30.0
    (False, True, True)
    >>> Deadline().passed, Deadline().left()
    (False, None)
    """

    max_time: float | None = None
    at: float = float("inf")

    @classmethod
    def after(cls, max_time: float | None) -> Deadline:
        """Return the deadline so many seconds from now."""
        return cls() if max_time is None else cls(max_time, perf_counter() + max_time)

    def left(self) -> float | None:
        """Return the seconds that are left, if time is limited."""
        return None if self.max_time is None else max(0.0, self.at - perf_counter())

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return perf_counter() >= self.at

    def part(self, share: float) -> Deadline:
        """Return the end of the first part of what is left."""
        left = self.left()
        return self if left is None else Deadline(self.max_time, perf_counter() + share * left)

    @property
    def reached(self) -> str:
        """The reason for a stop at this deadline."""
        return f"max_time={self.max_time:g} reached"


NEVER = Deadline()
"""No limit."""
