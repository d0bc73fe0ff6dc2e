#include "ir/op.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/make.h"
#include "ir/traverse.h"

namespace tilewright {
namespace {

constexpr IntrinsicRow kRows[] = {
#define X(name, arity, effect, typing) {#name, arity, Effect::effect, Typing::typing},
#include "ir/intrinsics.def"
#undef X
    {"", -1, Effect::kUpdateState, Typing::kExplicit},
};

struct OpTable {
  std::unordered_map<std::string_view, Intrinsic> by_name;
  std::vector<Ref<Op>> ops;
  std::unordered_map<const NodeBase*, Intrinsic> by_node;
  OpTable() {
    for (int i = 0; i < static_cast<int>(Intrinsic::kUnknown); ++i) {
      by_name.emplace(kRows[i].name, static_cast<Intrinsic>(i));
      ops.push_back(make<Op>({"tir." + std::string(kRows[i].name)}, 0));
      by_node.emplace(ops.back().get(), static_cast<Intrinsic>(i));
    }
  }
};
const OpTable& op_table() {
  static const OpTable* table = new OpTable;  // leaked: expressions may outlive static destruction
  return *table;
}

}  // namespace

const IntrinsicRow& intrinsic_row(Intrinsic intrinsic) { return kRows[static_cast<int>(intrinsic)]; }

Intrinsic find_intrinsic(std::string_view name) {
  if (name.starts_with("tir.")) name.remove_prefix(4);
  auto it = op_table().by_name.find(name);
  return it == op_table().by_name.end() ? Intrinsic::kUnknown : it->second;
}

Intrinsic intrinsic_of(const Call& call) {
  auto it = op_table().by_node.find(call.op.get());
  if (it != op_table().by_node.end()) return it->second;
  const Op* op = call.op.as<Op>();
  return op ? find_intrinsic(op->name) : Intrinsic::kUnknown;
}

Ref<Op> intrinsic_op(Intrinsic intrinsic) { return op_table().ops.at(static_cast<size_t>(intrinsic)); }

Ref<Op> op_named(std::string_view name) {
  Intrinsic intrinsic = find_intrinsic(name);
  return intrinsic == Intrinsic::kUnknown ? make<Op>({std::string(name)}) : intrinsic_op(intrinsic);
}

Effect effect_of(const Expr& e) {
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
