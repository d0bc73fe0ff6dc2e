#include "lower/pipeline.h"

#include <chrono>
#include <set>

#include "analysis/verify_accesses.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "support/interruption.h"

namespace tilewright::lower {
namespace {

struct Pass {
  std::string_view name;
  PassResult (*run)(const Ref<PrimFunc>&, PassContext&);
  std::string_view reason;
};

/// The one list.
constexpr Pass kPasses[] = {
    {"lower_prefetches", lower_prefetches, "first: passes know loads, not what a hint speaks of"},
    {"plan_allocations", plan_allocations, "while blocks are whole: axes tell which loops carry values in a buffer"},
    {"lower_init_blocks", lower_init_blocks,
     "the condition is stated in reduction axes, which the next pass takes away"},
    {"inline_block_axes", inline_block_axes, "regions and predicates can be compared once they speak of loops only"},
    {"check_bounds", check_bounds,
     "buffers still have the user's shapes, and nothing judges blocks by their bodies any more"},
    {"compact_buffers", compact_buffers, "buffers are in their final places, and predicates still at their blocks"},
    {"lower_match_buffers", lower_match_buffers, "views follow their sources, which may just have moved"},
    {"lower_blocks", lower_blocks, "after everything that needs to know what a block reads and writes"},
    {"flatten_buffers", flatten_buffers, "buffers have their final shapes and places"},
    {"simplify_indices", simplify_indices, "before loops are copied: one index instead of many"},
    {"vectorize_plain_loops", vectorize_plain_loops, "strides of flat, simple indices can be read off"},
    {"split_vector_loops", split_vector_loops, "makes conditions, for the next pass to take away from full vectors"},
    {"partition_loops", partition_loops, "predicates of blocks are conditions now, and not yet masks"},
    {"vectorize_loops", vectorize_loops, "before unrolling: what is inside is copied once instead of once a lane"},
    {"unroll_loops", unroll_loops, "makes the indices of local buffers constants"},
    {"promote_registers", promote_registers, "needs those constants"},
    {"plan_workspaces", plan_workspaces, "what is left is memory"},
};

}  // namespace

Ref<PrimFunc> with_body(const Ref<PrimFunc>& func, Stmt body) {
  if (body == func->body) return func;
  PrimFunc copy = *func;
  copy.body = std::move(body);
  return make<PrimFunc>(std::move(copy), func.span());
}

void assume_sizes(const PrimFunc& func, arith::Analyzer& analyzer) {
  for (const auto& [param, buffer] : func.buffer_map) {
    for (const Expr& extent : buffer->shape) {
      if (extent.is<Var>()) analyzer.assume(ge(extent, zero(extent.dtype())));
    }
  }
}

bool is_local(const Allocate& allocate) {
  const PointerType* type = allocate.buffer_var->type_annotation.as<PointerType>();
  return type && type->storage_scope.starts_with("local");
}

std::string why_no_registers(const Allocate& allocate, const Target& target) {
  auto size = allocate.extents.size() == 1 ? const_int(allocate.extents[0]) : std::nullopt;
  if (!size) return "its size is not a constant";
  int64_t bytes = *size * allocate.dtype.bytes() * allocate.dtype.lanes;
  if (bytes <= register_bytes(target)) return "";
  return "its " + std::to_string(bytes) + " bytes are more than the " + std::to_string(register_bytes(target)) +
         " of all vector registers";
}

Status check_pass(const Ref<Module>& module, std::string_view pass, Stage stage) {
  Status status = verify(module, stage);
  if (status.ok() && stage == Stage::kScheduled) status = analysis::verify_accesses(module);
  if (status.ok()) return Ok{};
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
      if (!reason.empty()) failed = Promotion{"", allocate->buffer_var->name_hint, false, 0, reason};
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

Result<Ref<Module>> run_pass(const Pass& pass, const Ref<Module>& module, const std::set<std::string>& called,
                             PassContext& context) {
  Ref<Module> current = module;
  for (const auto& [name, func] : module->functions) {
    Ref<PrimFunc> prim = func.cast<PrimFunc>();
    if (!prim.defined()) continue;
    context.function = name;
    context.called = called.count(name) != 0;
    TW_TRY(after, pass.run(prim, context));
    if (after != prim) current = with_function(current, name, after);
  }
  return current;
}

}  // namespace

Result<Ref<Module>> lower(const Ref<Module>& module, const Target& target, const LowerOptions& options,
                          LowerReport* report) {
  bool known = options.stop_after.empty();
  for (const Pass& pass : kPasses) known |= pass.name == options.stop_after;
  if (!known) {
    std::string names;
    for (const Pass& pass : kPasses) names += (names.empty() ? "" : ", ") + std::string(pass.name);
    return argument_error("lower/unknown-pass", "there is no pass '" + options.stop_after + "'", "passes: " + names);
  }
  TW_RETURN_IF_ERROR(verify(module, Stage::kScheduled));
  TW_RETURN_IF_ERROR(analysis::verify_accesses(module));
  Ref<Module> current = module;
  if (options.observe) options.observe("input", current);
  PassContext context{target, {}, false, options.check_bounds, {}, {}};
  Stage stage = Stage::kScheduled;
  std::set<std::string> called = called_functions(module);
  for (const Pass& pass : kPasses) {
    if (interrupted()) return interruption_error();
    auto start = std::chrono::steady_clock::now();
    TW_TRY(after, run_pass(pass, current, called, context));
    current = after;
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (report) report->times.push_back({pass.name, elapsed.count()});
    if (pass.run == lower_blocks) stage = Stage::kLowered;
    if (options.require_registers) TW_RETURN_IF_ERROR(check_registers(current, context, pass.run == flatten_buffers));
    if (options.verify) TW_RETURN_IF_ERROR(check_pass(current, pass.name, stage));
    if (options.observe) options.observe(pass.name, current);
    if (pass.name == options.stop_after) break;
  }
  if (report) {
    report->promotions = std::move(context.promotions);
    report->notes = std::move(context.notes);
  }
  return current;
}

std::vector<PassInfo> list_passes() {
  std::vector<PassInfo> list;
  for (const Pass& pass : kPasses) list.push_back({pass.name, pass.reason});
  return list;
}

}  // namespace tilewright::lower
