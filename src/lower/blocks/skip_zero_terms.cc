// Skip the terms of a sum that a condition makes zero, in blocks that are annotated so.
//
//   Before                                                      After
//   with T.block("C"):                                          with T.block("C"):
//     T.block_attr({"skip_zero_terms": 1})                        if vk % 2 == 0:
//     C[vi] = C[vi] + T.if_then_else(vk % 2 == 0,                   C[vi] = C[vi] + A[vk] * B[vk]
//                                    A[vk], 0.0) * B[vk]
//
// With {"skip_zero_terms_of_padding": 1}, the condition is that of the one block which makes an operand, where that is
// a value or zero:
//
//   P[u] = T.if_then_else(1 <= u, A[u - 1], 0.0)      C[vi] = C[vi] + P[vi + vk] * B[vk]  ->  if 1 <= vi + vk: ...
//
// Only those parts of the condition are tested that a whole tile shares: parts without axes of unrolled or vectorized
// loops.
//
// Zero times infinity or NaN is NaN, which is lost when the term is skipped. So this is done only in annotated blocks.
//
// Needs      reductions without init
// Ensures    annotated sums have no factor that a condition makes zero
// Placement  before blocks, and their annotations, are gone
#include <unordered_map>
#include <unordered_set>

#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "lower/passes.h"
#include "support/ranges.h"

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
    if (intrinsic_of(*call) != Intrinsic::k_if_then_else || !is_zero(call->arg(2))) return std::nullopt;
    return Term{call->arg(0), call->arg(1)};
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

/// Returns the addition of a store of the form e = e + x; null for other stores.
const Add* sum_of(const BufferStore& store) {
  const Add* sum = store.value.as<Add>();
  const BufferLoad* before = sum ? sum->a.as<BufferLoad>() : nullptr;
  if (!before || before->buffer != store.buffer || before->indices.size() != store.indices.size()) return nullptr;
  for (size_t i : indices_of(before->indices)) {
    if (!structural_equal(before->indices[i], store.indices[i])) return nullptr;
  }
  return sum;
}

Stmt without_zeros(const Ref<BufferStore>& store) {
  const Add* sum = sum_of(*store);
  auto term = sum ? conditional_term(sum->b) : std::nullopt;
  if (!term || !term->condition.dtype().is_scalar()) return store;
  Stmt added = make<BufferStore>({store->buffer, sum->a + term->value, store->indices, store->predicate}, store.span());
  return make<IfThenElse>({term->condition, added, {}}, store.span());
}

/// Elements that are zero where a condition on their indices does not hold: `axes` of the condition, by dimension.
struct Padding {
  std::vector<Ref<Var>> axes;
  Expr condition;
};
using Paddings = std::unordered_map<NodeRef, Padding>;

/// Returns the padding that a block stores; nothing if it may be read with other values of the variables in its
/// condition.
std::optional<Padding> padding_of(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store || block.init.defined() || store->predicate.defined()) return std::nullopt;
  auto value = conditional_term(store->value);
  if (!value || !value->condition.dtype().is_scalar() || effect_of(value->condition) != Effect::kPure) {
    return std::nullopt;
  }
  Padding padding{{}, value->condition};
  std::unordered_set<NodeRef> used;
  for (const Expr& index : store->indices) {
    if (!index.is<Var>() || !used.insert(index).second) return std::nullopt;
    padding.axes.push_back(index.borrow<Var>());
  }
  if (uses_any_var(value->condition, [&](const Ref<Var>& v) { return !used.contains(v); })) return std::nullopt;
  return padding;
}

/// Returns the paddings by buffer, for buffers that only one store writes.
Paddings paddings_of(const Stmt& body) {
  Paddings paddings;
  std::unordered_map<NodeRef, int> stores;
  std::unordered_set<NodeRef> elsewhere;  // memory that is reached otherwise
  visit(
      body,
      [&](const Ref<Block>& block) {
        for (const Ref<MatchBufferRegion>& view : block->match_buffers) elsewhere.insert(view->source->buffer->data);
        if (auto padding = padding_of(*block)) {
          paddings.emplace(block->body.as<BufferStore>()->buffer, std::move(*padding));
        }
      },
      [&](const Ref<BufferStore>& store) { ++stores[store->buffer]; },
      [&](const Ref<Call>& call) {
        for (const NodeRef& arg : call->args) {
          const BufferLoad* load = arg.as<BufferLoad>();
          elsewhere.insert(load && intrinsic_of(*call) == Intrinsic::k_address_of ? NodeRef(load->buffer->data) : arg);
        }
      });
  std::erase_if(paddings, [&](const auto& each) {
    const Buffer* buffer = each.first.template as<Buffer>();
    return stores[each.first] != 1 || elsewhere.contains(buffer->data);
  });
  return paddings;
}

