#include "arith/engine.h"

#include "arith/buffer_values.h"
#include "ir/build.h"
#include "ir/op.h"
#include "support/deep_stack.h"

namespace tilewright::arith {

// ---- public interface

Analyzer::Analyzer() : engine_(std::make_unique<Engine>()) {}
Analyzer::~Analyzer() = default;
Analyzer::Analyzer(Analyzer&&) noexcept = default;
Analyzer& Analyzer::operator=(Analyzer&&) noexcept = default;

void Analyzer::bind(const Ref<Var>& var, const Ref<Range>& range) { engine_->bind(var, range->min, range->extent); }
void Analyzer::bind(const Ref<Var>& var, const Expr& min, const Expr& extent) { engine_->bind(var, min, extent); }
void Analyzer::bind(const Ref<Var>& var, const Expr& value) { engine_->bind(var, value); }
void Analyzer::assume(const Expr& condition) { engine_->assume(condition); }
Analyzer::Scope Analyzer::constraint(const Expr& condition) { return {engine_.get(), engine_->enter(condition)}; }
Analyzer::Scope::~Scope() {
  if (engine_) engine_->leave(mark_);
}

namespace {
/// Trims the caches, then runs the query on a stack deep enough for an expression of this depth.
template <class F>
auto run_query(Engine& engine, uint32_t depth, F&& query) {
  engine.trim();
  decltype(query()) result{};
  with_stack_for(depth, [&] { result = query(); });
  return result;
}
}  // namespace

ConstIntBound Analyzer::const_int_bound(const Expr& e) {
  return run_query(*engine_, e.depth(), [&] { return engine_->bound(engine_->simplify(e)); });
}
ModularSet Analyzer::modular_set(const Expr& e) {
  return run_query(*engine_, e.depth(), [&] { return engine_->residues(engine_->simplify(e)); });
}
Expr Analyzer::simplify(const Expr& e) {
  return run_query(*engine_, e.depth(), [&] { return engine_->simplify(e); });
}
Expr Analyzer::simplify_value(const Expr& e) {
  return run_query(*engine_, e.depth(), [&] { return engine_->simplify_value(e); });
}
bool Analyzer::can_prove(const Expr& condition) {
  return run_query(*engine_, condition.depth(), [&] { return engine_->prove(condition); });
}
bool Analyzer::can_prove_written_condition(const Expr& condition) {
  if (effect_of(condition) == Effect::kPure) return can_prove(condition);
  if (const And* both = condition.as<And>())
    return can_prove_written_condition(both->a) && can_prove_written_condition(both->b);
  return is_const_int(simplify(condition), 1);
}
bool Analyzer::can_prove_equal(const Expr& a, const Expr& b) {
  return run_query(*engine_, std::max(a.depth(), b.depth()), [&] { return engine_->prove_equal(a, b); });
}
bool Analyzer::can_prove_less(const Expr& a, const Expr& b) {
  return run_query(*engine_, std::max(a.depth(), b.depth()), [&] { return engine_->prove_less(a, b, false); });
}
bool Analyzer::can_prove_less_equal(const Expr& a, const Expr& b) {
  return run_query(*engine_, std::max(a.depth(), b.depth()), [&] { return engine_->prove_less(a, b, true); });
}
bool Analyzer::can_prove_greater_equal(const Expr& e, int64_t lower) {
  return can_prove_less_equal(constant(e.dtype(), lower), e);
}

// ---- context

void Engine::clear_caches() {
  simplified_.clear();
  values_.clear();
  linears_.clear();
  bounds_of_.clear();
  value_bounds_of_.clear();
  residues_of_.clear();
}

void Engine::trim() {
  constexpr size_t kMaxMemoized = 4096;
  if (simplified_.size() > kMaxMemoized || linears_.size() > kMaxMemoized || fingerprints_.size() > kMaxMemoized) {
    clear_caches();
    fingerprints_.clear();
    value_fingerprints_.clear();
    reads_data_.clear();
  }
}

const Engine::VarInfo* Engine::info(const NodeBase* var) const {
  const VarInfo* found = vars_.find(var);
  return found && found->known ? found : nullptr;
}

void Engine::set_info(const Ref<Var>& var, VarInfo info) {
  info.known = true;
  const bool is_wide = is_index(var.dtype()) && var.dtype().bits > 32 && !info.value.defined();
  fingerprints_.set_fits_int32(var, is_wide && info.bound.within(ConstIntBound::of_type(DataType::int_(32))));
  if (VarInfo* old = vars_.find(var)) {
    *old = std::move(info);
  } else {
    vars_.insert(var, std::move(info));
  }
}

void Engine::bind(const Ref<Var>& var, const Expr& value) {
  // The value gets the type of the variable, such as for the 0 of an int32 range and an int64 variable.
  const bool is_other = var.dtype() != value.dtype() && var.dtype().is_integral() && value.dtype().is_integral();
  Expr simple = simplify(is_other ? cast(var.dtype(), value) : value);
  clear_caches();
  VarInfo info;
  // A value that mentions the variable itself would be replaced for ever.
  if (simple == var) return;
  info.value = simple;
  set_info(var, std::move(info));
  has_values_ = true;
}

void Engine::bind(const Ref<Var>& var, const Expr& min_expr, const Expr& extent_expr) {
  if (VarInfo* old = vars_.find(var)) *old = {};  // a range may not depend on what the variable was before
  fingerprints_.set_fits_int32(var, false);
  clear_caches();
  Expr min = simplify(min_expr), extent = simplify(extent_expr);
  if (is_const_int(extent, 1)) return bind(var, min);
  VarInfo info;
  info.bound = ConstIntBound::of_type(var.dtype());
  if (!is_index(var.dtype())) {
    ConstIntBound low = bound(min), high = bound(min) + bound(extent) - ConstIntBound::single(1);
    ConstIntBound inside{low.min_value, high.max_value};
    if (!inside.is_empty()) info.bound = intersect(info.bound, inside);
    clear_caches();
    set_info(var, std::move(info));
    return;
  }
  const IntImm *first = min.as<IntImm>(), *count = extent.as<IntImm>();
  if (int64_t last = 0; first && count && sub_fits(count->value, 1, &last) && add_fits(first->value, last, &last)) {
    ConstIntBound inside = ConstIntBound::between(first->value, last);
    if (inside.is_empty()) return;  // code that never runs: nothing to rely on
    info.bound = intersect(info.bound, inside);
    has_values_ |= info.bound.is_single();
    set_info(var, std::move(info));
    return;
  }
  Linear low = flat(min);
  Linear high = low;
  high.add(flat(extent));
  high.add_constant(-1);
  if (low.bad || high.bad) return;
  ConstIntBound inside{bound(low).min_value, bound(high).max_value};
  if (inside.is_empty()) return;
  info.bound = intersect(info.bound, inside);
  Fingerprint self = fp(var);
  if (!low.is_constant()) {
    Linear fact = Linear::of_atom(var, self);
    fact.add(low, -1);
    if (!fact.bad) info.facts.push_back(std::move(fact));
  }
  if (!high.is_constant()) {
    Linear fact = high;
    fact.add(var, self, -1);
    if (!fact.bad) info.facts.push_back(std::move(fact));
  }
  clear_caches();
  has_values_ |= info.bound.is_single();
  set_info(var, std::move(info));
}

void Engine::assume(const Expr& condition) {
  with_stack_for(condition.depth(), [&] { learn(simplify(condition), true); });
  clear_caches();
}

void assume(Analyzer& analyzer, const BufferDomain& domain) { analyzer.engine().assume(domain); }

void Engine::assume(const BufferDomain& domain) {
  if (elements_.find(domain.buffer->data)) return;
  const DataType type = domain.buffer->dtype;
  const ConstIntBound whole = ConstIntBound::of_type(type);
  // An end that the type of the elements may not hold is as far away as they get.
  auto end_of = [&](const Expr& e, bool is_least) -> Expr {
    Expr end = simplify(e);
    ConstIntBound range = bound(end);
    if (is_index(type) && range.within(whole)) return simplify(cast(type, end));
    return constant(type,
                    is_least ? std::max(whole.min_value, range.min_value) : std::min(whole.max_value, range.max_value));
  };
  Elements elements;
  elements.known = true;
  elements.min = end_of(domain.min, true);
  elements.max = end_of(domain.end - 1, false);
  const bool is_increasing = domain.order == ValueOrder::kIncreasing;
  const bool is_ordered = domain.order != ValueOrder::kNone && domain.order != ValueOrder::kDistinct;
  elements.ascends = is_ordered && !domain.has_segments();
  elements.strictly = elements.ascends && is_increasing;
  clear_caches();
  elements_.insert(domain.buffer->data, std::move(elements));
}

const Engine::Elements* Engine::elements(const Expr& load) const {
  const BufferLoad* element = load.as<BufferLoad>();
  if (!element || !element->buffer->dtype.is_int() || !load.dtype().is_scalar()) return nullptr;
  return elements_.find(element->buffer->data.get());
}

size_t Engine::enter(const Expr& condition) {
  marks_.push_back({facts_.size(), bounds_.size(), truths_.size(), residues_.size()});
  assume(condition);
  return marks_.size() - 1;
}

void Engine::leave(size_t mark) {
  const Mark& saved = marks_[mark];
  facts_.resize(saved.facts);
  bounds_.resize(saved.bounds);
  truths_.resize(saved.truths);
  residues_.resize(saved.residues);
  marks_.resize(mark);
  clear_caches();
}

/// `condition` is simplified.
void Engine::learn(const Expr& condition, bool value) {
  if (const And* e = condition.as<And>(); e && value) {
    learn(e->a, true);
    learn(e->b, true);
    return;
  }
  if (const Or* e = condition.as<Or>(); e && !value) {
    learn(e->a, false);
    learn(e->b, false);
    return;
  }
  if (const Not* e = condition.as<Not>()) return learn(e->a, !value);
  if (is_call_to(condition, Intrinsic::k_likely)) return learn(Expr(condition.as<Call>()->args[0]), value);
  if (condition.is<IntImm>() || condition.dtype().is_vector() || wraps(condition)) return;
  truths_.push_back({fp(condition), value});
  auto order = [&](const Expr& a, const Expr& b, bool or_equal) {
    if (!is_index(a.dtype()) || may_wrap(a) || may_wrap(b)) return;
    // value: a <(=) b; otherwise b <(=) a with the opposite strictness.
    Linear difference = value ? flat(b) - flat(a) : flat(a) - flat(b);
    if (or_equal != value) difference.add_constant(-1);
    learn_ge0(std::move(difference));
  };
  auto equality = [&](const Expr& a, const Expr& b, bool equal) {
    if (!is_index(a.dtype()) || may_wrap(a) || may_wrap(b)) return;
    Linear difference = flat(a) - flat(b);
    if (!equal) return learn_nonzero(difference);
    Linear opposite = difference;
    opposite.scale(-1);
    learn_ge0(std::move(difference));
    learn_ge0(std::move(opposite));
    learn_residue(a, b);
    learn_residue(b, a);
  };
  if (const LT* e = condition.as<LT>()) return order(e->a, e->b, false);
  if (const LE* e = condition.as<LE>()) return order(e->a, e->b, true);
  if (const EQ* e = condition.as<EQ>()) return equality(e->a, e->b, value);
  if (const NE* e = condition.as<NE>()) return equality(e->a, e->b, !value);
}

namespace {
/// Divides by the content, rounding the constant so that "terms + constant >= 0" keeps its integer solutions, and makes
/// the fingerprint the smaller of the two signs. Returns the sign.
int normalize(Linear& linear, Fingerprint* key) {
  int64_t content = linear.content();
  if (content > 1) {
    int64_t constant = floor_div(linear.constant, content);
    linear.constant = 0;
    linear.divide_exactly(content);
    linear.constant = constant;
  }
  Fingerprint plus = linear.terms_fingerprint();
  Fingerprint minus = Fingerprint{} - plus;
  *key = minus < plus ? minus : plus;
  return minus < plus ? -1 : 1;
}
}  // namespace

void Engine::learn_ge0(Linear linear) {
  if (linear.bad || linear.terms.empty()) return;
  Fingerprint key;
  int sign = normalize(linear, &key);
  if (linear.bad || linear.constant == std::numeric_limits<int64_t>::min()) return;
  // terms >= -constant, or with the other sign: key <= constant.
  ConstIntBound range;
  if (sign > 0) {
    range.min_value = ConstIntBound::single(-linear.constant).min_value;
  } else {
    range.max_value = ConstIntBound::single(linear.constant).max_value;
  }
  // An interval that leaves nothing would make everything provable: such code never runs, so rely on nothing.
  if (linear.terms.size() == 1) {
    ConstIntBound now = bound(linear.terms[0].atom);
    if (linear.terms[0].coeff < 0) now = -now;
    if (sign < 0) now = -now;
    if (intersect(now, range).is_empty()) return;
  }
  if (intersect(known_bound(key), range).is_empty()) return;
  bounds_.push_back({key, range});
  if (linear.terms.size() > 1) {
    // Each term is at least minus what the others can reach.
    for (const Term& term : linear.terms) {
      Linear others = linear;
      others.add(term.atom, term.fp, -term.coeff);
      int64_t reach = sum_bound(others).max_value;
      if (reach == ConstIntBound::kPosInf || reach == ConstIntBound::kNegInf) continue;
      // coeff * atom >= -reach
      ConstIntBound implied;
      if (term.coeff > 0) {
        implied.min_value = -floor_div(reach, term.coeff);
      } else {
        implied.max_value = floor_div(reach, -term.coeff);
      }
      Fingerprint plus = term.fp, minus = Fingerprint{} - term.fp;
      if (minus < plus) implied = -implied;
      ConstIntBound now = bound(term.atom);
      if (minus < plus) now = -now;
      if (now.within(implied) || intersect(now, implied).is_empty()) continue;
      bounds_.push_back({minus < plus ? minus : plus, implied});
    }
  }
  facts_.push_back(std::move(linear));
  bounds_of_.clear();
}

void Engine::learn_nonzero(const Linear& linear) {
  if (linear.bad || linear.terms.empty()) return;
  ConstIntBound range = bound(linear);
  Linear away = linear;
  if (range.min_value == 0) {
    away.add_constant(-1);
    learn_ge0(std::move(away));
  } else if (range.max_value == 0) {
    away.scale(-1);
    away.add_constant(-1);
    learn_ge0(std::move(away));
  }
}

/// a == b, where a is x % c and b a constant.
void Engine::learn_residue(const Expr& a, const Expr& b) {
  const FloorMod* mod = a.as<FloorMod>();
  if (!mod) return;
  auto divisor = const_int(mod->b), rest = const_int(b);
  if (!divisor || *divisor <= 1 || !rest) return;
  // Store the residue of the sum without its constant term, so that a lookup finds it for each constant term.
  Linear value = flat(mod->a);
  if (value.bad) return;
  int64_t base = floor_mod(floor_mod(*rest, *divisor) - floor_mod(value.constant, *divisor), *divisor);
  residues_.push_back({value.terms_fingerprint(), ModularSet::make(*divisor, base)});
}

ConstIntBound Engine::known_bound(Fingerprint terms) const {
  ConstIntBound result;
  for (const KnownBound& known : bounds_) {
    if (known.terms == terms) result = intersect(result, known.bound);
  }
  return result;
}

std::optional<bool> Engine::known_truth(Fingerprint condition) const {
  for (const KnownTruth& known : truths_) {
    if (known.condition == condition) return known.value;
  }
  return std::nullopt;
}

}  // namespace tilewright::arith
