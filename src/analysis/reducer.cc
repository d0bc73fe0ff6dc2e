#include "analysis/reducer.h"

#include <algorithm>
#include <array>

#include "analysis/may_fail.h"
#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Recognizes an argmin- or argmax-like selection: rewrites its condition as comparisons of the parts of two pairs, and
/// evaluates it for each order of these parts.
class PairSelectReader {
 public:
  PairSelectReader(const std::vector<Expr>& elements, const std::vector<Expr>& operands) {
    for (size_t part = 0; part < 2; ++part) {
      parts_[part] = {elements[part], operands[part]};
      choice_.before[part] = var("before" + std::to_string(part), elements[part].dtype());
      choice_.added[part] = var("added" + std::to_string(part), operands[part].dtype());
    }
  }

  /// `keeps`: per part, the condition under which the accumulated one is kept.
  std::optional<PairSelect> run(const std::vector<Expr>& keeps) {
    for (size_t part = 0; part < 2; ++part) {
      choice_.keeps[part] = in_parts(keeps[part]);
      if (!choice_.keeps[part].defined()) return std::nullopt;
    }
    for (size_t deciding : {1, 0}) {
      for (int better : {1, -1}) {
        if (auto tie = tie_where(deciding, better)) {
          choice_.tie = *tie;
          return choice_;
        }
      }
    }
    return std::nullopt;
  }

 private:
  using Tie = PairSelect::Tie;

  /// Replaces the parts in a condition by variables. Returns null if it contains anything but comparisons of parts.
  Expr in_parts(const Expr& condition) {
    auto both = [&](const auto* node, auto join) {
      Expr a = in_parts(node->a), b = in_parts(node->b);
      return a.defined() && b.defined() ? join(a, b) : Expr();
    };
    // The order within each part does not determine comparisons between different parts.
    auto compare = [&](const auto* node, auto join) {
      Expr a = part_of(node->a), b = part_of(node->b);
      return are_one_part(a, b) ? join(a, b) : Expr();
    };
    if (const And* node = condition.as<And>()) return both(node, [](auto& a, auto& b) { return logical_and(a, b); });
    if (const Or* node = condition.as<Or>()) return both(node, [](auto& a, auto& b) { return logical_or(a, b); });
    if (const Not* node = condition.as<Not>()) {
      Expr inner = in_parts(node->a);
      return inner.defined() ? logical_not(inner) : Expr();
    }
    if (const LT* node = condition.as<LT>()) return compare(node, [](auto& a, auto& b) { return lt(a, b); });
    if (const LE* node = condition.as<LE>()) return compare(node, [](auto& a, auto& b) { return le(a, b); });
    if (const GT* node = condition.as<GT>()) return compare(node, [](auto& a, auto& b) { return gt(a, b); });
    if (const GE* node = condition.as<GE>()) return compare(node, [](auto& a, auto& b) { return ge(a, b); });
    if (const EQ* node = condition.as<EQ>()) return compare(node, [](auto& a, auto& b) { return eq(a, b); });
    if (const NE* node = condition.as<NE>()) return compare(node, [](auto& a, auto& b) { return ne(a, b); });
    return {};
  }
  Expr part_of(const Expr& e) const {
    for (size_t part : {1, 0}) {
      if (same_expr(e, parts_[part][0])) return choice_.before[part];
      if (same_expr(e, parts_[part][1])) return choice_.added[part];
    }
    return {};
  }

  bool are_one_part(const Expr& a, const Expr& b) const {
    for (size_t part : {0, 1}) {
      const Expr before = choice_.before[part], added = choice_.added[part];
      if ((a == before && b == added) || (a == added && b == before)) return true;
    }
    return false;
  }

