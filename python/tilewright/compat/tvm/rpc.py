"""tvm.rpc: names that files mention; Tilewright measures on this machine."""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__getattr__ = absent("tvm.rpc")
