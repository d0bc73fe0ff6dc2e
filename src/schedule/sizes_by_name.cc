#include "schedule/sizes_by_name.h"

#include <optional>

#include "ir/sizes.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

bool takes_functions(const Instruction& instruction) {
  const std::vector<Param>& params = kind_info(instruction).params;
  return any_of(params, [](const Param& param) { return param.takes_map; });
}

/// The function of the first block or loop that the instruction takes.
std::optional<uint32_t> function_taken_by(const State& state, const Instruction& instruction) {
  std::optional<uint32_t> found;
  for_each_handle(instruction, [&](HandleKind kind, uint32_t number) {
    if (!found && kind != HandleKind::kExpr && number < state.num_handles()) found = state.handle(number).func;
  });
  return found;
}

}  // namespace

std::vector<Ref<Var>> sizes_of(const State& state, uint32_t number) {
  std::vector<Ref<Var>> sizes;
  const PrimFunc* func = state.function_at(number).as<PrimFunc>();
  if (!func) return sizes;
  for (const Ref<Var>& param : func->params) {
    const Ref<Buffer> buffer = func->buffer_of(param);
    if (!buffer.defined()) {
      sizes.push_back(param);
    } else {
      for_each_size(*buffer, [&](const Size& size) { sizes.push_back(size.var); });
    }
  }
  return sizes;
}

Result<Instruction> with_sizes_by_name(const State& state, Instruction instruction) {
  if (!takes_functions(instruction)) return instruction;
  const auto number = function_taken_by(state, instruction);
  if (!number || !state.function_at(*number).is<PrimFunc>()) return instruction;
  const std::vector<Ref<Var>> sizes = sizes_of(state, *number);
  VarMap renamed;
  std::optional<Diagnostic> missing;
  const auto look = [&](const Ref<Var>& v) {
    if (v.dtype().is_handle()) return;  // data of a buffer that a padding value loads; checked by transform_layout()
    if (renamed.contains(v) || is_contained(sizes, v)) return;
    auto same = find_if(
        sizes, [&](const Ref<Var>& size) { return size->name_hint == v->name_hint && size.dtype() == v.dtype(); });
    if (same != sizes.end()) {
      renamed.emplace(v, *same);
    } else if (!missing) {
      missing = schedule_error(
          "trace/size", "it names '" + v->name_hint + "', which is not a size of '" + state.shown_name(*number) + "'",
          "a function of indices may name its own parameters, scalar parameters of the program, and sizes of its "
          "buffers, which a trace finds again by their names");
    }
  };
  std::vector<Value> values = values_of(instruction);
  const auto is_function = [](const NodeRef* node) { return node && node->defined() && node->is<IndexMap>(); };
  for (const Value& value : values) {
    if (const NodeRef* node = value.as<NodeRef>(); is_function(node)) for_each_free_var(*node, look);
  }
  if (missing) return std::move(*missing);
  if (renamed.empty()) return instruction;
  std::vector<std::optional<Value>> given;
  for (Value& value : values) {
    if (const NodeRef* node = value.as<NodeRef>(); is_function(node)) {
      value = {NodeRef(rewrite(node->cast<IndexMap>(),
                               [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(renamed, v, v); }))};
    }
    given.emplace_back(std::move(value));
  }
  const KindInfo& info = kind_info(instruction);
  return info.build(info, given);
}

}  // namespace tilewright::schedule
