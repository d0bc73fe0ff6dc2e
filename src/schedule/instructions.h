// The instructions that a trace is made of. The aggregate of each lies in primitives/METHOD.h: its field names are the
// parameter names of the Python method, its field types say what a parameter takes.
#pragma once

#include <variant>

#include "schedule/primitives/add_unit_loop.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/annotate_buffer_access.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/blockize.h"
#include "schedule/primitives/cache_index.h"
#include "schedule/primitives/cache_inplace.h"
#include "schedule/primitives/cache_read.h"
#include "schedule/primitives/cache_write.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/compute_inline.h"
#include "schedule/primitives/decompose_padding.h"
#include "schedule/primitives/decompose_reduction.h"
#include "schedule/primitives/enter_postproc.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/fuse_reduction_epilogue.h"
#include "schedule/primitives/get_block.h"
#include "schedule/primitives/get_child_blocks.h"
#include "schedule/primitives/get_consumers.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/get_output_blocks.h"
#include "schedule/primitives/get_producers.h"
#include "schedule/primitives/loop_partition.h"
#include "schedule/primitives/merge.h"
#include "schedule/primitives/pad_einsum.h"
#include "schedule/primitives/parallel.h"
#include "schedule/primitives/prefetch_at.h"
#include "schedule/primitives/read_at.h"
#include "schedule/primitives/reindex.h"
#include "schedule/primitives/reindex_cache_read.h"
#include "schedule/primitives/reindex_cache_write.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/reorder_block_iter_var.h"
#include "schedule/primitives/reverse_compute_at.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "schedule/primitives/rfactor.h"
#include "schedule/primitives/rolling_buffer.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/sample_compute_location.h"
#include "schedule/primitives/sample_partitioned_tile.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/set_axis_separator.h"
#include "schedule/primitives/set_scope.h"
#include "schedule/primitives/split.h"
#include "schedule/primitives/storage_align.h"
#include "schedule/primitives/tensorize.h"
#include "schedule/primitives/transform_block_layout.h"
#include "schedule/primitives/transform_layout.h"
#include "schedule/primitives/unannotate.h"
#include "schedule/primitives/unroll.h"
#include "schedule/primitives/unsafe_hide_buffer_access.h"
#include "schedule/primitives/unsafe_set_dtype.h"
#include "schedule/primitives/vectorize.h"
#include "schedule/primitives/write_at.h"

namespace tilewright::schedule {

namespace detail {
template <class First, class... Kinds>
struct VariantOf {
  using type = std::variant<Kinds...>;
};
}  // namespace detail

using InstructionVariant = detail::VariantOf<void
#define X(kind, method) , kind
#include "schedule/instructions.def"
#undef X
                                             >::type;
/// One of the kinds. A class of its own, so that the names of symbols stay short.
struct Instruction : InstructionVariant {
  using InstructionVariant::InstructionVariant;
  using InstructionVariant::operator=;
};

}  // namespace tilewright::schedule
