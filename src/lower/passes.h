// All passes, in the order of pipeline.cc. Each is described at the top of its own file.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

FunctionPass bind_launches;
FunctionPass lower_prefetches;
FunctionPass lower_atomics;
FunctionPass plan_allocations;
FunctionPass check_races;
FunctionPass check_first_values;
FunctionPass lower_init_blocks;
FunctionPass skip_zero_terms;
FunctionPass inline_block_axes;
FunctionPass check_bounds;
FunctionPass compact_buffers;
FunctionPass lower_match_buffers;
FunctionPass bind_loop_bounds;
FunctionPass lower_auto_copies;
FunctionPass stage_shared_copies;
FunctionPass inject_software_pipelines;
FunctionPass lower_blocks;
FunctionPass vectorize_choices;
FunctionPass vectorize_plain_loops;
FunctionPass jam_reductions;
FunctionPass vectorize_reductions;
FunctionPass split_vector_loops;
FunctionPass partition_loops;
FunctionPass flatten_buffers;
FunctionPass inline_lets;
FunctionPass peel_edges;
FunctionPass simplify_indices;
FunctionPass vectorize_loops;
FunctionPass form_dot_products;
FunctionPass flip_once;
FunctionPass transpose_loads;
FunctionPass unroll_loops;
FunctionPass promote_registers;
FunctionPass plan_workspaces;
FunctionPass promote_accumulators;
FunctionPass carry_values;
FunctionPass lower_thread_reductions;
FunctionPass wait_between_blocks;
FunctionPass inject_virtual_threads;
FunctionPass check_private_memory;
FunctionPass unify_threads;
FunctionPass trim_private_memory;
FunctionPass lower_warp_memory;
FunctionPass lower_async_copies;
ModulePass split_host_device;
FunctionPass plan_shared_memory;
FunctionPass scalarize_vectors;
FunctionPass check_sizes;

}  // namespace tilewright::lower
