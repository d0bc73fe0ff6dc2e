#include "analysis/reducer.h"

#include <algorithm>

#include "analysis/divisors.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"

namespace tilewright::analysis {
namespace {

bool same_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_expr);
}

/// Of two pairs, that which is chosen.
std::vector<Expr> choose_pair(Combiner combiner, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  auto chosen = [&](const Expr& first, const Expr& second) {
    return std::vector<Expr>{select(first, a[0], b[0]), select(second, a[1], b[1])};
  };
  auto smaller_index = [&](const Expr& better) {
    return chosen(logical_or(better, logical_and(eq(a[1], b[1]), lt(a[0], b[0]))), better);
  };
  switch (combiner) {
    case Combiner::kArgMax:
      return smaller_index(gt(a[1], b[1]));
    case Combiner::kArgMin:
      return smaller_index(lt(a[1], b[1]));
    case Combiner::kFirstArgMax:
      return chosen(ge(a[1], b[1]), ge(a[1], b[1]));
    case Combiner::kFirstArgMin:
      return chosen(le(a[1], b[1]), le(a[1], b[1]));
    case Combiner::kParts:
      break;
  }
  return {};
}

/// The stores that a statement consists of; nothing if it is anything else.
std::optional<std::vector<const BufferStore*>> stores_of(const Stmt& stmt) {
  std::vector<const BufferStore*> stores;
  auto take = [&](const Stmt& one) {
    const BufferStore* store = one.as<BufferStore>();
    if (store && !store->predicate.defined()) stores.push_back(store);
    return store && !store->predicate.defined();
  };
  if (const SeqStmt* sequence = stmt.as<SeqStmt>()) {
    for (const Stmt& one : sequence->seq) {
      if (!take(one)) return std::nullopt;
    }
  } else if (!take(stmt)) {
    return std::nullopt;
  }
  return stores;
}

/// What the body stores, each value worked out before the first store; without variables.
struct Update {
  std::vector<Ref<Buffer>> buffers;
  std::vector<Expr> values, indices;
};

class Find {
 public:
  explicit Find(const Block& block) : block_(block) {}

  FoundReducer run() {
    FoundReducer result;
    if (!block_.init.defined()) {
      result.why_not = "it has no init";
      return result;
    }
    if (!block_.alloc_buffers.empty() || !block_.match_buffers.empty()) {
      result.why_not = "it has buffers of its own";
      return result;
    }
    if (take_body() && take_init()) {
      bool known = combines_parts() || (why_.empty() && chooses_pairs());
      if (known && reads_no_results() && starts_fit()) {
        result.reducer = std::move(reducer_);
        return result;
      }
      if (why_.empty()) {
        why_ = bound_ ? "what it stores is no known operation of the element and one operand"
                      : "its body stores several values that are not bound before the first store, and not each is "
                        "combined with an operand by itself";
      }
    }
    result.why_not = std::move(why_);
    return result;
  }

 private:
  bool say(std::string why) {
    why_ = std::move(why);
    return false;
  }

  /// Lets around stores of their variables, each once; or stores of which none changes what another one computes.
  bool take_body() {
    std::vector<const LetStmt*> lets;
    Stmt body = block_.body;
    while (const LetStmt* let = body.as<LetStmt>()) {
      for (const LetStmt* outer : lets) {
        if (uses_var(let->value, outer->var)) return say("a value it binds depends on another one");
      }
      lets.push_back(let);
      body = let->body;
    }
    auto stores = stores_of(body);
    if (!stores) return say("its body is not a store, or stores of values bound before");
    if (lets.empty()) {
      bound_ = stores->size() == 1;
      update_.indices = stores->front()->indices;
      return std::all_of(stores->begin(), stores->end(), [&](const BufferStore* s) { return add(*s, s->value); });
    }
    if (lets.size() != stores->size()) return say("it does not store each value that it binds exactly once");
    update_.indices = stores->front()->indices;
    for (const LetStmt* let : lets) {
      auto is_it = [&](const BufferStore* store) { return store->value == let->var; };
      if (std::count_if(stores->begin(), stores->end(), is_it) != 1) {
        return say("it does not store each value that it binds exactly once");
      }
      if (!add(**std::find_if(stores->begin(), stores->end(), is_it), let->value)) return false;
    }
    return true;
  }

  bool add(const BufferStore& store, const Expr& value) {
    for (const Ref<Buffer>& known : update_.buffers) {
      if (known->data == store.buffer->data) return say("it stores twice to '" + store.buffer->name + "'");
    }
    if (!same_exprs(store.indices, update_.indices)) return say("it stores at different indices");
    update_.buffers.push_back(store.buffer);
    update_.values.push_back(value);
    return true;
  }

