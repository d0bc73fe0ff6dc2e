#include "ir/op.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/make.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

/// The `effect` column of a row. kSynchronize is kUpdateState plus the flag `synchronizes`.
enum class EffectColumn : uint8_t { kPure, kReadState, kUpdateState, kSynchronize, kSpecial };
constexpr Effect effect_in(EffectColumn column) {
  switch (column) {
    case EffectColumn::kPure:
      return Effect::kPure;
    case EffectColumn::kReadState:
      return Effect::kReadState;
    case EffectColumn::kSpecial:
      return Effect::kSpecial;
    default:
      return Effect::kUpdateState;
  }
}
/// The `cost` column (ir/intrinsics.def).
enum class Cost : uint8_t { kInstruction, kScalar, kFunction, kScalarFunction };
/// Widest element with vector code; 0: vectors are scalarized.
constexpr int vector_bits(Cost cost) { return cost == Cost::kInstruction || cost == Cost::kFunction ? 64 : 0; }

#define TW_ROW(name, arity, effect, typing, script, folds, cost, of_floats, of_integers) \
  {#name,                                                                                \
   arity,                                                                                \
   effect_in(EffectColumn::effect),                                                      \
   EffectColumn::effect == EffectColumn::kSynchronize,                                   \
   Typing::typing,                                                                       \
   ScriptType::script,                                                                   \
   Folds::folds,                                                                         \
   vector_bits(Cost::cost),                                                              \
   Cost::cost >= Cost::kFunction,                                                        \
   of_floats,                                                                            \
   of_integers},
constexpr IntrinsicRow kIntrinsicRows[] = {
#define FLOATS(name, arity, folds, cost, meaning) \
  TW_ROW(name, arity, kPure, kSameFloat, kDerived, folds, cost, true, false)
#define INTEGERS(name, arity, typing, script, folds, cost, meaning) \
  TW_ROW(name, arity, kPure, typing, script, folds, cost, false, true)
#define NUMBERS(name, arity, typing, folds, cost, of_floats, of_integers) \
  TW_ROW(name, arity, kPure, typing, kDerived, folds, cost, true, true)
#define X(name, arity, effect, typing, script, folds, cost) \
  TW_ROW(name, arity, effect, typing, script, folds, cost, false, false)
#include "ir/intrinsics.def"
#undef X
#undef TW_ROW
    {"", -1, Effect::kUpdateState, false, Typing::kExplicit, ScriptType::kNoFunction, Folds::kNever, 0, false, false,
     false},
};

struct OpTable {
  std::unordered_map<std::string_view, Intrinsic> by_name;
  std::vector<Ref<Op>> ops;
  std::unordered_map<const NodeBase*, Intrinsic> by_node;
  OpTable() {
    for (int i = 0; i < static_cast<int>(Intrinsic::kUnknown); ++i) {
      by_name.emplace(kIntrinsicRows[i].name, static_cast<Intrinsic>(i));
      ops.push_back(make<Op>({"tir." + std::string(kIntrinsicRows[i].name)}, 0));
      by_node.emplace(ops.back().get(), static_cast<Intrinsic>(i));
    }
  }
};
const OpTable& op_table() {
  static const OpTable* table = new OpTable;  // leaked: expressions may outlive static destruction
  return *table;
}

}  // namespace

const IntrinsicRow& intrinsic_row(Intrinsic intrinsic) { return kIntrinsicRows[static_cast<int>(intrinsic)]; }

Intrinsic find_intrinsic(std::string_view name) {
  if (name.starts_with("tir.")) name.remove_prefix(4);
  return find_value_or(op_table().by_name, name, Intrinsic::kUnknown);
}

std::string IntrinsicRow::wrong_count(size_t count) const {
  return "T." + std::string(name) + " takes " + std::to_string(arity) + " arguments, not " + std::to_string(count);
}

Intrinsic named_by(const Call& call) {
  if (auto* found = find_value(op_table().by_node, call.op.get())) return *found;
  const Op* op = call.op.as<Op>();
  return op ? find_intrinsic(op->name) : Intrinsic::kUnknown;
}

Intrinsic intrinsic_of(const Call& call) {
  const Intrinsic intrinsic = named_by(call);
  if (intrinsic == Intrinsic::kUnknown) return intrinsic;
  return intrinsic_row(intrinsic).takes(call.args.size()) ? intrinsic : Intrinsic::kUnknown;
}

Ref<Op> intrinsic_op(Intrinsic intrinsic) { return op_table().ops.at(static_cast<size_t>(intrinsic)); }

Ref<Op> op_named(std::string_view name) {
  Intrinsic intrinsic = find_intrinsic(name);
  return intrinsic == Intrinsic::kUnknown ? make<Op>({std::string(name)}) : intrinsic_op(intrinsic);
}

namespace {

/// Whether the expression is plain arithmetic, as most index expressions are. Checked without a visitor, which is
/// faster.
bool is_arithmetic(const Expr& e) {
  if (e.is<Var>() || e.is<IntImm>()) return true;
  const auto [a, b] = binary_operands(e);
  return a && is_arithmetic(*a) && is_arithmetic(*b);
}

}  // namespace

Effect effect_of(const Expr& e) {
  if (e.defined() && e.depth() <= kInlineDepth && is_arithmetic(e)) return Effect::kPure;
  Effect worst = Effect::kPure;
  auto at_least = [&](Effect effect) {
    if (effect == Effect::kSpecial) effect = Effect::kPure;
    worst = std::max(worst, effect);
  };
  visit(
      e,
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        at_least(Effect::kReadState);
        for (const Expr& index : load->indices) v(index);
        v(load->predicate);
      },
      [&](const Ref<Call>& call) { at_least(intrinsic_row(intrinsic_of(*call)).effect); });
  return worst;
}

}  // namespace tilewright