  /// Whether part `part` of the accumulated pair is kept if the parts of that pair are smaller than (-1), equal to (0)
  /// or larger than (1) those of the new pair.
  bool keeps(size_t part, std::array<int, 2> order) const { return holds(choice_.keeps[part], order); }
  bool holds(const Expr& condition, std::array<int, 2> order) const {
    if (const And* node = condition.as<And>()) return holds(node->a, order) && holds(node->b, order);
    if (const Or* node = condition.as<Or>()) return holds(node->a, order) || holds(node->b, order);
    if (const Not* node = condition.as<Not>()) return !holds(node->a, order);
    if (const LT* node = condition.as<LT>()) return sign(node, order) < 0;
    if (const LE* node = condition.as<LE>()) return sign(node, order) <= 0;
    if (const GT* node = condition.as<GT>()) return sign(node, order) > 0;
    if (const GE* node = condition.as<GE>()) return sign(node, order) >= 0;
    if (const EQ* node = condition.as<EQ>()) return sign(node, order) == 0;
    return sign(condition.as<NE>(), order) != 0;
  }
  template <class Comparison>
  int sign(const Comparison* node, std::array<int, 2> order) const {
    for (size_t part = 0; part < 2; ++part) {
      if (node->a == choice_.before[part] && node->b == choice_.added[part]) return order[part];
      if (node->b == choice_.before[part] && node->a == choice_.added[part]) return -order[part];
    }
    return 0;
  }

  /// Returns how ties are resolved, if otherwise the pair with the larger (`better` 1) or smaller (-1) deciding part is
  /// kept.
  std::optional<Tie> tie_where(size_t deciding, int better) const {
    const size_t other = 1 - deciding;
    auto order = [&](int of_deciding, int of_other) {
      std::array<int, 2> result{};
      result[deciding] = of_deciding;
      result[other] = of_other;
      return result;
    };
    for (size_t part : {0, 1}) {
      for (int of_other : {-1, 0, 1}) {
        if (!keeps(part, order(better, of_other)) || keeps(part, order(-better, of_other))) return std::nullopt;
      }
    }
    const bool smaller = keeps(other, order(0, -1)), equal = keeps(other, order(0, 0)),
               larger = keeps(other, order(0, 1));
    if (smaller && larger) return equal ? std::optional(Tie::kFirst) : std::nullopt;
    if (smaller != larger) return smaller ? Tie::kSmaller : Tie::kLarger;
    return equal ? std::nullopt : std::optional(Tie::kLast);
  }

  std::array<std::array<Expr, 2>, 2> parts_;  ///< per part: that of the element, and of the operand
  PairSelect choice_;
};

/// Returns the stores that a statement consists of; nothing if it contains other statements.
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

/// Whether the value of a store reads a buffer that an earlier store has changed.
bool reads_earlier_stores(const std::vector<const BufferStore*>& stores) {
  bool reads = false;
  for (size_t later = 1; later < stores.size(); ++later) {
    visit(stores[later]->value, [&](const Ref<BufferLoad>& load) {
      for (size_t i = 0; i < later; ++i) reads |= stores[i]->buffer->data == load->buffer->data;
    });
  }
  return reads;
}

/// The stores of the body, in the order in which their values are computed. Let variables are substituted.
struct Update {
  std::vector<Ref<Buffer>> buffers;
  std::vector<Expr> values, indices;
};

