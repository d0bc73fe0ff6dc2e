// All passes, in the order of pipeline.cc. Each is described at the top of its own file.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

PassResult bind_launches(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_prefetches(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_atomics(const Ref<PrimFunc>& func, PassContext& context);
PassResult plan_allocations(const Ref<PrimFunc>& func, PassContext& context);
PassResult check_races(const Ref<PrimFunc>& func, PassContext& context);
PassResult check_first_values(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_init_blocks(const Ref<PrimFunc>& func, PassContext& context);
PassResult skip_zero_terms(const Ref<PrimFunc>& func, PassContext& context);
PassResult inline_block_axes(const Ref<PrimFunc>& func, PassContext& context);
PassResult check_bounds(const Ref<PrimFunc>& func, PassContext& context);
PassResult compact_buffers(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_match_buffers(const Ref<PrimFunc>& func, PassContext& context);
PassResult bind_loop_bounds(const Ref<PrimFunc>& func, PassContext& context);
PassResult stage_shared_copies(const Ref<PrimFunc>& func, PassContext& context);
PassResult inject_software_pipelines(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_blocks(const Ref<PrimFunc>& func, PassContext& context);
PassResult vectorize_choices(const Ref<PrimFunc>& func, PassContext& context);
PassResult vectorize_plain_loops(const Ref<PrimFunc>& func, PassContext& context);
PassResult vectorize_reductions(const Ref<PrimFunc>& func, PassContext& context);
PassResult split_vector_loops(const Ref<PrimFunc>& func, PassContext& context);
PassResult partition_loops(const Ref<PrimFunc>& func, PassContext& context);
PassResult flatten_buffers(const Ref<PrimFunc>& func, PassContext& context);
PassResult inline_lets(const Ref<PrimFunc>& func, PassContext& context);
PassResult peel_edges(const Ref<PrimFunc>& func, PassContext& context);
PassResult simplify_indices(const Ref<PrimFunc>& func, PassContext& context);
PassResult vectorize_loops(const Ref<PrimFunc>& func, PassContext& context);
PassResult form_dot_products(const Ref<PrimFunc>& func, PassContext& context);
PassResult flip_once(const Ref<PrimFunc>& func, PassContext& context);
PassResult transpose_loads(const Ref<PrimFunc>& func, PassContext& context);
PassResult unroll_loops(const Ref<PrimFunc>& func, PassContext& context);
PassResult promote_registers(const Ref<PrimFunc>& func, PassContext& context);
PassResult plan_workspaces(const Ref<PrimFunc>& func, PassContext& context);
PassResult promote_accumulators(const Ref<PrimFunc>& func, PassContext& context);
PassResult carry_values(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_thread_reductions(const Ref<PrimFunc>& func, PassContext& context);
PassResult wait_between_blocks(const Ref<PrimFunc>& func, PassContext& context);
PassResult inject_virtual_threads(const Ref<PrimFunc>& func, PassContext& context);
PassResult check_private_memory(const Ref<PrimFunc>& func, PassContext& context);
PassResult unify_threads(const Ref<PrimFunc>& func, PassContext& context);
PassResult trim_private_memory(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_warp_memory(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_async_copies(const Ref<PrimFunc>& func, PassContext& context);
Result<Ref<Module>> split_host_device(const Ref<Module>& module, PassContext& context);
PassResult plan_shared_memory(const Ref<PrimFunc>& func, PassContext& context);
PassResult scalarize_vectors(const Ref<PrimFunc>& func, PassContext& context);
PassResult check_sizes(const Ref<PrimFunc>& func, PassContext& context);

}  // namespace tilewright::lower
