// Leave out the terms of a sum that a condition makes zero, in blocks that are annotated so.
//
//   Before                                                      After
//   with T.block("C"):                                          with T.block("C"):
//     T.block_attr({"skip_zero_terms": 1})                        if vk % 2 == 0:
//     C[vi] = C[vi] + T.if_then_else(vk % 2 == 0,                   C[vi] = C[vi] + A[vk] * B[vk]
//                                    A[vk], 0.0) * B[vk]
//
// Zero times an infinity or a NaN is a NaN, which such a sum gets no more: so it is done only where it is asked for.
//
// Needs      reductions without init
// Ensures    annotated sums have no factor that a condition makes zero
// Placement  before blocks, and their annotations, are gone
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

bool is_zero(const Expr& e) {
  if (const FloatImm* number = e.as<FloatImm>()) return number->value == 0;
  return is_const_int(e, 0);
}

/// A term that is `value` under a condition, else zero.
struct Term {
  Expr condition, value;
};

std::optional<Term> conditional_term(const Expr& e) {
  if (const Call* call = e.as<Call>()) {
    if (intrinsic_of(*call) != Intrinsic::k_if_then_else || !is_zero(Expr(call->args[2]))) return std::nullopt;
    return Term{Expr(call->args[0]), Expr(call->args[1])};
  }
  if (const Cast* cast = e.as<Cast>()) {
    auto inner = conditional_term(cast->value);
    if (!inner) return std::nullopt;
    return Term{inner->condition, make<Cast>({e.dtype(), inner->value})};
  }
  const Mul* product = e.as<Mul>();
  if (!product) return std::nullopt;
  auto left = conditional_term(product->a), right = conditional_term(product->b);
  if (!left && !right) return std::nullopt;
  Expr condition = left && right ? logical_and(left->condition, right->condition) : (left ? left : right)->condition;
  return Term{condition, (left ? left->value : product->a) * (right ? right->value : product->b)};
}

Stmt without_zeros(const Ref<BufferStore>& store) {
  const Add* sum = store->value.as<Add>();
  const BufferLoad* before = sum ? sum->a.as<BufferLoad>() : nullptr;
  if (!before || before->buffer != store->buffer || before->indices.size() != store->indices.size()) return store;
  for (size_t i = 0; i < before->indices.size(); ++i) {
    if (!structural_equal(before->indices[i], store->indices[i])) return store;
  }
  auto term = conditional_term(sum->b);
  if (!term || !term->condition.dtype().is_scalar()) return store;
  Stmt added = make<BufferStore>({store->buffer, sum->a + term->value, store->indices, store->predicate}, store.span());
  return make<IfThenElse>({term->condition, added, {}}, store.span());
}

}  // namespace

PassResult skip_zero_terms(const Ref<PrimFunc>& func, PassContext&) {
  return with_body(func, rewrite(func->body, [](const Ref<Block>& block, Rewriter& r) -> Stmt {
                     Ref<Block> inner = r.descend(block);
                     if (!inner->annotations.has("skip_zero_terms")) return inner;
                     const BufferStore* store = inner->body.as<BufferStore>();
                     if (!store) return inner;
                     Block copy = *inner;
                     copy.body = without_zeros(inner->body.borrow<BufferStore>());
                     return make<Block>(std::move(copy), block.span());
                   }));
}

}  // namespace tilewright::lower