class ReducerFinder {
 public:
  explicit ReducerFinder(const Block& block) : block_(block) {}

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
    if (read_body() && read_init()) {
      bool known = combines_parts() || (why_.empty() && selects_pairs());
      if (known && reads_no_results() && starts_fit()) {
        result.reducer = std::move(reducer_);
        return result;
      }
      if (why_.empty()) {
        why_ = bound_ ? "what it stores is not a known operation of the element and one operand"
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

  /// Reads the body: lets around one store of each let variable, or stores that do not read what earlier ones write.
  /// Other let variables, such as a condition that several values share, are substituted.
  bool read_body() {
    Stmt body = block_.body;
    std::vector<const LetStmt*> lets;
    for (const LetStmt* let = body.as<LetStmt>(); let != nullptr; let = body.as<LetStmt>()) {
      if (effect_of(let->value) > Effect::kReadState) return say("it binds a value whose computation has effects");
      lets.push_back(let);
      body = let->body;
    }
    const auto stores = stores_of(body);
    if (!stores) return say("its body is not a store, or stores of values bound before");
    update_.indices = stores->front()->indices;

    VarMap names;
    std::vector<const BufferStore*> bound;  // in the order of their lets
    for (const LetStmt* let : lets) {
      auto is_it = [&](const BufferStore* store) { return store->value == let->var; };
      const auto times = std::ranges::count_if(*stores, is_it);
      if (times > 1) return say("it stores a value that it binds more than once");
      names.emplace(let->var, substitute(let->value, names));
      if (times == 1) bound.push_back(*find_if(*stores, is_it));
    }
    if (!bound.empty() && bound.size() != stores->size()) {
      return say("it stores some values that it binds, and others that it does not bind");
    }
    bound_ = !bound.empty() || !reads_earlier_stores(*stores);
    const auto& ordered = bound.empty() ? *stores : bound;
    return all_of(ordered, [&](const BufferStore* s) { return add(*s, substitute(s->value, names)); });
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

  bool read_init() {
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
      auto found = find_if(*stores, is_it);
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

  /// Returns an analyzer that knows the domains of the axes.
  arith::Analyzer& analyzer() {
    if (!analyzer_) {
      analyzer_.emplace();
      for (const Ref<IterVar>& axis : block_.iter_vars) {
        if (axis->dom.defined()) analyzer_->bind(axis->var, axis->dom);
      }
    }
    return *analyzer_;
  }

  /// Whether each buffer is updated by an independent reduction step.
  bool combines_parts() {
    for (size_t part : indices_of(elements_)) {
      BufferStore store{update_.buffers[part], update_.values[part], update_.indices, {}};
      auto step = ReductionStep::of(store);
      if (!step || step->is_difference()) return false;
      if (may_fail_early(*step, analyzer())) {
        return say("what its element is combined with is not evaluated once that decides the result, and might fail");
      }
      reducer_.operands.push_back(step->operand());
      reducer_.steps.push_back(std::move(*step));
    }
    return true;
  }

  /// Whether the body selects the accumulated or the new pair.
  bool selects_pairs() {
    reducer_.operands.clear();
    reducer_.steps.clear();
    if (elements_.size() != 2 || !bound_) return false;
    std::vector<Expr> keeps;
    for (size_t part = 0; part < 2; ++part) {
      const Select* choice = update_.values[part].as<Select>();
      if (!choice) return false;
      const bool is_kept = same_expr(choice->true_value, elements_[part]);
      if (!is_kept && !same_expr(choice->false_value, elements_[part])) return false;
      reducer_.operands.push_back(is_kept ? choice->false_value : choice->true_value);
      keeps.push_back(is_kept ? choice->condition : logical_not(choice->condition));
    }
    reducer_.pairs = PairSelectReader(elements_, reducer_.operands).run(keeps);
    return reducer_.pairs.has_value();
  }

  bool reads_no_results() {
    bool reads_own = false;
    for (const Expr& operand : reducer_.operands) {
      visit(operand, [&](const Ref<BufferLoad>& load) {
        for (const Ref<Buffer>& buffer : reducer_.buffers) reads_own |= load->buffer->data == buffer->data;
      });
    }
    return !reads_own || say("what it adds to an element depends on elements that it writes");
  }

  /// Whether the values of the init are identities, or constants that may be combined again.
  bool starts_fit() {
    for (size_t part : indices_of(reducer_.starts)) {
      Expr start = reducer_.starts[part];
      bool fits = false;
      if (!reducer_.pairs) {
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
  bool bound_ = true;  ///< whether all values are computed as if before the first store
  std::vector<Expr> elements_;
  std::optional<arith::Analyzer> analyzer_;
  Reducer reducer_;
};

}  // namespace

std::vector<Expr> Reducer::step(const std::vector<Expr>& element, const std::vector<Expr>& operand) const {
  if (pairs) return combine(element, operand);
  std::vector<Expr> after;
  for (size_t part : indices_of(steps)) after.push_back(steps[part].step(element[part], operand[part]));
  return after;
}

std::vector<Expr> Reducer::combine(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  std::vector<Expr> combined;
  if (pairs) {
    VarMap parts;
    for (size_t part = 0; part < 2; ++part) {
      parts.emplace(pairs->before[part], a[part]);
      parts.emplace(pairs->added[part], b[part]);
    }
    for (size_t part = 0; part < 2; ++part) {
      const Expr keeps = substitute(pairs->keeps[part], parts);
      const Not* replaces = keeps.as<Not>();
      combined.push_back(replaces ? select(Expr(replaces->a), b[part], a[part]) : select(keeps, a[part], b[part]));
    }
    return combined;
  }
  for (size_t part : indices_of(steps)) combined.push_back(steps[part].combine(a[part], b[part]));
  return combined;
}

FoundReducer find_reducer(const Block& block) { return ReducerFinder(block).run(); }

bool selects_pairs(const NodeRef& program) {
  return any_node(program, [](const Ref<Block>& block) {
    const FoundReducer reducer = find_reducer(*block);
    return reducer.reducer && reducer.reducer->pairs;
  });
}

FoundReducer find_accumulation(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  auto step = store && !store->predicate.defined() ? ReductionStep::of(*store) : std::nullopt;
  if (!step || !block.alloc_buffers.empty() || !block.match_buffers.empty()) {
    return {{}, "it has no init, and is not one store that combines an element with a value"};
  }
  arith::Analyzer analyzer;
  for (const Ref<IterVar>& axis : block.iter_vars) {
    if (axis->dom.defined()) analyzer.bind(axis->var, axis->dom);
  }
  if (may_fail_early(*step, analyzer)) {
    return {{}, "what its element is combined with is not evaluated once that decides the result, and might fail"};
  }
  Reducer reducer;
  reducer.buffers = {store->buffer};
  reducer.indices = store->indices;
  reducer.starts = {step->identity()};
  reducer.operands = {step->operand()};
  reducer.steps = {std::move(*step)};
  return {std::move(reducer), ""};
}

Stmt store_all(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& values,
               const std::vector<Expr>& indices) {
  std::vector<Stmt> stores;
  for (size_t i : indices_of(buffers)) stores.push_back(store(buffers[i], values[i], indices));
  return seq(std::move(stores));
}

namespace {

std::vector<Expr> elements_of(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices) {
  std::vector<Expr> elements;
  for (const Ref<Buffer>& buffer : buffers) elements.push_back(load(buffer, indices));
  return elements;
}

/// Returns statements that compute all values before the first store, since the values depend on the stored elements.
Stmt store_at_once(const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& values,
                   const std::vector<Expr>& indices) {
  if (buffers.size() == 1) return store(buffers[0], values[0], indices);
  std::vector<Expr> bound;
  std::vector<Ref<Var>> vars;
  for (size_t i : indices_of(buffers)) {
    vars.push_back(var("v_" + buffers[i]->name, values[i].dtype()));
    bound.push_back(vars.back());
  }
  Stmt body = store_all(buffers, bound, indices);
  for (size_t i = buffers.size(); i-- > 0;) body = make<LetStmt>({vars[i], values[i], std::move(body)});
  return body;
}

}  // namespace

Stmt step_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
               const std::vector<Expr>& operands) {
  return store_at_once(buffers, reducer.step(elements_of(buffers, indices), operands), indices);
}

Stmt combine_into(const Reducer& reducer, const std::vector<Ref<Buffer>>& buffers, const std::vector<Expr>& indices,
                  const std::vector<Expr>& operands) {
  return store_at_once(buffers, reducer.combine(elements_of(buffers, indices), operands), indices);
}

}  // namespace tilewright::analysis
