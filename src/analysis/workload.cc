#include "analysis/workload.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/written_before.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

class Counter {
 public:
  Counter(Workload& result, const Module* module, const std::vector<std::pair<Expr, double>>& means)
      : result_(result), module_(module), means_(means) {}

  void run(const Stmt& body) {
    visit(
        body, [&](const Ref<For>& loop, Visitor& v) { enter_loop(loop, v); },
        [&](const Ref<BlockRealize>& realize, Visitor& v) { enter_block(realize, v); },
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          v(branch->condition);
          ++conditions_;
          const size_t outside = so_far_.depth();
          so_far_.enter_condition();
          double flops = result_.flops, ints = result_.int_ops;
          v(branch->then_case);
          double then_flops = result_.flops - flops, then_ints = result_.int_ops - ints;
          result_.flops = flops, result_.int_ops = ints;
          so_far_.leave(outside);
          so_far_.enter_condition();
          v(branch->else_case);  // the dearer branch counts
          result_.flops = flops + std::max(then_flops, result_.flops - flops);
          result_.int_ops = ints + std::max(then_ints, result_.int_ops - ints);
          so_far_.leave(outside);
          --conditions_;
        },
        [&](const Ref<While>& loop, Visitor& v) {
          result_.exact = false;  // one iteration counts
          ++conditions_;
          so_far_.enter_condition();
          v.descend(loop);
          so_far_.leave(so_far_.depth() - 1);
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
          pass_pointers(*call);
          v.descend(call);
        },
        [&](const Ref<DeclBuffer>& declaration, Visitor& v) {
          for (ParameterUse& param : result_.params) {
            if (!param.buffer.defined() && !param.pointee.defined() && declaration->buffer->data == param.param) {
              param.pointee = declaration->buffer;
            }
          }
          v.descend(declaration);
        },
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
    double outer = times_;
    times_ *= extent;
    loops_.emplace_back(loop->loop_var.get(), extent);
    const bool is_sure = surely_iterates(loop->extent);
    unsure_ += !is_sure;
    so_far_.enter_loop(*loop, is_sure);
    v(loop->body);
    unsure_ -= !is_sure;
    loops_.pop_back();
    so_far_.leave(so_far_.depth() - 1);
    times_ = outer;
  }

  /// Sizes that a program leaves open are at least 1; what data, other loops, and numbers among the arguments say may
  /// be 0.
  bool surely_iterates(const Expr& extent) const {
    if (auto value = const_int(extent)) return *value > 0;
    bool is_sure = true;
    visit(
        extent, [&](const Ref<BufferLoad>&, Visitor&) { is_sure = false; },
        [&](const Ref<Var>& var, Visitor&) {
          is_sure = is_sure && !middle_.contains(var.get()) &&
                    std::none_of(result_.params.begin(), result_.params.end(),
                                 [&](const ParameterUse& param) { return param.param == var && !is_a_size(var); });
        });
    return is_sure;
  }

  bool is_a_size(const Ref<Var>& v) const {
    return std::any_of(result_.params.begin(), result_.params.end(), [&](const ParameterUse& param) {
      const Ref<Buffer>& memory = memory_of(param);
      return memory.defined() && std::any_of(memory->shape.begin(), memory->shape.end(),
                                             [&](const Expr& extent) { return uses_var(extent, v); });
    });
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
    // A predicate of loops alone removes the excess of partial tiles; one that reads data selects points of the domain.
    bool is_conditional = !is_true(realize->predicate) && block->iter_vars.empty();
    visit(realize->predicate, [&](const Ref<BufferLoad>&) { is_conditional = true; });
    conditions_ += is_conditional;
    const size_t outside = so_far_.depth();
    so_far_.enter_block(*realize, reaches_all && !is_conditional);
    const Block* outer_block = std::exchange(block_, &*block);
    double length = 1;
    for (const Ref<IterVar>& iter : block->iter_vars) {
      middle_[iter->var.get()] = static_cast<int64_t>(constant_or_guess(iter->dom->extent) / 2);
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
      if (block->init.defined()) enter_init(*block, v);
      v(block->body);
    }
    so_far_.leave(outside);
    block_ = outer_block;
    conditions_ -= is_conditional;
    unsure_ -= !reaches_all;
    loops_ = outer_loops;
    times_ = outer;
    base_ = outer_base;
  }

  /// The init counts no operations.
  void enter_init(const Block& block, Visitor& v) {
    const double flops = result_.flops, ints = result_.int_ops;
    v(block.init);
    result_.flops = flops, result_.int_ops = ints;
  }

