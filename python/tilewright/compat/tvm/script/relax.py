"""tvm.script.relax: files of scripts import it beside what they use; Tilewright has no graph dialect yet.

Names can be mentioned, and each use of one raises.
"""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__getattr__ = absent("tvm.script.relax")