  bool take_init() {
    auto stores = stores_of(block_.init);
    if (!stores) return say("its init does not consist of stores");
    if (stores->size() != update_.buffers.size()) {
      return say("its init stores " + std::to_string(stores->size()) + " values and its body " +
                 std::to_string(update_.buffers.size()));
    }
    reducer_.buffers = update_.buffers;
    reducer_.indices = update_.indices;
    for (const Ref<Buffer>& buffer : update_.buffers) {
      auto is_it = [&](const BufferStore* store) { return store->buffer == buffer; };
      auto found = std::find_if(stores->begin(), stores->end(), is_it);
      if (found == stores->end() || !same_exprs((*found)->indices, update_.indices)) {
        return say("its init does not set the element of '" + buffer->name + "' that its body combines into");
      }
      reducer_.starts.push_back((*found)->value);
      elements_.push_back(load(buffer, update_.indices));
    }
    const std::vector<Expr>& shape = reducer_.buffers[0]->shape;
    for (const Ref<Buffer>& buffer : reducer_.buffers) {
      if (!same_exprs(buffer->shape, shape)) return say("the buffers that it combines into differ in shape");
    }
    return true;
  }

  /// Which knows the domains of the axes.
  arith::Analyzer& analyzer() {
    if (!analyzer_) {
      analyzer_.emplace();
      for (const Ref<IterVar>& axis : block_.iter_vars) {
        if (axis->dom.defined()) analyzer_->bind(axis->var, axis->dom);
      }
    }
    return *analyzer_;
  }

  /// Each part is a step by itself.
  bool combines_parts() {
    for (size_t part = 0; part < elements_.size(); ++part) {
      BufferStore store{update_.buffers[part], update_.values[part], update_.indices, {}};
      auto step = ReductionStep::of(store);
      if (!step || step->is_difference()) return false;
      if (may_fail_early(*step, analyzer())) {
        return say("what its element is combined with is not evaluated once that decides the result, and might fail");
      }
      reducer_.operands.push_back(step->operand());
      reducer_.steps.push_back(std::move(*step));
    }
    reducer_.combiner = Combiner::kParts;
    return true;
  }

  /// The one pair or the other.
  bool chooses_pairs() {
    reducer_.operands.clear();
    reducer_.steps.clear();
    if (elements_.size() != 2 || !bound_) return false;
    for (size_t part = 0; part < 2; ++part) {
      const Select* choice = update_.values[part].as<Select>();
      if (!choice || !same_expr(choice->true_value, elements_[part])) return false;
      reducer_.operands.push_back(choice->false_value);
    }
    using enum Combiner;
    for (Combiner combiner : {kArgMax, kArgMin, kFirstArgMax, kFirstArgMin}) {
      reducer_.combiner = combiner;
      if (same_exprs(update_.values, reducer_.combine(elements_, reducer_.operands))) return true;
    }
    return false;
  }

  bool reads_no_results() {
    bool reads_own = false;
    for (const Expr& operand : reducer_.operands) {
      visit(operand, [&](const Ref<BufferLoad>& load, Visitor& walk) {
        for (const Ref<Buffer>& buffer : reducer_.buffers) reads_own |= load->buffer->data == buffer->data;
        walk.descend(load);
      });
    }
    return !reads_own || say("what it adds to an element depends on elements that it writes");
  }

  /// Neutral, or a constant that may be met again.
  bool starts_fit() {
    for (size_t part = 0; part < reducer_.starts.size(); ++part) {
      Expr start = reducer_.starts[part];
      bool fits = false;
      if (reducer_.combiner == Combiner::kParts) {
        fits = reducer_.steps[part].may_restart_from(start);
      } else {
        while (const Cast* converted = start.as<Cast>()) start = Expr(converted->value);
        fits = const_int(start) || const_float(start);
      }
      if (!fits) return say("its init is not neutral: combining it again would change the result");
    }
    return true;
  }

  const Block& block_;
  std::string why_;
  Update update_;
  bool bound_ = true;  ///< all values are worked out before the first store
  std::vector<Expr> elements_;
  std::optional<arith::Analyzer> analyzer_;
  Reducer reducer_;
};

}  // namespace

std::vector<Expr> Reducer::combine(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  if (combiner != Combiner::kParts) return choose_pair(combiner, a, b);
  std::vector<Expr> combined;
  for (size_t part = 0; part < steps.size(); ++part) combined.push_back(steps[part].combine(a[part], b[part]));
  return combined;
}

FoundReducer find_reducer(const Block& block) { return Find(block).run(); }

Stmt store_all(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& values,
               const std::vector<Expr>& indices) {
  std::vector<Stmt> stores;
  for (size_t i = 0; i < buffers.size(); ++i) stores.push_back(store(buffers[i], values[i], indices));
  return seq(std::move(stores));
}

Stmt combine_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
                  const std::vector<Expr>& operands) {
  std::vector<Expr> elements;
  for (const Ref<Buffer>& buffer : buffers) elements.push_back(load(buffer, indices));
  std::vector<Expr> values = reducer.combine(elements, operands);
  if (buffers.size() == 1) return store(buffers[0], values[0], indices);
  std::vector<Expr> bound;
  std::vector<Ref<Var>> vars;
  for (size_t i = 0; i < buffers.size(); ++i) {
    vars.push_back(var("v_" + buffers[i]->name, values[i].dtype()));
    bound.push_back(vars.back());
  }
  Stmt body = store_all(buffers, bound, indices);
  for (size_t i = buffers.size(); i-- > 0;) body = make<LetStmt>({vars[i], values[i], std::move(body)});
  return body;
}

}  // namespace tilewright::analysis