/// Buffers that the factors of a product are loaded from.
void find_factors(const Expr& e, std::vector<const BufferLoad*>& found) {
  if (const BufferLoad* load = e.as<BufferLoad>()) {
    if (e.dtype().is_scalar() && !load->predicate.defined()) found.push_back(load);
  } else if (const Cast* cast = e.as<Cast>()) {
    find_factors(cast->value, found);
  } else if (const Mul* product = e.as<Mul>()) {
    find_factors(product->a, found);
    find_factors(product->b, found);
  }
}

class PaddingSkipper {
 public:
  explicit PaddingSkipper(Paddings paddings) : paddings_(std::move(paddings)) {}

  Stmt run(const Stmt& body) {
    return rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          bool together = loop->kind == ForKind::kUnrolled || loop->kind == ForKind::kVectorized;
          if (together) tile_.insert(loop->loop_var);
          Stmt result = r.descend(loop);
          if (together) tile_.erase(loop->loop_var);
          return result;
        },
        [&](const Ref<BlockRealize>& realize, Rewriter& r) -> Stmt {
          Ref<BlockRealize> inner = r.descend(realize);
          const BufferStore* store = inner->block->body.as<BufferStore>();
          if (!inner->block->annotations.has("skip_zero_terms_of_padding") || !store) return inner;
          const Add* sum = sum_of(*store);
          if (!sum) return inner;
          BlockRealize copy = *inner;
          Block block = *inner->block;
          block.body = under_conditions(*inner, sum->b, block.body);
          copy.block = make(std::move(block), inner->block.span());
          return make(std::move(copy), inner.span());
        });
  }

 private:
  /// One inside of the other, so that each can leave the loops that it does not depend on.
  Stmt under_conditions(const BlockRealize& realize, const Expr& term, Stmt body) const {
    std::vector<const BufferLoad*> factors;
    find_factors(term, factors);
    std::vector<Expr> conditions;
    for (const BufferLoad* load : factors) {
      auto* found = find_value(paddings_, load->buffer);
      if (!found) continue;
      VarMap map;
      for (size_t d : indices_of(load->indices)) map[found->axes[d]] = load->indices[d];
      for (const Expr& part : conjuncts(found->condition)) {
        Expr here = substitute(part, map);
        if (is_shared(realize, here)) conditions.push_back(std::move(here));
      }
    }
    for (const Expr& each : reversed(conditions)) body = make<IfThenElse>({each, body, {}}, body.span());
    return body;
  }

  /// Whether all iterations of unrolled and vectorized loops around have one answer.
  bool is_shared(const BlockRealize& realize, const Expr& condition) const {
    for (size_t i : indices_of(realize.iter_values)) {
      const Ref<Var>& axis = realize.block->iter_vars[i]->var;
      if (uses_var(condition, axis) && uses_any_of(realize.iter_values[i], tile_)) return false;
    }
    return true;
  }

  Paddings paddings_;
  std::unordered_set<NodeRef> tile_;  // variables of loops around that run together
};

}  // namespace

PassResult skip_zero_terms(const Ref<PrimFunc>& func, PassContext&) {
  const bool padding = any_node(
      func->body, [](const Ref<Block>& block) { return block->annotations.has("skip_zero_terms_of_padding"); });
  const Stmt body = padding ? PaddingSkipper(paddings_of(func->body)).run(func->body) : func->body;
  return with_body(func, rewrite(body, [](const Ref<Block>& block, Rewriter& r) -> Stmt {
                     Ref<Block> inner = r.descend(block);
                     if (!inner->annotations.has("skip_zero_terms")) return inner;
                     const BufferStore* store = inner->body.as<BufferStore>();
                     if (!store) return inner;
                     return with_body(inner, without_zeros(inner->body.borrow<BufferStore>()));
                   }));
}

}  // namespace tilewright::lower
