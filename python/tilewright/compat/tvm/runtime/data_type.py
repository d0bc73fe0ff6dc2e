"""Data types as text that knows its parts."""

from __future__ import annotations

import re

from tilewright import _core

_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4}


class DataType(str):
    """The name of a data type: "int32", "float16x4", "int8xvscalex16"."""

    def __new__(cls, dtype: object) -> DataType:
        """Return the type with this name."""
        name = str(_core.PrimType(str(dtype)).dtype)
        return super().__new__(cls, name)

    @property
    def bits(self) -> int:
        """Return the number of bits of one lane."""
        found = re.match(r"[a-z]+(\d+)", self)
        return {"bool": 1, "handle": 64}.get(str(self), int(found[1]) if found else 0)

    @property
    def lanes(self) -> int:
        """Return the number of elements of a vector; of a scalable one, the negative number per unit of its length."""
        parts = self.split("x")
        count = int(parts[-1]) if len(parts) > 1 and parts[-1].isdigit() else 1
        return -count if "vscale" in parts else count

    @property
    def type_code(self) -> int:
        """Return the DLPack code of the kind of number; bool is an unsigned integer."""
        kind = re.match(r"[a-z]+", self)
        return _CODES.get(kind[0] if kind else "", 1)

    def itemsize(self) -> int:
        """Return the size of the whole vector in bytes."""
        if self.lanes < 0:
            raise ValueError(f"the size of {self} depends on the machine")
        return -(-self.bits // 8) * self.lanes
