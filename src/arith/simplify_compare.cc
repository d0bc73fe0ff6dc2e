// Comparisons, logic, min, max and select. Sides of a comparison keep their place where they can: i * 32 + j < n stays
// so, and what moves never makes a sum that was not there before (a sum of a subset of its terms does not overflow).
#include "arith/engine.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Terms that both sides have with the same coefficient.
Linear take_common(Linear& a, Linear& b) {
  Linear common;
  for (const Term& term : a.terms) {
    const Term* other = b.find(term.fp);
    if (other && (other->coeff < 0) == (term.coeff < 0)) {
      bool smaller = (term.coeff < 0) == (term.coeff > other->coeff);
      common.terms.push_back(smaller ? term : *other);
    }
  }
  for (const Term& term : common.terms) {
    a.add(term.atom, term.fp, -term.coeff);
    b.add(term.atom, term.fp, -term.coeff);
  }
  return common;
}

}  // namespace

Expr Engine::simplify_compare(const Expr& e) {
  const auto [left, right] = binary_operands(e);
  Expr a = simplify(*left), b = simplify(*right);
  if (auto folded = fold_binary(e.kind(), a, b)) return *folded;
  if (!is_index(a.dtype()) || wraps(e)) {
    if (a.dtype().is_integral()) {
      ConstIntBound x = bound(a), y = bound(b);
      bool same = fp(a) == fp(b);
      bool less = x.max_value < y.min_value, greater = y.max_value < x.min_value;
      bool less_equal = x.max_value <= y.min_value || same, greater_equal = y.max_value <= x.min_value || same;
      auto decide = [&](bool yes, bool no) -> std::optional<Expr> {
        if (yes || no) return Expr(bool_imm(yes));
        return std::nullopt;
      };
      std::optional<Expr> decided;
      if (e.is<LT>()) decided = decide(less, greater_equal);
      if (e.is<LE>()) decided = decide(less_equal, greater);
      if (e.is<GT>()) decided = decide(greater, less_equal);
      if (e.is<GE>()) decided = decide(greater_equal, less);
      if (e.is<EQ>()) decided = decide(same, less || greater);
      if (e.is<NE>()) decided = decide(less || greater, same);
      if (decided) return *decided;
    }
    return a == *left && b == *right ? e : binary(e.kind(), a, b);
  }
  Expr result;
  switch (e.kind()) {
    case Kind::kLT:
      result = simplify_order(a, b, false);
      break;
    case Kind::kLE:
      result = simplify_order(a, b, true);
      break;
    case Kind::kGT:
      result = simplify_order(b, a, false);
      break;
    case Kind::kGE:
      result = simplify_order(b, a, true);
      break;
    default:
      result = simplify_equality(a, b, e.is<NE>());
  }
  return result;
}

/// a < b or a <= b of simplified index expressions.
Expr Engine::simplify_order(const Expr& a, const Expr& b, bool or_equal) {
  auto as_given = [&] { return make_binary(or_equal ? Kind::kLE : Kind::kLT, a, b); };
  Linear left = flat(a), right = flat(b);
  Linear slack = right - left;  // >= 0 decides
  if (!or_equal) slack.add_constant(-1);
  if (slack.bad) return as_given();
  ConstIntBound range = bound(slack);
  if (range.min_value >= 0) return bool_imm(true);
  if (range.max_value < 0) return bool_imm(false);
  if (prove_ge0(slack)) return bool_imm(true);
  Linear opposite = slack;
  opposite.scale(-1);
  opposite.add_constant(-1);
  if (prove_ge0(opposite)) return bool_imm(false);

  take_common(left, right);
  if (right.terms.empty() || left.terms.empty()) {
    // terms <(=) limit; a lower limit as an upper one of the negated terms
    bool lower = left.terms.empty();
    Linear& terms = lower ? right : left;
    Linear& other = lower ? left : right;
    int64_t limit = 0;
    if (!sub_fits(other.constant, terms.constant, &limit)) return as_given();
    terms.constant = 0;
    if (lower) {
      terms.scale(-1);
      limit = -limit;
    }
    reduce_order(terms, limit, or_equal);
    if (lower) {
      terms.scale(-1);
      limit = -limit;
    }
    other.constant = limit;
  } else if ((left.constant >= 0 && right.constant >= 0) || (left.constant <= 0 && right.constant <= 0)) {
    // Towards 0 only: what was representable stays so.
    int64_t difference = right.constant - left.constant;
    bool to_right = (difference >= 0) == (left.constant >= 0 && right.constant >= 0);
    right.constant = to_right ? difference : 0;
    left.constant = to_right ? 0 : -difference;
  }
  return as_given_sides(left, right, or_equal, a, b);
}

