// Copy from global to shared memory in the background where the device can.
//
//   Before                                            After
//   with T.attr(0, "async_scope", 1):                 T.ptx_cp_async("float32", S.data, tx * 4, A.data,
//     S[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]                16 bytes at tx * 4)
//   T.ptx_commit_group()                              T.ptx_commit_group()
//
// A store of a load is copied so if both sides are 4, 8 or 16 bytes at a multiple of as many. Where a condition decides
// between a load and zero, the condition goes along. What else is in the scope, other widths and conversions say, stays
// an ordinary store.
//
// Needs      vector loops are vector operations; flat, simple indices
// Ensures    no "async_scope". Groups are closed and waited for only in functions that have such copies
// Placement  loops are as they stay; before memory is planned, as copies are alive until they are waited for
#include <cmath>

#include "arith/analyzer.h"
#include "ir/async_copy.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "lower/gpu/kernel.h"
#include "lower/passes.h"

namespace tilewright::lower {
namespace {

class Copies {
 public:
  explicit Copies(const PrimFunc& func) { assume_sizes(func, analyzer_); }

  Stmt run(const Stmt& body) {
    Stmt result = rewrite(
        body,
        [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
          analyzer_.bind(loop->loop_var, loop->min, loop->extent);
          return r.descend(loop);
        },
        [&](const Ref<AttrStmt>& attr, Rewriter& r) -> Stmt {
          if (attr->attr_key != "async_scope") return r.descend(attr);
          ++inside_;
          Stmt inner = r(attr->body);
          --inside_;
          return inner;
        },
        [&](const Ref<BufferStore>& store, Rewriter&) -> Stmt {
          auto copy = inside_ > 0 ? copy_of(*store) : std::nullopt;
          if (!copy) return store;
          found_ = true;
          return copy->call();
        });
    visit(result, [&](const Ref<Evaluate>& step) { found_ |= AsyncCopy::of(step->value).has_value(); });
    if (found_) return result;
    return rewrite(result, [](const Ref<Evaluate>& step, Rewriter&) -> Stmt {
      return is_async_step(step->value) ? nop() : Stmt(step);
    });
  }

 private:
  /// The first element that a contiguous access of `lanes` elements touches, if it is at a multiple of them.
  Expr start_of(const Expr& index, int lanes) {
    Expr start = index;
    if (lanes > 1) {
      const Ramp* ramp = index.as<Ramp>();
      if (!ramp || !is_const_int(ramp->stride, 1) || index.dtype().lanes != lanes) return {};
      start = ramp->base;
    }
    return start.dtype().is_scalar() ? start : Expr();
  }

  bool is_aligned(const Expr& place, int64_t elements) {
    const arith::ModularSet set = analyzer_.modular_set(place);
    return set.coeff % elements == 0 && set.base % elements == 0;
  }

  std::optional<AsyncCopy> copy_of(const BufferStore& store) {
    Expr value = store.value, condition;
    if (const Call* choice = value.as<Call>(); choice && intrinsic_of(*choice) == Intrinsic::k_if_then_else) {
      const Expr otherwise(choice->args[2]);
      const bool is_zero = is_const_int(otherwise, 0) || is_positive_zero(otherwise);
      condition = choice->arg(0);
      if (const Broadcast* same = condition.as<Broadcast>()) condition = same->value;
      if (!is_zero || !condition.dtype().is_scalar() || effect_of(condition) != Effect::kPure) return {};
      value = choice->arg(1);
    }
    const BufferLoad* load = value.as<BufferLoad>();
    if (!load || load->predicate.defined() || store.predicate.defined() || load->indices.size() != 1) return {};
    const DataType type = store.buffer->dtype;
    if (type != load->buffer->dtype || !type.is_scalar() || type.is_bool()) return {};
    if (!is_shared_scope(store.buffer->scope()) || !is_global_scope(load->buffer->scope())) return {};
    const int lanes = value.dtype().lanes;
    const int64_t bytes = int64_t{type.bytes()} * lanes;
    if (bytes != 4 && bytes != 8 && bytes != 16) return {};
    const Expr to = start_of(store.indices[0], lanes), from = start_of(load->indices[0], lanes);
    if (!to.defined() || !from.defined() || effect_of(from) != Effect::kPure || effect_of(to) != Effect::kPure)
      return {};
    // Arguments and workspaces begin at multiples of 16 bytes, but rows of a view may not.
    const Buffer& source = *load->buffer;
    if (!is_aligned(to, lanes) || !is_aligned(from, lanes) || source.data_alignment % bytes != 0) return {};
    if (source.elem_offset.defined() && !is_aligned(source.elem_offset, lanes)) return {};
    return AsyncCopy{store.buffer->data, source.data, type, to, from, bytes, condition};
  }

  static bool is_positive_zero(const Expr& e) {
    auto value = const_float(e);
    return value && *value == 0 && !std::signbit(*value);
  }

  arith::Analyzer analyzer_;
  int inside_ = 0;
  bool found_ = false;
};

}  // namespace

PassResult lower_async_copies(const Ref<PrimFunc>& func, PassContext&) {
  if (!any_node(func->body, [](const Ref<Evaluate>& step) { return is_async_step(step->value); })) return func;
  return with_body(func, Copies(*func).run(func->body));
}

}  // namespace tilewright::lower
