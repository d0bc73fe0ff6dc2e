// Both results come from one walk over the program in execution order: WorkCounter counts operations and accesses,
// weighted by how often each statement runs, and ParameterUses tracks which parameters are read before they are
// written.
#include "analysis/workload.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

class WorkCounter {
 public:
  WorkCounter(Workload& result, const Module* module, const std::vector<std::pair<Expr, double>>& means)
      : result_(result), uses_(result.params), module_(module), means_(means) {}

  void run(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop, Visitor& v) { enter_loop(loop, v); },
        [&](const Ref<BlockRealize>& realize, Visitor& v) { enter_block(realize, v); },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          const double flops = result_.flops, int_ops = result_.int_ops;
          enter_branch(branch->then_case, v);
          const double then_flops = result_.flops - flops, then_int_ops = result_.int_ops - int_ops;
          result_.flops = flops, result_.int_ops = int_ops;
          enter_branch(branch->else_case, v);  // the more expensive branch counts
          result_.flops = flops + std::max(then_flops, result_.flops - flops);
          result_.int_ops = int_ops + std::max(then_int_ops, result_.int_ops - int_ops);
        },
        [&](const Ref<While>& loop, Visitor& v) {
          result_.exact = false;  // counted as one iteration
          const Scope scope(*this);
          uses_.enter_condition();
          v.descend(loop);
        },
        [&](const Ref<BufferStore>& store, Visitor& v) {
          v(store->value);
          write(*store);
        },
        [&](const Ref<BufferLoad>& load, Visitor&) { read(*load); },
        on<Add, Sub, Mul, Div, FloorDiv, Min, Max>([&](const auto& e, Visitor& v) { operation(e, v); }),
        [&](const Ref<Call>& call) {
          Intrinsic intrinsic = intrinsic_of(*call);
          bool control = intrinsic == Intrinsic::k_if_then_else || intrinsic == Intrinsic::k_likely;
          if (!control) count(call.dtype());
          if (intrinsic_row(intrinsic).effect == Effect::kUpdateState) uses_.change({});
          enter_call(*call);
        },
        [&](const Ref<DeclBuffer>& declaration) { uses_.declare(declaration->buffer); },
        [&](const Ref<Select>& e, Visitor& v) {
          v(e->true_value);  // the condition is control, not data
          v(e->false_value);
        });
  }

  double constant_or_guess(const Expr& e) {
    if (auto value = const_int(e)) return static_cast<double>(std::max<int64_t>(*value, 0));
    for (const auto& [extent, mean] : means_) {
      if (structural_equal(extent, e)) return mean;
    }
    // Loop variables count as the midpoints of their ranges. Other unknown values, such as elements of buffers and
    // their differences, count as 1.
    bool loads = false;
    Expr guess = rewrite(
        e,
        [&](const Ref<Var>& v, Rewriter&) -> Expr {
          result_.exact = false;
          if (v.dtype().is_handle()) return v;
          return constant(v.dtype(), find_value_or(midpoints_, v.get(), 1));
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

  /// Returns the number of elements of a parameter that are read (or written): all of them, but at most one per access
  /// if data select them.
  double elements_read(const ParameterUse& param, double all) { return at_most(reads_[&param], all); }
  double elements_written(const ParameterUse& param, double all) { return at_most(writes_[&param], all); }

 private:
  struct ElementsAccessed {
    bool by_data = false;  ///< whether data select some of the elements
    double count = 0;
  };

  struct Surroundings {
    double times = 1;           ///< executions of the statement
    double times_of_block = 1;  ///< executions of the enclosing block
    /// Variables and extents of the loops between the enclosing block and the statement.
    std::vector<std::pair<const NodeBase*, double>> loops;
  };

  /// Saves the surroundings of a statement, and restores them in its destructor.
  class Scope {
   public:
    explicit Scope(WorkCounter& counter) : counter_(counter), outer_(counter.around_), uses_(counter.uses_) {}
    ~Scope() { counter_.around_ = std::move(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkCounter& counter_;
    Surroundings outer_;
    ParameterUses::Scope uses_;
  };

  double at_most(const ElementsAccessed& accessed, double all) {
    if (!accessed.by_data || accessed.count >= all) return all;
    result_.exact = false;
    return accessed.count;
  }

  void enter_loop(const Ref<For>& loop, Visitor& v) {
    const Scope scope(*this);
    const double extent = constant_or_guess(loop->extent);
    midpoints_[loop->loop_var.get()] = static_cast<int64_t>(extent / 2);
    around_.times *= extent;
    around_.loops.emplace_back(loop->loop_var.get(), extent);
    uses_.enter_loop(*loop, surely_iterates(loop->extent));
    v(loop->body);
  }

  /// Symbolic sizes of a program are at least 1. An extent that depends on data, other loops, or scalar arguments may
  /// be 0.
  bool surely_iterates(const Expr& extent) const {
    if (auto value = const_int(extent)) return *value > 0;
    bool is_sure = true;
    visit(
        extent, [&](const Ref<BufferLoad>&, Visitor&) { is_sure = false; },
        [&](const Ref<Var>& var, Visitor&) {
          is_sure = is_sure && !midpoints_.contains(var.get()) && !uses_.is_number(var);
        });
    return is_sure;
  }

  void enter_branch(const Stmt& branch, Visitor& v) {
    const Scope scope(*this);
    uses_.enter_condition();
    v(branch);
  }

  struct Executions {
    double times = 1;
    bool covers_domain = true;  ///< whether the block runs for all points of its domain
  };
  /// A block runs once for each point of its domain, capped by the iterations of the surrounding loops.
  Executions executions_of(const BlockRealize& realize) {
    if (realize.block->iter_vars.empty()) return {around_.times, true};
    std::unordered_set<const NodeBase*> bound;
    for (const Expr& value : realize.iter_values) visit(value, [&](const Ref<Var>& var) { bound.insert(var.get()); });
    double domain = 1, repeated = 1, iterations = 1;
    for (const Ref<IterVar>& iter : realize.block->iter_vars) domain *= constant_or_guess(iter->dom->extent);
    for (const auto& [var, extent] : around_.loops) (bound.contains(var) ? iterations : repeated) *= extent;
    return {around_.times_of_block * (repeated * std::min(domain, iterations)), iterations >= domain};
  }

  void enter_block(const Ref<BlockRealize>& realize, Visitor& v) {
    const Scope scope(*this);
    const Ref<Block>& block = realize->block;
    const Executions executions = executions_of(*realize);
    around_ = {executions.times, executions.times, {}};
    // A predicate on loop variables guards partial tiles; one that reads data selects points of the domain.
    bool is_conditional = !is_true(realize->predicate) && block->iter_vars.empty();
    visit(realize->predicate, [&](const Ref<BufferLoad>&) { is_conditional = true; });
    uses_.enter_block(*realize, executions.covers_domain, is_conditional);
    double length = 1;
    for (const Ref<IterVar>& iter : block->iter_vars) {
      midpoints_[iter->var.get()] = static_cast<int64_t>(constant_or_guess(iter->dom->extent) / 2);
      if (iter->iter_type != IterType::kCommReduce || !iter->dom.defined()) continue;
      length *= constant_or_guess(iter->dom->extent);
    }
    if (length > 1) {
      result_.reduction_length += any_reduction_ ? length : length - 1;
      any_reduction_ = true;
    }
    if (Ref<Block> description = described(block); description != block) {
      enter_contract(*block, *description, v);
    } else {
      if (block->init.defined()) enter_init(*block, v);
      v(block->body);
    }
  }

  /// Visits the init, whose operations do not count.
  void enter_init(const Block& block, Visitor& v) {
    const double flops = result_.flops, int_ops = result_.int_ops;
    v(block.init);
    result_.flops = flops, result_.int_ops = int_ops;
  }

  /// Visits a block that implements a tensor intrinsic: its accesses are the declared regions, and its operations are
  /// those of the intrinsic's description.
  void enter_contract(const Block& block, const Block& description, Visitor& v) {
    for (const Ref<BufferRegion>& region : block.reads) {
      ParameterUse* param = uses_.find(region->buffer);
      if (!param) continue;
      uses_.read_region(*param, *region);
      count_accesses(reads_[param], *region);
    }
    for (const Ref<BufferRegion>& region : block.writes) {
      if (ParameterUse* param = uses_.find(region->buffer)) {
        count_accesses(writes_[param], *region);
        uses_.write_region(*param, *region);
      }
      uses_.change(region->buffer);
    }
    const Scope scope(*this);
    uses_.enter_contract();
    v(description.body);
  }

  void enter_call(const Call& call) {
    const PrimFunc* callee = callee_of(call);
    if (!callee) return uses_.pass_pointers(call);
    Workload inside;
    for (const Def<Var>& param : callee->params) inside.params.push_back({param, callee->buffer_of(param)});
    WorkCounter counter(inside, module_, means_);
    counter.calls_ = calls_;
    counter.calls_.push_back(callee);
    counter.run(callee->body);
    uses_.pass_pointers(call, *callee, inside.params);
  }

  /// Returns the called function of the module; null if there is none with this number of parameters, and for
  /// recursion.
  const PrimFunc* callee_of(const Call& call) const {
    const GlobalVar* name = call.op.as<GlobalVar>();
    if (!name || !module_) return nullptr;
    for (const auto& [key, func] : module_->functions) {
      const PrimFunc* found = key == name->name_hint ? func.as<PrimFunc>() : nullptr;
      if (!found || found->params.size() != call.args.size()) continue;
      if (!is_contained(calls_, found)) return found;
    }
    return nullptr;
  }

  template <class T>
  void operation(const Ref<T>& e, Visitor& v) {
    count(e.dtype());
    v.descend(e);
  }
  void count(DataType type) {
    if (type.is_float()) result_.flops += around_.times * type.lanes;
    if (type.is_integral() && !type.is_bool()) result_.int_ops += around_.times * type.lanes;
  }

  void read(const BufferLoad& load) {
    ParameterUse* param = uses_.find(load.buffer);
    if (!param) return;
    uses_.load(*param, load);
    count_accesses(reads_[param], load.indices);
  }
  void write(const BufferStore& store) {
    if (ParameterUse* param = uses_.find(store.buffer)) {
      count_accesses(writes_[param], store.indices);
      uses_.store(*param, store);
    }
    uses_.change(store.buffer);
  }

  /// Counts the accessed elements, one per lane of a vector index, and the loads in the indices, but not their
  /// arithmetic.
  void count_accesses(ElementsAccessed& accessed, const std::vector<Expr>& indices) {
    double lanes = 1;
    for (const Expr& index : indices) {
      accessed.by_data |= effect_of(index) != Effect::kPure;
      lanes = std::max<double>(lanes, index.dtype().lanes);
      visit(index, [&](const Ref<BufferLoad>& inner, Visitor&) { read(*inner); });
    }
    accessed.count += around_.times * lanes;
  }
  void count_accesses(ElementsAccessed& accessed, const BufferRegion& region) {
    double elements = 1;
    for (const Ref<Range>& range : region.region) {
      accessed.by_data |= effect_of(range->min) != Effect::kPure;
      elements *= constant_or_guess(range->extent);
    }
    accessed.count += around_.times * elements;
  }

  Workload& result_;
  ParameterUses uses_;
  Surroundings around_;
  std::unordered_map<const ParameterUse*, ElementsAccessed> reads_, writes_;
  std::unordered_map<const NodeBase*, int64_t> midpoints_;  // midpoints of the ranges of loop variables and axes
  bool any_reduction_ = false;
  std::vector<const PrimFunc*> calls_;  // the stack of callers
  const Module* module_;
  const std::vector<std::pair<Expr, double>>& means_;
};

}  // namespace

Workload analyze_workload(const Ref<PrimFunc>& func, const Module* module,
                          const std::vector<std::pair<Expr, double>>& means) {
  Workload result;
  for (const Def<Var>& param : func->params) result.params.push_back({param, func->buffer_of(param)});
  WorkCounter counter(result, module, means);
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
