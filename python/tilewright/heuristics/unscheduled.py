"""Find functions without a schedule."""

from __future__ import annotations

from tilewright import _core, ir

#: the annotation that lets lowering skip terms
SKIPS_ZERO_TERMS = "skip_zero_terms"

#: prefixes of block annotations that control the schedule
_SCHEDULE_ANNOTATIONS = (
    *(
        "buffer_dim_align",
        "explicit_read_region",
        "explicit_write_region",
        "meta_schedule.",
        "pragma_",
        "schedule_rule",
    ),
    *("software_pipeline_", "tir.", "double_buffer", "auto_tensorize", SKIPS_ZERO_TERMS),
)


def is_unscheduled(function: ir.PrimFunc) -> bool:
    """Return whether a function has no schedule: its loops are serial and not annotated, its memory is global, and the
    annotations of its blocks say what they compute ("axis" of a softmax), not how."""
    open_so_far = True

    def look(node: object) -> None:
        nonlocal open_so_far
        if isinstance(node, ir.For):
            open_so_far &= node.kind == ir.ForKind.SERIAL and not node.annotations and node.thread_binding is None
        elif isinstance(node, ir.Block):
            open_so_far &= not any(key.startswith(_SCHEDULE_ANNOTATIONS) for key in node.annotations)
        elif isinstance(node, ir.Buffer):
            open_so_far &= node.scope() == "global"

    _core.visit(function.body, look)
    return open_so_far
