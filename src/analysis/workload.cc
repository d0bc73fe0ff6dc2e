#include "analysis/workload.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

class Counter {
 public:
  explicit Counter(Workload& result) : result_(result) {}

  void run(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop, Visitor& v) { enter_loop(loop, v); },
        [&](const Ref<BlockRealize>& realize, Visitor& v) { enter_block(realize, v); },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          double flops = result_.flops, ints = result_.int_ops;
          v(branch->then_case);
          double then_flops = result_.flops - flops, then_ints = result_.int_ops - ints;
          result_.flops = flops, result_.int_ops = ints;
          v(branch->else_case);  // the dearer branch counts
          result_.flops = flops + std::max(then_flops, result_.flops - flops);
          result_.int_ops = ints + std::max(then_ints, result_.int_ops - ints);
        },
        [&](const Ref<While>& loop, Visitor& v) {
          result_.exact = false;  // one iteration counts
          v.descend(loop);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v(store->value);  // not the indices
          use(store->buffer, false);
        },
        [&](const Ref<BufferLoad>& load, Visitor&) { use(load->buffer, true); },
        [&](const Ref<Add>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Sub>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Mul>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Div>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<FloorDiv>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Min>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Max>& e, Visitor& v) { operation(e, v); },
        [&](const Ref<Call>& call, Visitor& v) {
          Intrinsic intrinsic = intrinsic_of(*call);
          bool control = intrinsic == Intrinsic::k_if_then_else || intrinsic == Intrinsic::k_likely;
          if (!control) count(call.dtype());
          v.descend(call);
        },
        [&](const Ref<Select>& e, Visitor& v) {
          v(e->true_value);  // the condition is control, not data
          v(e->false_value);
        });
  }

  double constant_or_guess(const Expr& e) {
    if (auto value = const_int(e)) return static_cast<double>(std::max<int64_t>(*value, 0));
    // Loop variables at the middle of their ranges; anything else unknown counts 1.
    Expr guess = rewrite(e, [&](const Ref<Var>& v, Rewriter&) -> Expr {
      result_.exact = false;
      auto it = middle_.find(v.get());
      return constant(v.dtype(), it == middle_.end() ? int64_t{1} : it->second);
    });
    Expr folded = rewrite(
        guess, [](const Ref<Add>& x, Rewriter& r) -> Expr { return r(x->a) + r(x->b); },
        [](const Ref<Sub>& x, Rewriter& r) -> Expr { return r(x->a) - r(x->b); },
        [](const Ref<Mul>& x, Rewriter& r) -> Expr { return r(x->a) * r(x->b); },
        [](const Ref<Min>& x, Rewriter& r) -> Expr { return min(r(x->a), r(x->b)); },
        [](const Ref<Max>& x, Rewriter& r) -> Expr { return max(r(x->a), r(x->b)); });
    auto value = const_int(folded);
    if (!value) result_.exact = false;
    return value ? static_cast<double>(std::max<int64_t>(*value, 0)) : 1.0;
  }

 private:
  void enter_loop(const Ref<For>& loop, Visitor& v) {
    double extent = constant_or_guess(loop->extent);
    middle_[loop->loop_var.get()] = static_cast<int64_t>(extent / 2);
    double outer = times_;
    times_ *= extent;
    v(loop->body);
    times_ = outer;
  }

  void enter_block(const Ref<BlockRealize>& realize, Visitor& v) {
    const Ref<Block>& block = realize->block;
    double length = 1;
    for (const Ref<IterVar>& iter : block->iter_vars) {
      if (iter->iter_type != IterType::kCommReduce || !iter->dom.defined()) continue;
      length *= constant_or_guess(iter->dom->extent);
    }
    if (length > 1) {
      result_.reduction_length += any_reduction_ ? length : length - 1;
      any_reduction_ = true;
    }
    if (block->init.defined()) {
      visit(block->init, [&](const Ref<BufferStore>& store) { use(store->buffer, false); });
    }
    v(block->body);
  }

  template <class T>
  void operation(const Ref<T>& e, Visitor& v) {
    count(e.dtype());
    v.descend(e);
  }
  void count(DataType type) {
    if (type.is_float()) result_.flops += times_ * type.lanes;
    if (type.is_integral() && !type.is_bool()) result_.int_ops += times_ * type.lanes;
  }

  void use(const Ref<Buffer>& buffer, bool is_read) {
    for (ParameterUse& param : result_.params) {
      if (!(param.buffer == buffer)) continue;
      if (is_read) {
        param.read = true;
        if (!param.written) param.read_before_written = true;
      } else {
        param.written = true;
      }
    }
  }

  Workload& result_;
  double times_ = 1;
  bool any_reduction_ = false;
  std::unordered_map<const NodeBase*, int64_t> middle_;
};

}  // namespace

Workload analyze_workload(const Ref<PrimFunc>& func) {
  Workload result;
  for (const Def<Var>& param : func->params) result.params.push_back({param, func->buffer_of(param)});
  Counter counter(result);
  counter.run(func->body);
  for (ParameterUse& param : result.params) {
    if (!param.buffer.defined()) continue;
    double bytes = param.buffer->dtype.bytes() * param.buffer->dtype.lanes;
    for (const Expr& extent : param.buffer->shape) bytes *= counter.constant_or_guess(extent);
    bool reads = param.read_before_written || (param.read && !param.written);
    if (reads) result.bytes_read += bytes;
    if (param.written) result.bytes_written += bytes;
  }
  return result;
}

}  // namespace tilewright::analysis