/// terms <(=) limit: divides by the content, drops terms that cannot matter.
void Engine::reduce_order(Linear& terms, int64_t& limit, bool& or_equal) {
  int64_t last = limit;
  if (!or_equal && !sub_fits(limit, 1, &last)) return;
  bool changed = false;
  // g s + t <= last with k g <= t < k g + g: where (last mod g) holds every t - k g, it says s <= last // g - k.
  auto drop = [&](int64_t g) {
    Linear s, t;
    for (const Term& term : terms.terms) {
      if (term.coeff % g == 0) {
        s.terms.push_back({term.atom, term.coeff / g, term.fp});
      } else {
        t.terms.push_back(term);
      }
    }
    if (t.terms.empty() || s.terms.empty()) return false;
    ConstIntBound range = bound(t);
    if (!range.is_finite()) return false;
    int64_t k = floor_div(range.min_value, g);
    if (k != floor_div(range.max_value, g) || floor_mod(last, g) < floor_mod(range.max_value, g)) return false;
    terms = s;
    last = floor_div(last, g) - k;
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    int64_t content = terms.content();
    if (content > 1) {
      terms.divide_exactly(content);
      last = floor_div(last, content);
      changed = true;
    }
    for (const Term& pivot : terms.terms) {
      int64_t g = pivot.coeff < 0 ? -pivot.coeff : pivot.coeff;
      if (g > 1 && drop(g)) {
        again = changed = true;
        break;
      }
    }
  }
  if (!changed) return;
  limit = last;
  if (!or_equal && !add_fits(last, 1, &limit)) or_equal = true;
}

Expr Engine::as_given_sides(Linear left, Linear right, bool or_equal, const Expr& a, const Expr& b) {
  DataType type = a.dtype();
  // A side of one sign against 0 moves over: 0 < n - i is i < n, -i < -3 is 3 < i.
  auto split_signs = [](Linear& side, Linear& other) {
    if (!other.terms.empty() || other.constant != 0 || side.constant != 0) return;
    Linear positive, negative;
    for (const Term& term : side.terms) {
      if (term.coeff < 0) {
        negative.terms.push_back({term.atom, -term.coeff, term.fp});
      } else {
        positive.terms.push_back(term);
      }
    }
    if (negative.terms.empty()) return;
    side = positive;
    other = negative;
  };
  auto flip = [](Linear& x, Linear& y) {
    bool negative = !x.terms.empty() && all_of(x.terms, [](const Term& term) { return term.coeff < 0; });
    if (!negative || !y.terms.empty()) return;
    x.scale(-1);
    y.scale(-1);
    std::swap(x, y);
  };
  split_signs(left, right);
  split_signs(right, left);
  flip(left, right);
  if (!right.terms.empty() && left.terms.empty()) flip(right, left);
  auto x = to_expr(left, type), y = to_expr(right, type);
  if (!x || !y) return make_binary(or_equal ? Kind::kLE : Kind::kLT, a, b);
  return make_binary(or_equal ? Kind::kLE : Kind::kLT, *x, *y);
}

Expr Engine::simplify_equality(const Expr& a, const Expr& b, bool negated) {
  auto build = [&](const Expr& x, const Expr& y) { return make_binary(negated ? Kind::kNE : Kind::kEQ, x, y); };
  Linear left = flat(a), right = flat(b);
  Linear difference = left - right;
  if (difference.bad) return build(a, b);
  recombine(difference);
  if (difference.is_zero() || difference.fingerprint().is_zero()) return bool_imm(!negated);
  if (!bound(difference).contains(0)) return bool_imm(negated);
  ModularSet set = residues(difference);
  if (set.coeff == 0 ? set.base != 0 : floor_mod(set.base, set.coeff) != 0) return bool_imm(negated);
  Linear positive = difference, negative = difference;
  positive.add_constant(-1);
  negative.scale(-1);
  negative.add_constant(-1);
  if (prove_ge0(positive) || prove_ge0(negative)) return bool_imm(negated);
  negative.add_constant(1);
  positive.add_constant(1);
  if (!positive.bad && prove_ge0(positive) && prove_ge0(negative)) return bool_imm(!negated);

  take_common(left, right);
  int64_t constant = 0;
  if (left.terms.empty() || right.terms.empty()) {
    Linear& side = left.terms.empty() ? right : left;
    Linear& other = left.terms.empty() ? left : right;
    if (!sub_fits(other.constant, side.constant, &constant)) return build(a, b);
    int64_t content = side.content();
    if (side.terms[0].coeff < 0) content = -content;
    side.constant = 0;
    side.divide_exactly(content);
    Linear value = Linear::of_int(constant / content);  // exact: the residues were checked
    if (constant == 0 && side.terms.size() == 2 && side.terms[1].coeff == -1 && side.terms[0].coeff == 1) {
      value.terms.push_back({side.terms[1].atom, 1, side.terms[1].fp});
      side.terms.pop_back();
    }
    left = side;
    right = value;
  } else if ((left.constant < 0) == (right.constant < 0)) {
    constant = right.constant - left.constant;
    left.constant = constant < 0 ? -constant : 0;
    right.constant = constant > 0 ? constant : 0;
  }
  auto x = to_expr(left, a.dtype()), y = to_expr(right, a.dtype());
  return x && y ? build(*x, *y) : build(a, b);
}

