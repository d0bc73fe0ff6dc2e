"""Arguments and results of tasks as bytes: maps of plain values, in MessagePack, which can hold no code."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.engine import engine


def pack(value: Any) -> bytes:
    """A map, list, text, number or bytes as bytes."""
    engine()
    import msgpack

    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(packed: bytes) -> Any:
    """What :func:`pack` was given.

    Raises:
        ValueError: these bytes are none of its.
    """
    engine()
    import msgpack

    return msgpack.unpackb(packed, strict_map_key=False)
