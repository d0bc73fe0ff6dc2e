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

namespace tilewright::lower {
namespace {

constexpr Stage kScheduled = Stage::kScheduled, kLowered = Stage::kLowered;
using enum TargetSet;

/// All passes, in order; each row has the reason for its position.
constexpr Row kRows[] = {
    {"bind_launches", bind_launches, kMachines, kScheduled, "later passes look for threads in loops"},
    {"plan_allocations", plan_allocations, kAll, kScheduled,
     "while blocks are whole: axes show which loops carry values in a buffer"},
    {"check_races", check_races, kMachines, kScheduled,
     "after allocation: buffers private to an iteration cannot race"},
    {"check_first_values", check_first_values, kMachines, kScheduled, "blocks still have their inits"},
    {"lower_prefetches", lower_prefetches, kAll, kScheduled,
     "allocation locations and race checks use the regions of hints; later passes know loads only"},
    {"lower_atomics", lower_atomics, kAll, kScheduled,
     "block analyses still recognize updates; the next pass would combine the steps of threads"},
    {"lower_thread_reductions", lower_thread_reductions, kGpu, kScheduled,
     "inits and axes still show the reduction and its initial value"},
    {"lower_init_blocks", lower_init_blocks, kAll, kScheduled,
     "the condition is stated in reduction axes, which inline_block_axes removes"},
    {"skip_zero_terms", skip_zero_terms, kAll, kScheduled,
     "blocks still have their annotations, and inits are no longer part of them"},
    {"inline_block_axes", inline_block_axes, kAll, kScheduled,
     "regions and predicates over loop variables alone can be compared"},
    {"check_bounds", check_bounds, kAll, kScheduled,
     "buffers still have the user's shapes, and no later pass analyzes the bodies of blocks"},
    {"compact_buffers", compact_buffers, kAll, kScheduled,
     "allocations are at their final locations, and blocks still have their predicates"},
    {"lower_match_buffers", lower_match_buffers, kAll, kScheduled,
     "after compact_buffers, which may have changed the sources of views"},
    {"bind_loop_bounds", bind_loop_bounds, kAll, kScheduled,
     "views are gone, so that stores name the buffers that they change; no loop is split yet"},
    {"lower_auto_copies", lower_auto_copies, kGpu, kScheduled, "regions are final; the next pass splits these copies"},
    {"stage_shared_copies", stage_shared_copies, kAll, kScheduled,
     "the next pass counts loads and stores as separate statements"},
    {"inject_software_pipelines", inject_software_pipelines, kAll, kScheduled,
     "buffers have their final shapes, and a block is one statement of the pipeline"},
    {"wait_between_blocks", wait_between_blocks, kGpu, kScheduled,
     "the last pass that sees which statements belong to one block"},
    {"lower_blocks", lower_blocks, kAll, kLowered, "after everything that needs to know what a block reads and writes"},
    {"flatten_buffers", flatten_buffers, kAll, kLowered, "buffers have their final shapes and locations"},
    {"inline_lets", inline_lets, kMachines, kLowered, "later passes look for clamped indices and conditions"},
    {"inject_virtual_threads", inject_virtual_threads, kGpu, kLowered, "loops are still where the schedule has them"},
    {"check_private_memory", check_private_memory, kGpu, kLowered,
     "virtual threads are serial loops now; the next pass gives each thread its own memory"},
    {"unify_threads", unify_threads, kGpu, kLowered, "variables of one axis become one before indices are simplified"},
    {"trim_private_memory", trim_private_memory, kGpu, kLowered,
     "each axis has one variable; later passes turn register indices into constants"},
    {"peel_edges", peel_edges, kCpu, kLowered, "indices of iterations that are not at an edge become simple"},
    {"simplify_indices", simplify_indices, kAll, kLowered, "before loops are copied: one index instead of many"},
    {"vectorize_choices", vectorize_choices, kCpu, kLowered,
     "indices are flat and simple, and no loop over rows is vectorized yet"},
    {"vectorize_plain_loops", vectorize_plain_loops, kCpu, kLowered, "strides of flat, simple indices can be read off"},
    {"jam_reductions", jam_reductions, kCpu, kLowered,
     "vectorized loops are known; the next pass reduces the remaining results one by one"},
    {"vectorize_reductions", vectorize_reductions, kCpu, kLowered,
     "vectorized loops are known, and not yet split into vectors"},
    {"split_vector_loops", split_vector_loops, kCpu, kLowered,
     "adds conditions, which the next pass removes from full vectors"},
    {"partition_loops", partition_loops, kAll, kLowered, "predicates of blocks are branches now, and not yet masks"},
    {"vectorize_loops", vectorize_loops, kAll, kLowered,
     "before unrolling, which then copies a vector statement instead of one per lane"},
    {"form_dot_products", form_dot_products, kCpu, kLowered, "vectors exist, and loops over them are not unrolled yet"},
    {"flip_once", flip_once, kCpu, kLowered,
     "after form_dot_products, which flips signs; before unrolling copies the loads"},
    {"transpose_loads", transpose_loads, kCpu, kLowered, "vectors exist, and loops over them are not unrolled yet"},
    {"lower_warp_memory", lower_warp_memory, kGpu, kLowered,
     "threads are unified; the next pass turns register indices into constants"},
    {"unroll_loops", unroll_loops, kAll, kLowered, "makes the indices of local buffers constants"},
    {"lower_async_copies", lower_async_copies, kGpu, kLowered,
     "loops are final; a copy uses its buffer until the wait, which plan_shared_memory has to see"},
    {"split_host_device", split_host_device, kGpu, kLowered, "loops are final: kernels can become functions"},
    {"plan_shared_memory", plan_shared_memory, kGpu, kLowered,
     "accesses are final, and each kernel has its own buffers"},
    {"scalarize_vectors", scalarize_vectors, kGpu, kLowered, "no later pass uses lanes"},
    {"promote_registers", promote_registers, kCpu, kLowered, "needs the constant indices that unroll_loops makes"},
    {"plan_workspaces", plan_workspaces, kCpu, kLowered, "buffers that are not in registers are in memory"},
    {"promote_accumulators", promote_accumulators, kCpu, kLowered,
     "after plan_workspaces: its registers share no memory with buffers"},
    {"carry_values", carry_values, kCpu, kLowered, "after plan_workspaces: its registers share no memory with buffers"},
    {"check_sizes", check_sizes, kMachines, kLowered,
     "last: other passes expect loops and buffers at the top of a function"},
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
      std::string reason = why_not_in_registers(*allocate, context.target);
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
