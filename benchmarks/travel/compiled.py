"""C source of a model, made into a library by gcc and called from here."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

GCC = shutil.which("gcc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
# What a program for a batch of rows would add.
LOOP = """
void model_many(const {row} *x, int n, int n_features, {value} *out, int n_values);
void model_many(const {row} *x, int n, int n_features, {value} *out, int n_values)
{{
    int i;
    for (i = 0; i < n; i++) model_decision(x + i * n_features, out + i * n_values);
}}
"""


class Compiled:
    """Source of a model called `model`, as a library whose functions are called."""

    def __init__(self, source: str, folder: Path, *, looped: bool = False) -> None:
        defined = dict(re.findall(r"#define MODEL_(\w+) (\S+)", source))
        self.width = int(defined["VALUES"])
        self.unit, self.one = (float(defined.get(each, 1.0)) for each in ("UNIT", "ONE"))
        self.fixed = "UNIT" in defined
        names = ("short", "int") if self.fixed else ("float", "float")
        loop = LOOP.format(row=names[0], value=names[1]) if looped else ""
        (folder / "model.c").write_text(source + loop)
        self.object, library = folder / "model.o", folder / "model.so"
        build = [GCC, *STRICT, "-Os", "-fPIC"]
        subprocess.run([*build, "-c", "model.c", "-o", "model.o"], cwd=folder, check=True)
        subprocess.run([GCC, "-shared", "model.o", "-o", library, "-lm"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(library))
        self.source = source

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Rows as the source wants them."""
        kind = np.int16 if self.fixed else np.float32
        return np.ascontiguousarray(np.rint(X * self.unit) if self.fixed else X, dtype=kind)

    def values(self, X: np.ndarray) -> np.ndarray:
        """Decision values of rows, one call each."""
        X = self.rows(X)
        out = np.empty((len(X), self.width), dtype=np.int32 if self.fixed else np.float32)
        for x, row in zip(X, out, strict=True):
            self.library.model_decision(
                x.ctypes.data_as(ctypes.c_void_p), row.ctypes.data_as(ctypes.c_void_p)
            )
        return out / self.one

    def many(self, rows: np.ndarray) -> np.ndarray:
        """Decision values of rows as the source wants them, one call for all, in its numbers."""
        out = np.empty((len(rows), self.width), dtype=np.int32 if self.fixed else np.float32)
        where = (each.ctypes.data_as(ctypes.c_void_p) for each in (rows, out))
        x, values = where
        self.library.model_many(x, len(rows), rows.shape[1], values, self.width)
        return out

    def places(self, X: np.ndarray) -> np.ndarray:
        """Numbers of classes."""
        rows = self.rows(X)
        return np.array(
            [self.library.model_predict(x.ctypes.data_as(ctypes.c_void_p)) for x in rows]
        )

    def sizes(self) -> dict[str, int]:
        """Bytes of code, of constants, and of what changes."""
        told = subprocess.run(
            ["size", "-A", self.object], capture_output=True, text=True, check=True
        ).stdout
        found = {"code": 0, "constants": 0, "memory": 0}
        for section, size in re.findall(r"^(\.\S+)\s+(\d+)", told, flags=re.MULTILINE):
            if section.startswith(".text"):
                found["code"] += int(size)
            elif section.startswith((".rodata", ".data.rel.ro")):
                found["constants"] += int(size)
            elif section.startswith((".data", ".bss")):
                found["memory"] += int(size)
        return found
