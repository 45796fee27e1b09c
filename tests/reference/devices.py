"""Devices that tests can have on any machine: array-api-strict's, and torch's where it is there."""

import array_api_strict
import pytest

from widemargin.device import Device, named_device

NAMES = ("strict", "torch")


def a_device(name):
    """Return a device by the name of its library, or skip the test."""
    if name == "strict":
        # Not its first: what is made on the wrong one is then found out.
        return Device(array_api_strict, array_api_strict.Device("device1"))
    torch = pytest.importorskip("torch")
    return named_device("cuda" if torch.cuda.is_available() else "cpu")