// ---- logic

namespace {

template <class T>
void operands_of_chain(const Expr& e, std::vector<Expr>& out) {
  if (const T* node = e.as<T>()) {
    operands_of_chain<T>(node->a, out);
    operands_of_chain<T>(node->b, out);
  } else {
    out.push_back(e);
  }
}

}  // namespace

/// And, Or: each operand is simplified where the ones before it hold (do not hold), and dropped if they decide it.
Expr Engine::simplify_logic(const Expr& e) {
  if (e.dtype().is_vector()) return rebuild(e);
  bool conjunction = e.is<And>();
  std::vector<Expr> parts, kept;
  if (conjunction) {
    operands_of_chain<And>(e, parts);
  } else {
    operands_of_chain<Or>(e, parts);
  }
  // An operand may only hold because of one after it: a second pass in the opposite direction sees those too.
  constexpr size_t kMaxParts = 12;
  auto pass = [&](const std::vector<Expr>& in, std::vector<Expr>& out) {
    size_t outer = marks_.size();
    bool decided = false;
    for (const Expr& part : in) {
      Expr simple = simplify(part);
      if (const IntImm* imm = simple.as<IntImm>()) {
        if ((imm->value != 0) == conjunction) continue;
        decided = true;
        break;
      }
      size_t before = out.size();
      if (conjunction) {
        operands_of_chain<And>(simple, out);
      } else {
        operands_of_chain<Or>(simple, out);
      }
      if (in.size() > kMaxParts) continue;
      for (size_t i = before; i < out.size(); ++i) {
        marks_.push_back({facts_.size(), bounds_.size(), truths_.size(), residues_.size()});
        learn(out[i], conjunction);
        clear_caches();
      }
    }
    if (marks_.size() > outer) leave(outer);
    return decided;
  };
  if (pass(parts, kept)) return bool_imm(!conjunction);
  if (kept.size() > 1 && kept.size() <= kMaxParts) {
    std::ranges::reverse(kept);
    std::vector<Expr> again;
    if (pass(kept, again)) return bool_imm(!conjunction);
    std::ranges::reverse(again);
    // Pointer comparison shows whether anything changed; unchanged parts keep their form of the first pass.
    kept = std::move(again);
  }
  if (kept.empty()) return bool_imm(conjunction);
  Expr result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) {
    result = make_binary(conjunction ? Kind::kAnd : Kind::kOr, result, kept[i]);
  }
  return result;
}

Expr Engine::simplify_not(const Expr& e) {
  Expr a = simplify(e.as<Not>()->a);
  if (const IntImm* imm = a.as<IntImm>()) return bool_imm(imm->value == 0);
  if (const Not* inner = a.as<Not>()) return inner->a;
  if (const auto [x, y] = binary_operands(a); x) {
    if (x->dtype().is_integral() && !a.is<And>() && !a.is<Or>()) {  // NaN compares false both ways
      if (a.is<LT>()) return simplify(make<LE>({*y, *x}));
      if (a.is<LE>()) return simplify(make<LT>({*y, *x}));
      if (a.is<GT>()) return simplify(make<LE>({*x, *y}));
      if (a.is<GE>()) return simplify(make<LT>({*x, *y}));
      if (a.is<EQ>()) return simplify(make<NE>({*x, *y}));
      if (a.is<NE>()) return simplify(make<EQ>({*x, *y}));
    }
    if (a.is<And>()) return simplify(make<Or>({Expr(make<Not>({*x})), Expr(make<Not>({*y}))}));
    if (a.is<Or>()) return simplify(make<And>({Expr(make<Not>({*x})), Expr(make<Not>({*y}))}));
  }
  return a == e.as<Not>()->a ? e : Expr(make<Not>({a}));
}

// ---- min, max, select

