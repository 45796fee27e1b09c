"""What of the margin classifiers is there on a device."""

from __future__ import annotations

from typing import Any

from widemargin.device import Device, check_on_device
from widemargin.kernels import make_kernel


def check_machine_there(
    machine: Any, device: Device, engines: tuple[str, ...] = ("auto", "span")
) -> None:
    """Raise if a machine with these parameters is not fitted on a device."""
    wanted = {"engine": machine.engine, "loss": machine.loss}
    for name, known in (("engine", engines), ("loss", ("squared_hinge",))):
        if wanted[name] not in known:
            raise ValueError(
                f"{name}={wanted[name]!r} is not there on the device {str(device)!r} yet; use "
                f"{name}={known[-1]!r}, or device='cpu'."
            )
    if machine.engine == "exact" and not isinstance(machine.max_vectors, str):
        raise ValueError(
            f"max_vectors={machine.max_vectors!r} with engine='exact' is not there on the device "
            f"{str(device)!r} yet; use max_vectors='auto', engine='span', or device='cpu'."
        )
    kernels = getattr(machine, "kernels", None)
    for kernel in kernels if isinstance(kernels, list | tuple) else [machine.kernel]:
        check_on_device(make_kernel(kernel, kernel_params=machine.kernel_params), device)


def check_collection_there(machine: Any) -> None:
    """Raise if a machine of rows that come in parts is wanted on devices, and not in a span."""
    if machine.device not in (None, "cpu"):
        for name, known in (("engine", "span"), ("loss", "squared_hinge")):
            if getattr(machine, name) != known:
                raise ValueError(
                    f"{name}={getattr(machine, name)!r} with device={machine.device!r} needs rows "
                    "in one array, but X comes in parts, such as a Dask collection; use "
                    f"{name}={known!r}, device=None, or pass X.compute()."
                )
        kernel = make_kernel(machine.kernel, kernel_params=machine.kernel_params)
        check_on_device(kernel, machine.device)


def check_one_kernel(widths: Any, device: Device) -> None:
    """Raise if cells have a kernel each."""
    if widths is not None:
        raise ValueError(
            f"cells with a gamma and a C of their own are not there on the device {str(device)!r} "
            "yet; give centres or a size as cells=, or use device='cpu'."
        )
