#include "analysis/workload.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/build.h"
#include "ir/op.h"
#include "ir/tensor_intrin.h"
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
          ++conditions_;
          double flops = result_.flops, ints = result_.int_ops;
          v(branch->then_case);
          double then_flops = result_.flops - flops, then_ints = result_.int_ops - ints;
          result_.flops = flops, result_.int_ops = ints;
          v(branch->else_case);  // the dearer branch counts
          result_.flops = flops + std::max(then_flops, result_.flops - flops);
          result_.int_ops = ints + std::max(then_ints, result_.int_ops - ints);
          --conditions_;
        },
        [&](const Ref<While>& loop, Visitor& v) {
          result_.exact = false;  // one iteration counts
          ++conditions_;
          v.descend(loop);
          --conditions_;
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v(store->value);
          write(*store);
        },
        [&](const Ref<BufferLoad>& load, Visitor&) { read(*load); },
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
    // Loop variables at the middle of their ranges; anything else unknown counts 1, and so do elements of buffers and
    // differences between them.
    bool loads = false;
    Expr guess = rewrite(
        e,
        [&](const Ref<Var>& v, Rewriter&) -> Expr {
          result_.exact = false;
          if (v.dtype().is_handle()) return v;
          auto it = middle_.find(v.get());
          return constant(v.dtype(), it == middle_.end() ? int64_t{1} : it->second);
        },
        [&](const Ref<BufferLoad>& load, Rewriter&) -> Expr {
          loads = true;
          result_.exact = false;
          return constant(load.dtype(), int64_t{1});
        });
    Expr folded = rewrite(
        guess, [](const Ref<Add>& x, Rewriter& r) -> Expr { return r(x->a) + r(x->b); },
        [](const Ref<Sub>& x, Rewriter& r) -> Expr { return r(x->a) - r(x->b); },
        [](const Ref<Mul>& x, Rewriter& r) -> Expr { return r(x->a) * r(x->b); },
        [](const Ref<FloorDiv>& x, Rewriter& r) -> Expr { return floordiv(r(x->a), r(x->b)); },
        [](const Ref<FloorMod>& x, Rewriter& r) -> Expr { return floormod(r(x->a), r(x->b)); },
        [](const Ref<Min>& x, Rewriter& r) -> Expr { return min(r(x->a), r(x->b)); },
        [](const Ref<Max>& x, Rewriter& r) -> Expr { return max(r(x->a), r(x->b)); });
    auto value = const_int(folded);
    if (!value) result_.exact = false;
    return value ? static_cast<double>(std::max<int64_t>(*value, loads ? 1 : 0)) : 1.0;
  }

  /// How many of a parameter's elements are read, or written, at most: where data choose them, one an access.
  double elements_read(const ParameterUse& param, double all) { return at_most(reads_[&param], all); }
  double elements_written(const ParameterUse& param, double all) { return at_most(writes_[&param], all); }

 private:
  struct Touched {
    bool by_data = false;  ///< data choose some of the elements
    double elements = 0;
  };

  double at_most(const Touched& touched, double all) {
    if (!touched.by_data || touched.elements >= all) return all;
    result_.exact = false;
    return touched.elements;
  }

  void enter_loop(const Ref<For>& loop, Visitor& v) {
    double extent = constant_or_guess(loop->extent);
    middle_[loop->loop_var.get()] = static_cast<int64_t>(extent / 2);
    if (is_const_int(loop->min, 0)) extents_[loop->loop_var.get()] = loop->extent;
    double outer = times_;
    times_ *= extent;
    loops_.emplace_back(loop->loop_var.get(), extent);
    const bool is_sure = surely_iterates(loop->extent);
    unsure_ += !is_sure;
    v(loop->body);
    unsure_ -= !is_sure;
    loops_.pop_back();
    times_ = outer;
  }

  /// Sizes that a program leaves open are at least 1; what data and other loops say may be 0.
  bool surely_iterates(const Expr& extent) const {
    if (auto value = const_int(extent)) return *value > 0;
    bool is_sure = true;
    visit(
        extent, [&](const Ref<BufferLoad>&, Visitor&) { is_sure = false; },
        [&](const Ref<Var>& var, Visitor&) { is_sure = is_sure && !middle_.contains(var.get()); });
    return is_sure;
  }

  /// How often the block runs: once for each point of its domain, as far as the loops around it get there.
  double points_of(const BlockRealize& realize, bool& reaches_all) {
    std::unordered_set<const NodeBase*> bound;
    for (const Expr& value : realize.iter_values) visit(value, [&](const Ref<Var>& var) { bound.insert(var.get()); });
    double domain = 1, repeated = 1, iterations = 1;
    for (const Ref<IterVar>& iter : realize.block->iter_vars) domain *= constant_or_guess(iter->dom->extent);
    for (const auto& [var, extent] : loops_) (bound.contains(var) ? iterations : repeated) *= extent;
    reaches_all = iterations >= domain;
    return repeated * std::min(domain, iterations);
  }

  void enter_block(const Ref<BlockRealize>& realize, Visitor& v) {
    const Ref<Block>& block = realize->block;
    const double outer = times_, outer_base = base_;
    bool reaches_all = true;
    if (!block->iter_vars.empty()) times_ = base_ * points_of(*realize, reaches_all);
    unsure_ += !reaches_all;
    base_ = times_;
    const auto outer_loops = std::exchange(loops_, {});
    // A predicate of loops alone cuts off what tiles have too much; one of data leaves out points of the domain.
    bool is_conditional = !is_true(realize->predicate) && block->iter_vars.empty();
    visit(realize->predicate, [&](const Ref<BufferLoad>&) { is_conditional = true; });
    conditions_ += is_conditional;
    for (const Ref<MatchBufferRegion>& match : block->match_buffers) {
      views_[match->buffer.get()] = source_of(match->source->buffer);
    }
    double length = 1;
    for (const Ref<IterVar>& iter : block->iter_vars) {
      middle_[iter->var.get()] = static_cast<int64_t>(constant_or_guess(iter->dom->extent) / 2);
      if (is_const_int(iter->dom->min, 0)) extents_[iter->var.get()] = iter->dom->extent;
      if (iter->iter_type != IterType::kCommReduce || !iter->dom.defined()) continue;
      length *= constant_or_guess(iter->dom->extent);
    }
    if (length > 1) {
      result_.reduction_length += any_reduction_ ? length : length - 1;
      any_reduction_ = true;
    }
    if (Ref<Block> said = described(block); said != block) {
      enter_contract(*block, *said, v);
    } else {
      if (block->init.defined()) {
        visit(block->init, [&](const Ref<BufferStore>& store) { write(*store); });
      }
      v(block->body);
    }
    conditions_ -= is_conditional;
    unsure_ -= !reaches_all;
    loops_ = outer_loops;
    times_ = outer;
    base_ = outer_base;
  }

  /// A block that stands for an instruction on tensors touches what it declares, and computes what is said of it.
  void enter_contract(const Block& block, const Block& said, Visitor& v) {
    for (const Ref<BufferRegion>& region : block.reads) {
      ParameterUse* param = parameter(region->buffer);
      if (!param) continue;
      param->read = true;
      if (!covered_.contains(param)) param->read_before_written = true;
      touch(reads_[param], *region);
    }
    for (const Ref<BufferRegion>& region : block.writes) {
      ParameterUse* param = parameter(region->buffer);
      if (!param) continue;
      param->written = true;
      touch(writes_[param], *region);
      if (param->buffer == region->buffer && conditions_ == 0 && covers(*region)) cover(*param);
    }
    const bool outer = std::exchange(by_contract_, true);
    v(said.body);
    by_contract_ = outer;
  }

  void touch(Touched& touched, const BufferRegion& region) {
    double elements = 1;
    for (const Ref<Range>& range : region.region) {
      touched.by_data |= effect_of(range->min) != Effect::kPure;
      elements *= constant_or_guess(range->extent);
    }
    touched.elements += times_ * elements;
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

  ParameterUse* parameter(const Ref<Buffer>& buffer) {
    if (by_contract_) return nullptr;
    const Ref<Buffer> source = source_of(buffer);
    for (ParameterUse& param : result_.params) {
      if (param.buffer == source) return &param;
    }
    return nullptr;
  }
  Ref<Buffer> source_of(const Ref<Buffer>& buffer) const {
    auto it = views_.find(buffer.get());
    return it == views_.end() ? buffer : it->second;
  }

  void read(const BufferLoad& load) {
    ParameterUse* param = parameter(load.buffer);
    if (!param) return;
    param->read = true;
    if (!covered_.contains(param)) param->read_before_written = true;
    touch(reads_[param], load.indices);
  }

  /// An index is no data, but what it reads is read. The elements of a vector are one index each.
  void touch(Touched& touched, const std::vector<Expr>& indices) {
    double lanes = 1;
    for (const Expr& index : indices) {
      touched.by_data |= effect_of(index) != Effect::kPure;
      lanes = std::max<double>(lanes, index.dtype().lanes);
      visit(index, [&](const Ref<BufferLoad>& inner, Visitor&) { read(*inner); });
    }
    touched.elements += times_ * lanes;
  }

  void write(const BufferStore& store) {
    ParameterUse* param = parameter(store.buffer);
    if (!param) return;
    param->written = true;
    touch(writes_[param], store.indices);
    if (param->buffer == store.buffer && covers(store)) cover(*param);
  }
  void cover(ParameterUse& param) {
    covered_.insert(&param);
    if (unsure_ == 0) param.written_in_full = true;
  }

  /// Each dimension is there as a whole, or begins at a multiple of a variable of its own that gets to all of them.
  bool covers(const BufferRegion& region) const {
    std::unordered_set<const NodeBase*> used;
    for (size_t d = 0; d < region.region.size(); ++d) {
      auto all = const_int(region.buffer->shape[d]), part = const_int(region.region[d]->extent);
      if (!all || !part) return false;
      if (*all == *part) continue;
      const Expr& min = region.region[d]->min;
      const Mul* product = min.as<Mul>();
      const Expr& counted = product ? product->a : min;
      if ((product ? const_int(product->b) : 1) != *part) return false;
      auto range = extents_.find(counted.get());
      if (range == extents_.end() || !used.insert(counted.get()).second) return false;
      if (auto count = const_int(range->second); !count || *count * *part != *all) return false;
    }
    return true;
  }

  /// Each index is a variable of its own that runs over all of the dimension.
  bool covers(const BufferStore& store) const {
    if (conditions_ > 0 || store.predicate.defined()) return false;
    std::unordered_set<const NodeBase*> used;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      const Expr& extent = store.buffer->shape[d];
      if (is_const_int(extent, 1)) continue;
      auto range = extents_.find(store.indices[d].get());
      if (range == extents_.end() || !used.insert(store.indices[d].get()).second) return false;
      if (!(range->second == extent) && (!const_int(extent) || const_int(range->second) != const_int(extent)))
        return false;
    }
    return true;
  }

  Workload& result_;
  std::unordered_map<const ParameterUse*, Touched> reads_, writes_;
  double times_ = 1;
  double base_ = 1;                                        // times_ of the block around
  std::vector<std::pair<const NodeBase*, double>> loops_;  // between it and here
  int conditions_ = 0;
  int unsure_ = 0;  // loops around that may have no iteration, and blocks that do not reach all of their domain
  bool any_reduction_ = false;
  bool by_contract_ = false;  // inside of what is said of an instruction on tensors
  std::unordered_map<const NodeBase*, int64_t> middle_;
  std::unordered_map<const NodeBase*, Expr> extents_;  // of variables that start at 0
  std::unordered_map<const NodeBase*, Ref<Buffer>> views_;
  std::unordered_set<const ParameterUse*> covered_;
};

}  // namespace

Workload analyze_workload(const Ref<PrimFunc>& func) {
  Workload result;
  for (const Def<Var>& param : func->params) result.params.push_back({param, func->buffer_of(param)});
  Counter counter(result);
  counter.run(func->body);
  for (ParameterUse& param : result.params) {
    if (!param.buffer.defined()) continue;
    double elements = 1;
    for (const Expr& extent : param.buffer->shape) elements *= counter.constant_or_guess(extent);
    const double bytes = param.buffer->dtype.bytes() * param.buffer->dtype.lanes;
    bool reads = param.read_before_written || (param.read && !param.written);
    if (reads) result.bytes_read += bytes * counter.elements_read(param, elements);
    if (param.written) result.bytes_written += bytes * counter.elements_written(param, elements);
  }
  return result;
}

}  // namespace tilewright::analysis
