// Theorem: let a function store to one parameter alone, let each of its elements be stored at most once in a call, and
// let every load of an input stand in the value of a store, at the index of that store. Then a call in which this input
// is the output computes what it computes with a copy of it: an element is loaded to compute what is stored there,
// which is the first store to it, and no other load reads it.
//
// Nothing may move such a load behind the store, also where both are taken to be different memory, since what is stored
// depends on it.
//
// The theorem requires no order, so it holds for the threads of a kernel too, which are loops here. Pointers to such
// parameters are not "restrict" in the text of the kernel.
//
// That an element is stored once is proved by intervals of indices, from the inside out: a loop moves that of its body
// by at least its length from one iteration to the next, and statements in a row have intervals one behind the other.
#include "codegen/in_place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "arith/analyzer.h"
#include "ir/annotations.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// Indices from `low` to `high`, that one excluded.
struct Elements {
  Expr low, high;
};

/// The expression with its sums multiplied out: rows of symbolic sizes are as far apart as (i * n + j) * m says. What
/// is divided stays, and so do numbers of less than 32 bits, which may wrap.
Expr multiplied_out(const Expr& e) {
  if (!e.dtype().is_int() || e.dtype().bits < 32) return e;
  if (const Cast* wide = e.as<Cast>()) {
    const Expr inner = multiplied_out(wide->value);
    const DataType type = e.dtype();
    if (const Add* sum = inner.as<Add>())
      return multiplied_out(cast(type, sum->a)) + multiplied_out(cast(type, sum->b));
    if (const Sub* sum = inner.as<Sub>())
      return multiplied_out(cast(type, sum->a)) - multiplied_out(cast(type, sum->b));
    return cast(type, inner);
  }
  if (const Add* sum = e.as<Add>()) return multiplied_out(sum->a) + multiplied_out(sum->b);
  if (const Sub* difference = e.as<Sub>()) return multiplied_out(difference->a) - multiplied_out(difference->b);
  const Mul* product = e.as<Mul>();
  if (!product) return e;
  const Expr a = multiplied_out(product->a), b = multiplied_out(product->b);
  if (const Add* sum = a.as<Add>()) return multiplied_out(sum->a * b) + multiplied_out(sum->b * b);
  if (const Sub* sum = a.as<Sub>()) return multiplied_out(sum->a * b) - multiplied_out(sum->b * b);
  if (b.is<Add>() || b.is<Sub>()) return multiplied_out(b * a);
  return a * b;
}
/// Returns how many terms the expression has, multiplied out.
uint64_t count_terms(const Expr& e) {
  if (const Cast* wide = e.as<Cast>()) return count_terms(wide->value);
  if (const Add* sum = e.as<Add>()) return count_terms(sum->a) + count_terms(sum->b);
  if (const Sub* difference = e.as<Sub>()) return count_terms(difference->a) + count_terms(difference->b);
  const Mul* product = e.as<Mul>();
  return product ? count_terms(product->a) * count_terms(product->b) : 1;
}
/// Longer ones take too long to multiply out. The terms of so few operations are counted in 64 bits.
constexpr uint32_t kMostOperations = 96;
constexpr uint64_t kMostTerms = 64;