Expr Engine::simplify_min_max(const Expr& e) {
  bool is_min = e.is<Min>();
  const auto [left, right] = binary_operands(e);
  Expr a = simplify(*left), b = simplify(*right);
  auto as_given = [&] { return a == *left && b == *right ? e : make_binary(e.kind(), a, b); };
  if (auto folded = fold_binary(e.kind(), a, b)) return *folded;
  if (a == b) return a;
  if (!a.dtype().is_integral()) return as_given();
  if (a.is<IntImm>()) std::swap(a, b);  // constants stand on the right
  if (!is_index(a.dtype()) || wraps(e)) {
    if (fp(a) == fp(b)) return a;
    ConstIntBound x = bound(a), y = bound(b);
    if (x.max_value <= y.min_value) return is_min ? a : b;
    if (y.max_value <= x.min_value) return is_min ? b : a;
    return as_given();
  }
  Linear x = flat(a), y = flat(b);
  Linear difference = y - x;
  if (difference.bad) return as_given();
  if (prove_ge0(difference)) return is_min ? a : b;
  difference.scale(-1);
  if (prove_ge0(difference)) return is_min ? b : a;
  // min(g x, g y) = g min(x, y)
  if (int64_t g = gcd(gcd(x.content(), x.constant), gcd(y.content(), y.constant)); g > 1) {
    x.divide_exactly(g);
    y.divide_exactly(g);
    auto p = to_expr(x, a.dtype()), q = to_expr(y, a.dtype());
    if (p && q) {
      Linear product = flat(simplify(make_binary(e.kind(), *p, *q)));
      product.scale(g);
      if (auto result = product.bad ? std::nullopt : to_expr(product, a.dtype())) return *result;
    }
  }
  // min(x + z, y + z) = min(x, y) + z
  const Linear whole_x = x, whole_y = y;
  Linear common = take_common(x, y);
  if (common.terms.empty() && x.constant == y.constant && x.constant != 0) {
    common.constant = x.constant;
    x.constant = y.constant = 0;
  }
  if ((!common.terms.empty() || common.constant != 0) && stays_inside(x, a.dtype(), whole_x) &&
      stays_inside(y, a.dtype(), whole_y)) {
    auto p = to_expr(x, a.dtype()), q = to_expr(y, a.dtype());
    if (p && q) {
      Expr inner = simplify(make_binary(e.kind(), *p, *q));
      Linear sum = flat(inner);
      sum.add(common);
      if (auto result = sum.bad ? std::nullopt : to_expr(sum, a.dtype())) return *result;
    }
  }
  return as_given();
}

Expr Engine::simplify_select(const Expr& condition, const Expr& true_value, const Expr& false_value,
                             const Expr& original) {
  Expr c = simplify(condition);
  if (const IntImm* imm = c.as<IntImm>()) return simplify(imm->value ? true_value : false_value);
  auto under = [&](const Expr& value, bool holds) {
    if (value.is<IntImm>() || value.is<FloatImm>() || c.dtype().is_vector()) return simplify(value);
    // Both values of a Select are evaluated, so their loads have to be in bounds whatever the condition is.
    if (original.is<Select>() && effect_of(value) != Effect::kPure) return simplify(value);
    marks_.push_back({facts_.size(), bounds_.size(), truths_.size(), residues_.size()});
    size_t mark = marks_.size() - 1;
    learn(c, holds);
    clear_caches();
    Expr result = simplify(value);
    leave(mark);
    return result;
  };
  Expr t = under(true_value, true), f = under(false_value, false);
  if (t == f || (t.dtype().is_integral() && fp(t) == fp(f))) {
    if (effect_of(c) != Effect::kUpdateState) return t;
  }
  if (t.dtype().is_bool() && t.dtype().is_scalar() && c.dtype().is_scalar() && original.is<Select>()) {
    if (is_true(t) && is_false(f)) return c;
    if (is_false(t) && is_true(f)) return simplify(make<Not>({c}));
  }
  if (original.is<Select>()) {
    return c == condition && t == true_value && f == false_value ? original : Expr(make<Select>({c, t, f}));
  }
  // Merge nested conditions. rules.cc does that for Select.
  auto nested = [&](const Expr& arm) { return is_call_to(arm, Intrinsic::k_if_then_else) ? arm.as<Call>() : nullptr; };
  auto same = [&](const Expr& x, const Expr& y) { return x == y || (x.dtype() == y.dtype() && fp(x) == fp(y)); };
  if (const Call* inner = nested(t); inner && !fingerprints_.has_effect(f) && same(inner->arg(2), f)) {
    return simplify(make<Call>({original.dtype(), inner->op, {logical_and(c, inner->arg(0)), inner->args[1], f}}));
  }
  if (const Call* inner = nested(f); inner && !fingerprints_.has_effect(t) && same(inner->arg(1), t)) {
    return simplify(make<Call>({original.dtype(), inner->op, {logical_or(c, inner->arg(0)), t, inner->args[2]}}));
  }
  if (c == condition && t == true_value && f == false_value) return original;
  return make<Call>({original.dtype(), original.as<Call>()->op, {c, t, f}});
}

}  // namespace tilewright::arith
