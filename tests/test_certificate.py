"""What a certificate says."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from widemargin.certificate import Certificate

BLANK = Certificate(
    primal=2.0,
    dual=1.0,
    gap=0.5,
    eps=None,
    scope="full",
    n_vectors=3,
    n_iter=0,
    n_passes=1,
    n_kernel=9,
    seconds=0.0,
    stopped="",
)


def test_a_certificate_prints_as_one_line_with_what_matters():
    certificate = replace(
        BLANK, gap=0.00123, eps=0.0456, n_vectors=12345, n_iter=6, stopped="gap within 0.01"
    )
    text = str(certificate)
    assert "\n" not in text
    for part in ("1.2e-03", "full", "4.6e-02", "12,345", "6 steps", "gap within 0.01"):
        assert part in text
    assert "ball" not in str(BLANK)


@pytest.mark.parametrize("name", ["gap", "primal", "stopped"])
def test_a_certificate_cannot_be_changed(name):
    with pytest.raises(FrozenInstanceError):
        setattr(BLANK, name, 0)


def test_a_certificate_says_of_a_span_what_no_machine_can_get_below():
    assert "full problem at least 0.25" in str(replace(BLANK, scope="span", full_dual=0.25))
    assert "at least" not in str(BLANK)


def test_what_a_certificate_is_not_told_is_nothing():
    assert Certificate(2.0, 1.0, 0.5, n_vectors=3, n_passes=1, n_kernel=9) == BLANK
