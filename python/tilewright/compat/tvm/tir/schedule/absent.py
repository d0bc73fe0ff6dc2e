"""Methods of TVM's schedules that Tilewright's do not have: asking for one says so."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.absent")

#: The primitives of v0.20; those that Tilewright has are left as they are.
PRIMITIVES = (
    *("add_unit_loop", "annotate", "annotate_buffer_access", "bind", "blockize", "cache_index", "cache_inplace"),
    *("cache_read", "cache_write", "can_decompose_padding", "compute_at", "compute_inline", "decompose_padding"),
    *("decompose_reduction", "enter_postproc", "fuse", "fuse_reduction_epilogue", "get_block", "get_child_blocks"),
    *("get_consumers", "get_loops", "get_output_blocks", "get_producers", "loop_partition", "merge", "pad_einsum"),
    *("parallel", "reindex", "reindex_cache_read", "reindex_cache_write", "remove_rv", "reorder"),
    *("reorder_block_iter_var", "reverse_compute_at", "reverse_compute_inline", "rfactor", "rolling_buffer"),
    *(
        "sample_categorical",
        "sample_compute_location",
        "sample_partitioned_tile",
        "sample_perfect_tile",
        "set_axis_separator",
    ),
    *("set_dtype", "set_scope", "split", "storage_align", "tensorize", "transform_block_layout", "transform_layout"),
    *("unannotate", "unroll", "unsafe_hide_buffer_access", "unsafe_set_dtype", "vectorize"),
)


def _absent(name: str) -> property:
    def refuse(self: Any) -> Any:
        raise AttributeError(f"Tilewright has no Schedule.{name} yet", name=name)

    return property(refuse)


def name_what_is_missing() -> None:
    """From now on."""
    for name in PRIMITIVES:
        if name not in vars(_core.Schedule):
            setattr(_core.Schedule, name, _absent(name))
