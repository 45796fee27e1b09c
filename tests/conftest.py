"""Every run of the tests tries the same examples; HYPOTHESIS_PROFILE=search looks for new ones."""

import os
import signal

import numpy as np
import pytest
from hypothesis import settings

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes that test side by side have a core each: threads of BLAS would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(PROFILE)


@pytest.fixture(autouse=True)
def same_random_numbers():
    """Estimators without a `random_state` draw from NumPy's own generator: let that be the same."""
    if PROFILE == "same":
        np.random.seed(0)  # noqa: NPY002, the generator that they draw from
