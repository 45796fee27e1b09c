"""Rows as pictures: grey PNG files inside the page."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["picture", "png"]


def png(grey: NDArray[np.uint8]) -> bytes:
    r"""Return a PNG file of grey values of shape (height, width), or colours of (..., 3).

    Examples
    --------
    >>> import numpy as np
    >>> png(np.zeros((2, 2), dtype=np.uint8))[:4]
    b'\x89PNG'
    """
    height, width = grey.shape[:2]
    kind = 0 if grey.ndim == 2 else 2
    # Each line begins with the number of its filter: none.
    lines = b"".join(b"\0" + np.ascontiguousarray(line).tobytes() for line in grey)

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )


def picture(row: NDArray[np.float64], shape: tuple[int, ...], said: str) -> str:
    """Return an ``<img>`` of a row; dark is large, each picture from its least to its most."""
    values = np.asarray(row, dtype=np.float64).reshape(shape)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    level = np.nan_to_num((values - low) / (high - low if high > low else 1.0))
    grey = np.rint(255 * (level if values.ndim == 3 else 1.0 - level)).astype(np.uint8)
    data = b64encode(png(grey)).decode()
    return f'<img alt="{escape(said)}" src="data:image/png;base64,{data}">'
