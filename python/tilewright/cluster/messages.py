"""Arguments and results of tasks as bytes: maps of plain values, in MessagePack, which can hold no code."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.engine import engine


def pack(value: Any) -> bytes:
    """Encode a map, list, text, number or bytes."""
    engine()
    import msgpack

    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(packed: bytes) -> Any:
    """Decode the result of :func:`pack`.

    Raises:
        ValueError: the bytes are not a valid encoding.
    """
    engine()
    import msgpack

    return msgpack.unpackb(packed, strict_map_key=False)
