"""The types of the arrays that the rooms pass to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Numbers in one dimension.
Vector = NDArray[np.float64]
# Numbers in two dimensions.
Matrix = NDArray[np.float64]
# Numbers of either precision: kernel values, and scores made of them.
Values = NDArray[np.floating[Any]]
# Positions in an array.
IndexArray = NDArray[np.intp]
# The class of each row, as a position in the sorted classes.
Codes = NDArray[np.intp]
