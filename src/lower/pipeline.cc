#include "lower/pipeline.h"

#include <chrono>
#include <set>

#include "analysis/skipped_init.h"
#include "analysis/verify_accesses.h"
#include "arith/buffer_values.h"
#include "ir/build.h"
#include "ir/strides.h"
#include "ir/traverse.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "sparse/lower_iterations.h"
#include "support/interruption.h"
#include "support/raised_codes.h"
#include "target/memory_scope.h"

namespace tilewright::lower {
namespace {

constexpr Stage kScheduled = Stage::kScheduled, kLowered = Stage::kLowered;
using enum TargetSet;

/// The one list.
constexpr Row kRows[] = {
    {"bind_launches", bind_launches, kMachines, kScheduled, "the passes behind look for threads in loops"},
    {"plan_allocations", plan_allocations, kAll, kScheduled,
     "while blocks are whole: axes show which loops carry values in a buffer"},
    {"check_races", check_races, kMachines, kScheduled, "what each iteration has for itself is not a race"},
    {"check_first_values", check_first_values, kMachines, kScheduled, "blocks still have their inits"},
    {"lower_prefetches", lower_prefetches, kAll, kScheduled,
     "allocation locations and races go by what a hint names; the passes behind know loads only"},
    {"lower_atomics", lower_atomics, kAll, kScheduled,
     "facts about blocks know their updates; the next pass would put the steps of threads together"},
    {"lower_thread_reductions", lower_thread_reductions, kGpu, kScheduled,
     "inits and axes say what is reduced, and from what"},
    {"lower_init_blocks", lower_init_blocks, kAll, kScheduled,
     "the condition is stated in reduction axes, which the next pass takes away"},
    {"skip_zero_terms", skip_zero_terms, kAll, kScheduled,
     "blocks still have their annotations, and inits are no longer part of them"},
    {"inline_block_axes", inline_block_axes, kAll, kScheduled,
     "regions and predicates can be compared once they speak of loops only"},
    {"check_bounds", check_bounds, kAll, kScheduled,
     "buffers still have the user's shapes, and nothing judges blocks by their bodies any more"},
    {"compact_buffers", compact_buffers, kAll, kScheduled,
     "buffers are in their final places, and predicates still at their blocks"},
    {"lower_match_buffers", lower_match_buffers, kAll, kScheduled,
     "views follow their sources, which may just have moved"},
    {"bind_loop_bounds", bind_loop_bounds, kAll, kScheduled,
     "views are gone, so that buffers say what is changed; no loop is cut yet"},
    {"lower_auto_copies", lower_auto_copies, kGpu, kScheduled,
     "regions do not change any more; the next pass takes the copies apart"},
    {"stage_shared_copies", stage_shared_copies, kAll, kScheduled,
     "the next pass counts loads and stores by themselves"},
    {"inject_software_pipelines", inject_software_pipelines, kAll, kScheduled,
     "buffers have their final shapes, and blocks say what belongs to one statement"},
    {"wait_between_blocks", wait_between_blocks, kGpu, kScheduled,
     "the last to see which statements belong to one block"},
    {"lower_blocks", lower_blocks, kAll, kLowered, "after everything that needs to know what a block reads and writes"},
    {"flatten_buffers", flatten_buffers, kAll, kLowered, "buffers have their final shapes and places"},
    {"inline_lets", inline_lets, kMachines, kLowered, "the passes behind look for clamped indices and conditions"},
    {"inject_virtual_threads", inject_virtual_threads, kGpu, kLowered, "loops are still where the schedule has them"},
    {"check_private_memory", check_private_memory, kGpu, kLowered,
     "virtual threads run one after another; the next pass gives memory to each thread"},
    {"unify_threads", unify_threads, kGpu, kLowered, "variables of one axis become one before indices are simplified"},
    {"trim_private_memory", trim_private_memory, kGpu, kLowered,
     "one variable numbers the threads of an axis; places of registers become constants further on"},
    {"peel_edges", peel_edges, kCpu, kLowered, "indices between the edges become simple ones"},
    {"simplify_indices", simplify_indices, kAll, kLowered, "before loops are copied: one index instead of many"},
    {"vectorize_choices", vectorize_choices, kCpu, kLowered,
     "indices are flat and simple, and nothing has vectorized across rows"},
    {"vectorize_plain_loops", vectorize_plain_loops, kCpu, kLowered, "strides of flat, simple indices can be read off"},
    {"jam_reductions", jam_reductions, kCpu, kLowered,
     "what is vectorized is known; the next pass reduces what is left, one result after another"},
    {"vectorize_reductions", vectorize_reductions, kCpu, kLowered,
     "what is vectorized is known, and not yet cut into vectors"},
    {"split_vector_loops", split_vector_loops, kCpu, kLowered,
     "makes conditions, for the next pass to take away from full vectors"},
    {"partition_loops", partition_loops, kAll, kLowered, "predicates of blocks are conditions now, and not yet masks"},
    {"vectorize_loops", vectorize_loops, kAll, kLowered,
     "before unrolling: what is inside is copied once instead of once a lane"},
    {"form_dot_products", form_dot_products, kCpu, kLowered, "vectors are made, and loops over them still there"},
    {"flip_once", flip_once, kCpu, kLowered, "after what flips, before loads are copied"},
    {"transpose_loads", transpose_loads, kCpu, kLowered, "vectors are made, and loops over them still there"},
    {"lower_warp_memory", lower_warp_memory, kGpu, kLowered,
     "threads are unified; the next pass makes the places of registers constants"},
    {"unroll_loops", unroll_loops, kAll, kLowered, "makes the indices of local buffers constants"},
    {"lower_async_copies", lower_async_copies, kGpu, kLowered,
     "loops are as they stay; copies are alive until they are waited for, which the plan of memory has to see"},
    {"split_host_device", split_host_device, kGpu, kLowered, "loops are as they stay: kernels can be taken out"},
    {"plan_shared_memory", plan_shared_memory, kGpu, kLowered,
     "accesses are as they stay, and each kernel has its own"},
    {"scalarize_vectors", scalarize_vectors, kGpu, kLowered, "nothing behind looks at lanes"},
    {"promote_registers", promote_registers, kCpu, kLowered, "needs those constants"},
    {"plan_workspaces", plan_workspaces, kCpu, kLowered, "what is left is memory"},
    {"promote_accumulators", promote_accumulators, kCpu, kLowered, "its registers share no memory with what is placed"},
    {"carry_values", carry_values, kCpu, kLowered, "its registers share no memory with what is placed"},
    {"check_sizes", check_sizes, kMachines, kLowered, "passes look for loops and buffers at the top of a function"},
};

constexpr bool is_handled(Sort sort, Kind kind) { return sort != Sort::kFunc || kind == Kind::kPrimFunc; }
#define X(name, sort, ...) \
  static_assert(is_handled(Sort::k##sort, Kind::k##name), "no row lowers functions of kind " #name);
#include "ir/kinds.def"
#undef X

}  // namespace

void assume_sizes(const PrimFunc& func, arith::Analyzer& analyzer) {
  for (const auto& [param, buffer] : func.buffer_map) {
    for (const Expr& extent : buffer->shape) {
      if (!const_int(extent)) analyzer.assume(ge(extent, 0));
    }
  }
  // Declarations of the root block hold for the whole function.
  const BlockRealize* root = func.body.as<BlockRealize>();
  if (!root || !is_true(root->predicate)) return;
  for (const BufferDomain& domain : buffer_domains(*root->block)) arith::assume(analyzer, domain);
}

bool is_local(const Buffer& buffer) { return memory_scope(buffer.scope()).on_cpu == Storage::kRegisters; }

bool is_local(const Allocate& allocate) {
  const PointerType* type = allocate.buffer_var->type_annotation.as<PointerType>();
  return type && memory_scope(type->storage_scope).on_cpu == Storage::kRegisters;
}

std::string why_no_registers(const Allocate& allocate, const Target& target) {
  auto size = allocate.extents.size() == 1 ? const_int(allocate.extents[0]) : std::nullopt;
  if (!size) return "its size is not a constant";
  int64_t bytes = *size * allocate.dtype.bytes() * allocate.dtype.lanes;
  if (bytes <= register_bytes(target)) return "";
  return "its " + std::to_string(bytes) + " bytes are more than the " + std::to_string(register_bytes(target)) +
         " of all vector registers";
}

Status check_pass(const Ref<Module>& module, std::string_view pass, Stage stage, bool accesses) {
  Status status = verify(module, stage);
  if (status.ok() && accesses && stage == Stage::kScheduled) status = analysis::verify_accesses(module);
  // A pass may make provable what was not before, when an index contained the offset of a view.
  if (status.ok() || status.error().code == "verify/bounds") return status;
  return internal_error("lower/broken", "pass " + std::string(pass) + " broke a program: " + status.error().message +
                                            " [" + status.error().code + "]");
}

namespace {

/// The first buffer that is meant for registers and cannot live there.
Status check_registers(const Ref<Module>& module, const PassContext& context, bool flat) {
  std::optional<Promotion> failed;
  for (const Promotion& promotion : context.promotions) {
    if (!promotion.promoted && !failed) failed = promotion;
  }
  if (flat) {
    visit(module, [&](const Ref<Allocate>& allocate) {
      if (failed || !is_local(*allocate)) return;
      std::string reason = why_no_registers(*allocate, context.target);
      if (!reason.empty()) failed = Promotion{"", allocate->buffer_var->name_hint, false, 0, reason, allocate.span()};
    });
  }
  if (!failed) return Ok{};
  return schedule_error(
      "lower/not-in-registers",
      "buffer '" + failed->buffer + "' has scope \"local\", but cannot live in registers: " + failed->reason,
      "use smaller tiles, and unroll or vectorize the loops that index it");
}

/// The functions that others of the module call.
std::set<std::string> called_functions(const Ref<Module>& module) {
  std::set<std::string> names;
  visit(module, [&](const Ref<Call>& call) {
    if (const GlobalVar* callee = call->op.as<GlobalVar>()) names.insert(callee->name_hint);
  });
  return names;
}

Result<Ref<Module>> run_row(const Row& row, const Ref<Module>& module, PassContext& context) {
  if (auto run = std::get_if<ModulePass*>(&row.run)) {
    context.function.clear();
    return (*run)(module, context);
  }
  std::set<std::string> called = called_functions(module);
  Ref<Module> current = module;
  for (const auto& [name, func] : module->functions) {
    context.function = name;
    context.called = called.count(name) != 0;
    const auto& before = func.borrow<PrimFunc>();
    TW_TRY(after, std::get<FunctionPass*>(row.run)(before, context));
    if (after != before) current = with_function(current, name, after);
  }
  return current;
}

/// Names that passes had in earlier versions.
constexpr std::pair<std::string_view, std::string_view> kEarlierNames[] = {
    {"add_in_groups", "form_dot_products"},
    {"turn_loads", "transpose_loads"},
};

std::string_view present_name(std::string_view name) {
  for (const auto& [earlier, present] : kEarlierNames) {
    if (name == earlier) return present;
  }
  return name;
}

Diagnostic unknown_pass(std::span<const Row> rows, std::string_view name) {
  std::string names;
  for (const Row& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return argument_error("lower/unknown-pass", "there is no pass '" + std::string(name) + "'", "passes: " + names);
}

}  // namespace

Result<Ref<Module>> lower_by(std::span<const Row> rows, const Ref<Module>& written, const Target& target,
                             const LowerOptions& options, LowerReport* report) {
  const std::string_view stop_after = present_name(options.stop_after);
  bool known = stop_after.empty();
  for (const Row& row : rows) known |= row.name == stop_after;
  if (!known) return unknown_pass(rows, stop_after);
  TW_RETURN_IF_ERROR(target.check_has_code());
  TW_TRY(module, sparse::lower_iterations(written));
  TW_RETURN_IF_ERROR(verify(module, Stage::kScheduled));
  if (options.check_accesses) {
    TW_RETURN_IF_ERROR(analysis::verify_accesses(module));
    TW_RETURN_IF_ERROR(analysis::verify_inits(module));
  }
  Ref<Module> current = with_all_strides(module);
  if (options.observe) options.observe("input", current);
  PassContext context{target, {}, false, options.check_bounds, options.check_races, {}, {}, {}};
  for (const auto& [name, func] : current->functions) {
    if (const PrimFunc* program = func.as<PrimFunc>()) context.size_limits[name] = analysis::size_limits(*program);
  }
  visit(current, [&](const Ref<For>& loop) {
    if (loop->kind == ForKind::kVectorized) {
      context.vectorized_loops.emplace(loop->loop_var->name_hint, loop.span());
    }
  });
  Stage checked = Stage::kScheduled;
  for (const Row& row : rows) {
    if (interrupted()) return interruption_error();
    if (target.is_in(row.targets)) {
      auto start = std::chrono::steady_clock::now();
      TW_TRY(after, run_row(row, current, context));
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      const bool is_new = after != current || row.leaves != checked;
      current = after;
      if (report) report->times.push_back({row.name, elapsed.count()});
      bool flat = row.name == "flatten_buffers";
      if (options.require_registers) TW_RETURN_IF_ERROR(check_registers(current, context, flat));
      if (options.verify && is_new) {
        TW_RETURN_IF_ERROR(check_pass(current, row.name, row.leaves, options.check_accesses));
      }
      checked = row.leaves;
      if (options.observe) options.observe(row.name, current);
    }
    if (row.name == stop_after) break;
  }
  if (report) {
    report->promotions = std::move(context.promotions);
    for (const Note& note : context.notes) note_raised(note.code);
    report->notes = std::move(context.notes);
  }
  return current;
}

Result<Ref<Module>> lower(const Ref<Module>& module, const Target& target, const LowerOptions& options,
                          LowerReport* report) {
  return lower_by(kRows, module, target, options, report);
}

Result<Ref<Module>> run_pass(std::string_view name, const Ref<Module>& module, const Target& target) {
  Stage stage = kScheduled;  // stage that the pass begins at
  for (const Row& row : rows()) {
    if (row.name != present_name(name)) {
      stage = row.leaves;
      continue;
    }
    TW_RETURN_IF_ERROR(verify(module, stage));
    PassContext context{target, {}, false, false, true, {}, {}, {}};
    TW_TRY(after, run_row(row, module, context));
    TW_RETURN_IF_ERROR(check_pass(after, row.name, row.leaves));
    return after;
  }
  return unknown_pass(rows(), name);
}

std::span<const Row> rows() { return kRows; }

}  // namespace tilewright::lower
