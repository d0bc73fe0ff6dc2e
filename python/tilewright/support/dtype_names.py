"""The names of data types."""

from __future__ import annotations

SCALARS = (
    *(f"{code}{bits}" for code in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
)

#: lanes of vector types that have names in scripts
LANES = (2, 4, 8, 16, 32, 64)

DTYPE_NAMES = (
    *SCALARS,
    *(f"{name}x{lanes}" for lanes in LANES for name in SCALARS),
    "bool",
    "boolean",
    "void",
)
