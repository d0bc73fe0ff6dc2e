"""tvm.topi: operators as formulas, which files import beside what they use; none of them is here.

Names can be mentioned, and each use of one raises.
"""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__path__: list[str] = []
__getattr__ = absent("tvm.topi")