class StoredOnce {
 public:
  /// Returns the elements that the statement stores; nothing if it may store one twice.
  std::optional<Elements> of(const Stmt& stmt) {
    if (const BufferStore* store = stmt.as<BufferStore>()) return of_store(*store);
    if (const For* loop = stmt.as<For>()) return of_loop(*loop);
    if (const SeqStmt* seq = stmt.as<SeqStmt>()) return of_sequence(*seq);
    if (const AttrStmt* attr = stmt.as<AttrStmt>()) return of(attr->body);
    if (const AssertStmt* asserted = stmt.as<AssertStmt>()) return of(asserted->body);
    if (const DeclBuffer* view = stmt.as<DeclBuffer>()) return of(view->body);
    if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      if (!branch->else_case.defined()) return of(branch->then_case);
    }
    return std::nullopt;
  }

 private:
  std::optional<Elements> of_store(const BufferStore& store) {
    if (store.indices.size() != 1) return std::nullopt;
    const Expr& index = store.indices[0];
    const Ramp* ramp = index.as<Ramp>();
    const Expr& low = ramp ? ramp->base : index;
    if (!low.dtype().is_scalar() || (ramp && !is_const_int(ramp->stride, 1))) return std::nullopt;
    if (!ramp) return Elements{low, low + constant(low.dtype(), int64_t{1})};
    return Elements{low, low + lanes_stored(store, low.dtype(), index.dtype().lanes)};
  }

  /// Under a mask Ramp(base, 1, lanes) < end, those below the end.
  Expr lanes_stored(const BufferStore& store, DataType type, int64_t lanes) {
    const Expr all = constant(type, lanes);
    const LT* mask = store.predicate.defined() ? store.predicate.as<LT>() : nullptr;
    const Ramp* ramp = mask ? mask->a.as<Ramp>() : nullptr;
    const Broadcast* end = mask ? mask->b.as<Broadcast>() : nullptr;
    if (!ramp || !end || !is_const_int(ramp->stride, 1)) return all;
    const Expr below = analyzer_.simplify(cast(type, end->value - ramp->base));
    if (const auto count = const_int(below)) return constant(type, std::clamp<int64_t>(*count, 0, lanes));
    const bool fits = analyzer_.can_prove_greater_equal(below, 0) && analyzer_.can_prove_less_equal(below, all);
    return fits ? below : all;
  }

  /// A loop whose last iterations do something else is two of them.
  std::optional<Elements> of_loop(const For& loop) {
    if (loop.kind == ForKind::kThreadBinding) return std::nullopt;
    const IfThenElse* branch = loop.body.as<IfThenElse>();
    const LT* first = branch && branch->else_case.defined() ? branch->condition.as<LT>() : nullptr;
    const bool asks_for_it = first && first->a == Expr(loop.loop_var);
    const int64_t min = const_int(loop.min).value_or(0), end = min + const_int(loop.extent).value_or(0);
    const int64_t middle = asks_for_it && const_int(loop.min) ? const_int(first->b).value_or(min) : min;
    if (middle <= min || middle >= end) return of_range(loop.loop_var, loop.min, loop.extent, loop.body);
    const DataType type = loop.extent.dtype();
    const auto below = of_range(loop.loop_var, loop.min, constant(type, middle - min), branch->then_case);
    const auto rest = of_range(loop.loop_var, first->b, constant(type, end - middle), branch->else_case);
    return joined_if_ascending(below, rest);
  }

  std::optional<Elements> of_range(const Ref<Var>& v, const Expr& min, const Expr& extent, const Stmt& stmt) {
    analyzer_.bind(v, min, extent);
    std::optional<Elements> body = of(stmt);
    if (!body || is_const_int(extent, 1)) return body ? at(*body, v, min) : body;
    const Elements next = at(*body, v, Expr(v) + constant(v.dtype(), int64_t{1}));
    const Expr step = simplified(next.low - body->low);
    const Expr same = simplified(next.high - body->high);
    const bool moves = any_node(step, [&](const Ref<Var>& used) { return used == v; });
    if (moves || !structural_equal(step, same) || !is_at_most(body->high - body->low, step)) return std::nullopt;
    const Expr last = min + extent - constant(extent.dtype(), int64_t{1});
    return Elements{simplified(at(*body, v, min).low), simplified(at(*body, v, last).high)};
  }

  std::optional<Elements> of_sequence(const SeqStmt& seq) {
    std::optional<Elements> all;
    for (const Stmt& stmt : seq.seq) {
      const std::optional<Elements> next = of(stmt);
      all = all ? joined_if_ascending(all, next) : next;
      if (!all) return std::nullopt;
    }
    return all;
  }

  /// Joins two ranges of elements if the second one starts after the first one.
  std::optional<Elements> joined_if_ascending(const std::optional<Elements>& one,
                                              const std::optional<Elements>& other) {
    if (!one || !other || !is_at_most(one->high, other->low)) return std::nullopt;
    if (is_at_most(one->high, other->high)) return Elements{one->low, other->high};
    // A loop that may have no iterations ends where it begins, or before.
    return Elements{one->low, analyzer_.simplify(max(one->high, other->high))};
  }

  static Elements at(const Elements& interval, const Ref<Var>& v, const Expr& value) {
    return {substitute(interval.low, {{v, value}}), substitute(interval.high, {{v, value}})};
  }

  Expr simplified(const Expr& e) {
    const bool is_short = e.get()->operations <= kMostOperations && count_terms(e) <= kMostTerms;
    return analyzer_.simplify(is_short ? multiplied_out(e) : e);
  }
  bool is_at_most(const Expr& a, const Expr& b) {
    return analyzer_.can_prove_less_equal(a, b) || analyzer_.can_prove_greater_equal(simplified(b - a), 0);
  }

  arith::Analyzer analyzer_;
};

/// Removes inputs that are loaded at other indices than those at which they are stored.
class Loads {
 public:
  explicit Loads(std::unordered_set<NodeRef>& inputs) : inputs_(inputs) {}

  void look(const Stmt& body) {
    visit(
        body,
        [&](const Ref<BufferStore>& store, Visitor& v) {
          const Ref<BufferStore> outer = std::exchange(store_, {});
          for (const Expr& index : store->indices) v(index);
          if (store->predicate.defined()) v(store->predicate);
          store_ = store;
          v(store->value);
          store_ = outer;
        },
        [&](const Ref<BufferLoad>& load, Visitor& v) {
          const bool is_same = store_.defined() && same_exprs(load->indices, store_->indices);
          if (!is_same) inputs_.erase(load->buffer->data);
          const Ref<BufferStore> outer = std::exchange(store_, {});
          for (const Expr& index : load->indices) v(index);
          store_ = outer;
        });
  }

