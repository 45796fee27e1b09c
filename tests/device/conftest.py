import pytest

from tests.reference.devices import NAMES, a_device


@pytest.fixture(params=NAMES)
def device(request):
    """A device of each library that is installed."""
    return a_device(request.param)
