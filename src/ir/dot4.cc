#include "ir/dot4.h"

namespace tilewright {
namespace {

bool is_four_bytes(DataType type) {
  return type.is_integral() && !type.is_bool() && type.bits == 8 && type.lanes == 4 && !type.scalable;
}

bool is_word(DataType type) { return type.is_integral() && type.bits == 32 && type.is_scalar(); }

}  // namespace

std::optional<Dot4> Dot4::of(const Call& call) {
  const Intrinsic intrinsic = intrinsic_of(call);
  const bool has_words = intrinsic == Intrinsic::k_dp4a;
  if (!has_words && intrinsic != Intrinsic::k_call_pure_extern) return {};
  const size_t first = has_words ? 0 : 1;
  if (call.args.size() != first + 3) return {};
  if (!has_words) {
    const StringImm* name = call.args[0].as<StringImm>();
    if (!name || name->value != "__dp4a") return {};
  }
  for (size_t i = first; i < first + 3; ++i) {
    if (call.args[i].sort() != Sort::kExpr) return {};
  }
  Dot4 products{Expr(call.args[first]), Expr(call.args[first + 1]), DataType::int_(8), DataType::int_(8),
                Expr(call.args[first + 2])};
  if (!is_word(call.dtype) || products.sum.dtype() != call.dtype) return {};
  for (const Expr* operand : {&products.a, &products.b}) {
    if (has_words ? !is_word(operand->dtype()) : !is_four_bytes(operand->dtype())) return {};
  }
  if (!has_words) {
    products.left = products.a.dtype().element();
    products.right = products.b.dtype().element();
  }
  return products;
}

}  // namespace tilewright