 private:
  std::unordered_set<NodeRef>& inputs_;
  Ref<BufferStore> store_;
};

/// Whether indices of a buffer count elements of that type from where its memory begins.
bool counts_from_the_start(const Buffer& buffer, DataType dtype) {
  const bool begins = !buffer.elem_offset.defined() || is_const_int(buffer.elem_offset, 0);
  return buffer.dtype == dtype && buffer.strides.empty() && begins;
}

/// Whether the function does nothing but compute: no calls that take addresses, no other views of what it writes and of
/// inputs of its type.
bool is_plain(const Stmt& body, const Buffer& output, const std::unordered_set<NodeRef>& inputs) {
  bool plain = true;
  const auto look_at = [&](const Buffer& buffer) {
    const bool matters = buffer.data == output.data || inputs.contains(buffer.data);
    plain &= !matters || counts_from_the_start(buffer, output.dtype);
  };
  visit(
      body, on<BufferStore, BufferLoad>([&](const auto& access) { look_at(*access->buffer); }),
      [&](const Ref<Call>& call) {
        for (const NodeRef& arg : call->args) plain &= !(arg.is<Var>() && arg.cast<Var>().dtype().is_handle());
        plain &= intrinsic_of(*call) != Intrinsic::k_address_of && effect_of(Expr(call)) != Effect::kUpdateState;
      },
      on<LetStmt, While>([&](const auto&, Visitor&) { plain = false; }));
  return plain;
}

/// The statement with bodies of kernels in place of their launches, whose threads are ordinary loops.
Stmt with_kernels(const Stmt& body, const Ref<Module>& module) {
  return rewrite(body, [&](const Ref<Evaluate>& evaluate, Rewriter&) -> Stmt {
    const Call* call = evaluate->value.as<Call>();
    const PrimFunc* kernel = call ? launched_kernel(*call, module) : nullptr;
    if (!kernel || kernel->params.size() != call->args.size()) return evaluate;
    VarMap arguments;
    for (size_t i : indices_of(call->args)) arguments[kernel->params[i]] = call->arg(i);
    Stmt inner = rewrite(kernel->body, [&](const Ref<For>& loop, Rewriter& r) -> Stmt {
      For copy = *r.descend(loop);
      if (copy.kind == ForKind::kThreadBinding) copy.kind = ForKind::kSerial;
      copy.thread_binding = {};
      return make(std::move(copy), loop.span());
    });
    return substitute(inner, arguments);
  });
}

}  // namespace

const PrimFunc* launched_kernel(const Call& call, const Ref<Module>& module) {
  const GlobalVar* name = call.op.as<GlobalVar>();
  const PrimFunc* func = name && module.defined() ? module->get(name->name_hint).as<PrimFunc>() : nullptr;
  return func && is_kernel(*func) ? func : nullptr;
}

std::unordered_set<NodeRef> parameters_in_place(const Ref<PrimFunc>& func, const Ref<Module>& module) {
  Stmt body = with_kernels(func->body, module);
  if (body == func->body) return parameters_in_place(func);
  return parameters_in_place(with_body(func, std::move(body)));
}

std::set<std::string> kernels_in_place(const Ref<Module>& lowered) {
  std::set<std::string> found;
  for (const auto& [name, func] : lowered->functions) {
    if (!func.is<PrimFunc>()) continue;
    std::set<std::string> launches;
    visit(func, [&](const Ref<Call>& call) {
      if (launched_kernel(*call, lowered)) launches.insert(call->op.as<GlobalVar>()->name_hint);
    });
    if (!launches.empty() && !parameters_in_place(func.cast<PrimFunc>(), lowered).empty())
      found.insert(launches.begin(), launches.end());
  }
  return found;
}

bool has_layout_of(const Buffer& a, const Buffer& b) {
  return a.dtype == b.dtype && a.strides.empty() && b.strides.empty() && same_exprs(a.shape, b.shape);
}

std::unordered_set<NodeRef> parameters_in_place(const Ref<PrimFunc>& func) {
  std::unordered_set<NodeRef> written;
  visit(func->body, [&](const Ref<BufferStore>& store) { written.insert(store->buffer->data); });
  if (written.size() != 1) return {};
  Ref<Buffer> output;
  for (const Def<Var>& param : func->params) {
    const Ref<Buffer> buffer = func->buffer_of(param);
    if (buffer.defined() && written.contains(buffer->data)) output = buffer;
  }
  if (!output.defined()) return {};
  std::unordered_set<NodeRef> inputs;
  for (const Def<Var>& param : func->params) {
    const Ref<Buffer> buffer = func->buffer_of(param);
    if (buffer.defined() && !(buffer == output) && has_layout_of(*buffer, *output)) inputs.insert(buffer->data);
  }
  if (inputs.empty() || !is_plain(func->body, *output, inputs)) return {};
  Loads(inputs).look(func->body);
  if (inputs.empty() || !StoredOnce().of(func->body)) return {};
  inputs.insert(output->data);
  return inputs;
}

}  // namespace tilewright::codegen
