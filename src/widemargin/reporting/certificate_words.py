"""A certificate in words, for readers who have not met a duality gap."""

from __future__ import annotations

from widemargin.certificate import Certificate

__all__ = ["certificate_words"]

_SCOPES = {
    "full": "the best machine that there is for these rows, kernel and C",
    "span": "the best machine inside the span of its vectors, with all rows counted",
    "cells": "the best machines of all cells of the data",
    "sample": "the best machine for a random sample of the rows; all rows were not looked at",
}


def certificate_words(certificate: Certificate) -> list[str]:
    """Return what a certificate says, a sentence at a time.

    Examples
    --------
    >>> from widemargin import Certificate
    >>> certificate_words(Certificate(2.0, 1.9, 0.05))[0]
    'The objective of the fitted machine is at most 5 % above that of the best machine that there is
    for these rows, kernel and C. This is proved, not estimated.'
    """
    scope = _SCOPES.get(certificate.scope, f"the best one of the {certificate.scope} problem")
    gap = f"{100 * certificate.gap:.2g} %"
    words = [
        f"The objective of the fitted machine is at most {gap} above that of {scope}. This is "
        "proved, not estimated."
    ]
    if certificate.full_dual is not None and certificate.primal > 0:
        left = max(0.0, 1.0 - certificate.full_dual / certificate.primal)
        words.append(
            f"No machine with more vectors, however many, can lower it by more than "
            f"{100 * left:.2g} %."
        )
    if certificate.eps is not None:
        words.append(
            f"Every row lies within {1 + certificate.eps:.6g} times the radius of the smallest "
            "ball around them in feature space."
        )
    words.append(f"The fit ended because: {certificate.stopped or 'no reason was noted'}.")
    if certificate.gap > 0.05:
        words.append("A gap above 5 % means that more time or more steps may give another machine.")
    return words
