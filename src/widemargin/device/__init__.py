"""Arrays on a device: whose they are, rows that lie there, and kernel values of them.

Nothing here knows labels or solvers. torch and CuPy are imported when an array of theirs comes, or
a user names a device.
"""

from widemargin.device.device_gradients import check_moved_on_device, pulled_there
from widemargin.device.device_kernels import DeviceKernel, can_be_shifted, check_on_device
from widemargin.device.device_rows import DeviceRows, block_on_device, blocks_on_device, moments
from widemargin.device.kept import kernel_with
from widemargin.device.namespace import (
    Array,
    Device,
    device_of,
    exact_products,
    given_back,
    is_device_array,
    named_device,
    to_numpy,
    worked_on,
)

__all__ = [
    "Array",
    "Device",
    "DeviceKernel",
    "DeviceRows",
    "block_on_device",
    "blocks_on_device",
    "can_be_shifted",
    "check_moved_on_device",
    "check_on_device",
    "device_of",
    "exact_products",
    "given_back",
    "is_device_array",
    "kernel_with",
    "moments",
    "named_device",
    "pulled_there",
    "to_numpy",
    "worked_on",
]