  /// A call may read and write what is behind the pointers that it gets, unless it says less or its function is known.
  void pass_pointers(const Call& call) {
    if (intrinsic_of(call) == Intrinsic::k_tvm_access_ptr) {
      auto mask = call.args.size() == 5 ? const_int(Expr(call.args[4])) : std::nullopt;
      if (call.args.size() == 5) pass(call.args[1], !mask || (*mask & 1) != 0, !mask || (*mask & 2) != 0, "a call");
      return;
    }
    const GlobalVar* name = call.op.as<GlobalVar>();
    const PrimFunc* callee = name && module_ ? called(name->name_hint) : nullptr;
    if (!callee || callee->params.size() != call.args.size()) {
      const std::string what = name ? "a call of '" + name->name_hint + "'" : "a call";
      for (const NodeRef& arg : call.args) pass(arg, true, true, what);
      return;
    }
    calls_.push_back(callee);
    Workload inside = analyze_inside(*callee);
    calls_.pop_back();
    VarMap given;
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (call.args[i].sort() == Sort::kExpr) given[callee->params[i]] = Expr(call.args[i]);
    }
    const std::string what = "function '" + name->name_hint + "'";
    for (size_t i = 0; i < call.args.size(); ++i) {
      const ParameterUse& use = inside.params[i];
      ParameterUse* param =
          pass(call.args[i], use.read_before_written || (use.read && !use.written), use.written, what);
      if (!param || !use.written_in_full || !is_all_of(use, given, *param)) continue;
      so_far_.write(WrittenBefore::all_of(memory_of(*param)));
      if (conditions_ == 0 && unsure_ == 0) param->written_in_full = true;
    }
  }

  /// Null for a function that calls itself.
  const PrimFunc* called(const std::string& name) const {
    for (const auto& [key, func] : module_->functions) {
      const PrimFunc* found = key == name ? func.as<PrimFunc>() : nullptr;
      if (found && std::find(calls_.begin(), calls_.end(), found) == calls_.end()) return found;
    }
    return nullptr;
  }
  Workload analyze_inside(const PrimFunc& callee) const {
    Workload inside;
    for (const Def<Var>& param : callee.params) inside.params.push_back({param, callee.buffer_of(param)});
    Counter counter(inside, module_, means_);
    counter.calls_ = calls_;
    counter.run(callee.body);
    return inside;
  }
  /// Whether a pointer in a function stands for all elements of a parameter here.
  static bool is_all_of(const ParameterUse& use, const VarMap& given, const ParameterUse& param) {
    const Ref<Buffer>& inner = memory_of(use);
    const Ref<Buffer>& outer = memory_of(param);
    if (!inner.defined() || !outer.defined()) return false;
    return arith::Analyzer().can_prove_equal(substitute(elements_of(*inner), given), elements_of(*outer));
  }
  static Expr elements_of(const Buffer& buffer) {
    Expr product = i64(1);
    for (const Expr& extent : buffer.shape) product = product * cast(DataType::int_(64), extent);
    return product;
  }

  static const Ref<Buffer>& memory_of(const ParameterUse& param) {
    return param.buffer.defined() ? param.buffer : param.pointee;
  }
  static Ref<Var> pointer_of(const ParameterUse& param) {
    return param.buffer.defined() ? Ref<Var>(param.buffer->data) : Ref<Var>(param.param);
  }

  ParameterUse* pass(const NodeRef& pointer, bool reads, bool writes, const std::string& to) {
    if (by_contract_ || !pointer.is<Var>()) return nullptr;
    for (ParameterUse& param : result_.params) {
      if (pointer_of(param) != pointer || !Expr(pointer).dtype().is_handle()) continue;
      const Ref<Buffer>& memory = memory_of(param);
      if (reads && !(memory.defined() && so_far_.has(WrittenBefore::all_of(memory)))) {
        note_early_read(param, "it is passed to " + to + ", which may read it");
      }
      param.read |= reads;
      param.written |= writes;
      return &param;
    }
    return nullptr;
  }

  void note_read(ParameterUse& param, const WrittenBefore::Part& part, std::string reader) {
    param.read = true;
    if (!so_far_.has(part)) note_early_read(param, std::move(reader));
  }
  static void note_early_read(ParameterUse& param, std::string reader) {
    if (!param.read_before_written) param.reader = std::move(reader);
    param.read_before_written = true;
  }
  std::string reader() const {
    return block_ ? "block '" + block_->name_hint + "' reads it" : std::string("the program reads it");
  }

  /// A block that stands for an instruction on tensors touches what it declares, and computes what is said of it.
  void enter_contract(const Block& block, const Block& said, Visitor& v) {
    for (const Ref<BufferRegion>& region : block.reads) {
      ParameterUse* param = parameter(region->buffer);
      if (!param) continue;
      note_read(*param, {region->buffer, region->region}, "block '" + block.name_hint + "' reads it");
      touch(reads_[param], *region);
    }
    for (const Ref<BufferRegion>& region : block.writes) {
      ParameterUse* param = parameter(region->buffer);
      if (!param) continue;
      param->written = true;
      touch(writes_[param], *region);
      if (param->buffer == region->buffer) note_write(*param, {region->buffer, region->region});
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
    const Ref<Buffer> source = so_far_.source_of(buffer);
    for (ParameterUse& param : result_.params) {
      if (param.buffer == source || pointer_of(param) == source->data) return &param;
    }
    return nullptr;
  }
  void read(const BufferLoad& load) {
    ParameterUse* param = parameter(load.buffer);
    if (!param) return;
    note_read(*param, so_far_.part(load.buffer, load.indices), reader());
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
    const WrittenBefore::Part part = so_far_.part(store.buffer, store.indices);
    if (!store.predicate.defined() && part.buffer == memory_of(*param)) note_write(*param, part);
  }
  void note_write(ParameterUse& param, const WrittenBefore::Part& part) {
    so_far_.write(part);
    if (conditions_ == 0 && unsure_ == 0 && so_far_.reaches_all(part)) param.written_in_full = true;
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
  WrittenBefore so_far_;
  std::vector<const PrimFunc*> calls_;  // the functions around
  const Module* module_;
  const std::vector<std::pair<Expr, double>>& means_;
  const Block* block_ = nullptr;
};

}  // namespace

Workload analyze_workload(const Ref<PrimFunc>& func, const Module* module,
                          const std::vector<std::pair<Expr, double>>& means) {
  Workload result;
  for (const Def<Var>& param : func->params) result.params.push_back({param, func->buffer_of(param)});
  Counter counter(result, module, means);
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
