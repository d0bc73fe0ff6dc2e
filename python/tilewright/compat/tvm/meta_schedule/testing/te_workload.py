"""tvm.meta_schedule.testing.te_workload: workloads as formulas."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.testing.formulas import batch_matmul_nkkm, conv2d_nhwc, matmul, matmul_relu

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.testing.te_workload")

__all__ = ["batch_matmul_nkkm", "conv2d_nhwc", "matmul", "matmul_relu"]
