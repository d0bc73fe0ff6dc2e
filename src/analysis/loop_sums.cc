#include "analysis/loop_sums.h"

#include <algorithm>

#include "arith/bound.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

constexpr int64_t kFar = Span64::kFar;

int64_t saturate(int64_t value) { return std::clamp(value, -kFar, kFar); }
int64_t plus(int64_t a, int64_t b) { return saturate(a + b); }
int64_t times(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kFar : -kFar;
  return saturate(product);
}
Span64 plus(Span64 a, Span64 b) { return {plus(a.lo, b.lo), plus(a.hi, b.hi)}; }
/// An empty span (hi < lo) stays empty.
Span64 times(Span64 a, int64_t factor) {
  int64_t x = times(a.lo, factor), y = times(a.hi, factor);
  return factor < 0 ? Span64{y, x} : Span64{x, y};
}

/// Divides the sum by the greatest common divisor of its coefficients, its constant and `divisor`, and returns it. The
/// result is 1 if the constant is an interval.
int64_t take_common_factor(LoopSum& sum, int64_t divisor) {
  if (sum.constant.lo != sum.constant.hi) return 1;
  int64_t common = arith::gcd(divisor, sum.constant.lo);
  for (const LoopSum::Term& term : sum) common = arith::gcd(common, term.coeff);
  for (int i = 0; i < sum.count; ++i) sum.terms[i].coeff /= common;
  sum.constant = {sum.constant.lo / common, sum.constant.hi / common};
  return common;
}

}  // namespace

bool operator==(const LoopSum& a, const LoopSum& b) {
  return a.constant.lo == b.constant.lo && a.constant.hi == b.constant.hi && std::ranges::equal(a, b);
}

LoopSum LoopSums::constant(int64_t value) {
  LoopSum sum;
  sum.constant = {saturate(value), saturate(value)};
  return sum;
}

LoopSum LoopSums::of_atom(uint32_t atom) {
  LoopSum sum;
  sum.terms[0] = {atom, 1};
  sum.count = 1;
  return sum;
}

uint32_t LoopSums::intern(Atom atom, const LoopSum* a, const LoopSum* b) {
  for (uint32_t i = 0; i < atoms_.size(); ++i) {
    const Atom& known = atoms_[i];
    if (known.form != atom.form || known.divisor != atom.divisor || known.node != atom.node) continue;
    if ((!a || sums_[known.a] == *a) && (!b || sums_[known.b] == *b)) return i;
  }
  auto keep = [&](const LoopSum* operand) -> uint32_t {
    if (!operand) return 0;
    atom.levels |= levels(*operand);
    sums_.push_back(*operand);
    return static_cast<uint32_t>(sums_.size() - 1);
  };
  atom.a = keep(a);
  atom.b = keep(b);
  atoms_.push_back(atom);
  return static_cast<uint32_t>(atoms_.size() - 1);
}

uint32_t LoopSums::add_loop(int depth, const LoopSum& min, int64_t extent) {
  sums_.push_back(min);
  Atom atom{.form = Form::kLoop, .depth = depth, .extent = extent};
  atom.a = static_cast<uint32_t>(sums_.size() - 1);
  atom.levels = level_bit(depth) | levels(min);
  atoms_.push_back(atom);
  return static_cast<uint32_t>(atoms_.size() - 1);
}

LoopSum LoopSums::opaque(const NodeRef& node, Levels levels) {
  Atom atom{.form = Form::kOpaque, .levels = levels, .node = node.get()};
  return of_atom(intern(atom, nullptr, nullptr));
}

LoopSum LoopSums::scaled(const LoopSum& a, int64_t factor) const {
  LoopSum result;
  result.constant = times(a.constant, factor);
  if (factor == 0) return result;
  for (const LoopSum::Term& term : a) result.terms[result.count++] = {term.atom, times(term.coeff, factor)};
  return result;
}

LoopSum LoopSums::add(const LoopSum& a, const LoopSum& b, int64_t scale) {
  LoopSum result;
  result.constant = plus(a.constant, times(b.constant, scale));
  bool quotients = false;
  auto put = [&](uint32_t atom, int64_t coeff) {
    if (coeff == 0) return;
    if (result.count == LoopSum::kMaxTerms) {  // for further terms, only their loops are kept
      Levels all = atoms_[atom].levels;
      for (const LoopSum::Term& term : result) all |= atoms_[term.atom].levels;
      atoms_.push_back({.form = Form::kOpaque, .depth = static_cast<int>(atoms_.size()), .levels = all});
      result = of_atom(static_cast<uint32_t>(atoms_.size() - 1));
      return;
    }
    quotients |= atoms_[atom].form == Form::kFloorMod;
    result.terms[result.count++] = {atom, coeff};
  };
  const LoopSum::Term *x = a.begin(), *y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->atom < y->atom)) {
      put(x->atom, x->coeff);
      ++x;
    } else if (x == a.end() || y->atom < x->atom) {
      put(y->atom, times(y->coeff, scale));
      ++y;
    } else {
      put(x->atom, plus(x->coeff, times(y->coeff, scale)));
      ++x, ++y;
    }
  }
  if (quotients) join_quotients(result);
  return result;
}

/// Returns the sum that (a // c') * c + b % c equals, or null: b for a = b and c' = c; a for a = b % m, c' = c and m a
/// multiple of c; b for b = a // d and c' = c * d.
const LoopSum* LoopSums::joined(const Atom& div, const Atom& mod) const {
  const LoopSum &of_div = sums_[div.a], &of_mod = sums_[mod.a];
  auto single = [&](const LoopSum& sum, Form form) -> const Atom* {
    const bool is_one = sum.count == 1 && sum.terms[0].coeff == 1 && sum.constant.lo == 0 && sum.constant.hi == 0;
    return is_one && atoms_[sum.terms[0].atom].form == form ? &atoms_[sum.terms[0].atom] : nullptr;
  };
  if (div.divisor == mod.divisor) {
    if (of_div == of_mod) return &of_mod;
    const Atom* outer = single(of_div, Form::kFloorMod);
    return outer && outer->divisor % mod.divisor == 0 && sums_[outer->a] == of_mod ? &of_div : nullptr;
  }
  const Atom* inner = single(of_mod, Form::kFloorDiv);
  const bool fits = inner && div.divisor == times(inner->divisor, mod.divisor) && of_div == sums_[inner->a];
  return fits ? &of_mod : nullptr;
}

/// (a // c) * (c * k) + (a % c) * k = a * k
void LoopSums::join_quotients(LoopSum& sum) {
  for (int m = 0; m < sum.count; ++m) {
    const Atom mod = atoms_[sum.terms[m].atom];
    if (mod.form != Form::kFloorMod) continue;
    for (int d = 0; d < sum.count; ++d) {
      const Atom div = atoms_[sum.terms[d].atom];
      int64_t scale = sum.terms[m].coeff;
      if (div.form != Form::kFloorDiv || sum.terms[d].coeff != times(scale, mod.divisor)) continue;
      const LoopSum* known = joined(div, mod);
      if (!known) continue;
      LoopSum others;
      others.constant = sum.constant;
      for (int t = 0; t < sum.count; ++t) {
        if (t != m && t != d) others.terms[others.count++] = sum.terms[t];
      }
      const LoopSum whole = *known;
      sum = add(others, whole, scale);
      return;
    }
  }
}

void LoopSums::split(const LoopSum& a, int64_t divisor, LoopSum& quotient, LoopSum& remainder) const {
  for (const LoopSum::Term& term : a) {
    bool divides = term.coeff % divisor == 0;
    LoopSum& part = divides ? quotient : remainder;
    part.terms[part.count++] = {term.atom, divides ? term.coeff / divisor : term.coeff};
  }
  int64_t start = tilewright::arith::floor_div(a.constant.lo, divisor);
  quotient.constant = {start, start};
  remainder.constant = {a.constant.lo - start * divisor, a.constant.hi - start * divisor};
}

LoopSum LoopSums::floor_div(const LoopSum& a, int64_t divisor) {
  if (divisor == 1) return a;
  LoopSum quotient, remainder;
  split(a, divisor, quotient, remainder);
  Span64 span = bounds(remainder, kAllLevels);
  if (span.lo >= 0 && span.hi < divisor) return quotient;
  if (remainder.count == 0) {  // lanes of a vector that pass a multiple
    quotient.constant.hi += tilewright::arith::floor_div(span.hi, divisor);
    return quotient;
  }
  divisor /= take_common_factor(remainder, divisor);
  if (remainder.count == 1 && remainder.terms[0].coeff == 1 && remainder.constant.lo == 0 &&
      remainder.constant.hi == 0) {
    const Atom inner = atoms_[remainder.terms[0].atom];  // (x // c) // d = x // (c * d)
    if (inner.form == Form::kFloorDiv && times(inner.divisor, divisor) < kFar) {
      LoopSum dividend = sums_[inner.a];
      return add(quotient, floor_div(dividend, inner.divisor * divisor), 1);
    }
  }
  Atom atom{.form = Form::kFloorDiv, .divisor = divisor};
  return add(quotient, of_atom(intern(atom, &remainder, nullptr)), 1);
}

LoopSum LoopSums::floor_mod(const LoopSum& a, int64_t divisor) {
  if (divisor == 1) return constant(0);
  LoopSum quotient, remainder;
  split(a, divisor, quotient, remainder);
  Span64 span = bounds(remainder, kAllLevels);
  if (span.lo >= 0 && span.hi < divisor) return remainder;
  if (remainder.count == 0) {
    remainder.constant = {0, divisor - 1};
    return remainder;
  }
  if (int64_t common = take_common_factor(remainder, divisor); common > 1) {
    return scaled(floor_mod(remainder, divisor / common), common);
  }
  Atom atom{.form = Form::kFloorMod, .divisor = divisor};
  return of_atom(intern(atom, &remainder, nullptr));
}

LoopSum LoopSums::min_or_max(const LoopSum& a, const LoopSum& b, bool is_max) {
  Span64 difference = bounds(add(a, b, -1), kAllLevels);
  if (difference.lo >= 0) return is_max ? a : b;
  if (difference.hi <= 0) return is_max ? b : a;
  Atom atom{.form = is_max ? Form::kMax : Form::kMin};
  return of_atom(intern(atom, &a, &b));
}

LoopSum LoopSums::read(const Expr& e) {
  if (auto value = const_int(e)) return constant(*value);
  if (auto* found = find_value(bound_, e.get())) return *found;
  if (const Cast* cast = e.as<Cast>(); cast && cast->value.dtype().is_integral()) return read(cast->value);
  if (const Broadcast* same = e.as<Broadcast>()) return read(same->value);
  if (const Ramp* ramp = e.as<Ramp>()) {
    LoopSum sum = read(ramp->base), stride = read(ramp->stride);
    if (auto lanes = const_int(ramp->lanes); lanes && stride.is_constant()) {
      int64_t reach = times(stride.constant.lo, *lanes - 1);
      sum.constant = plus(sum.constant, Span64{std::min<int64_t>(reach, 0), std::max<int64_t>(reach, 0)});
      return sum;
    }
  }
  if (const Let* let = e.as<Let>()) {
    bind(let->var, read(let->value));
    return read(let->body);
  }
  if (is_call_to(e, Intrinsic::k_likely)) return read(Expr(e.as<Call>()->args[0]));
  BinaryOperands operands = binary_operands(e);
  if (operands && (e.is<FloorDiv>() || e.is<FloorMod>())) {
    auto limit = limits_.find(operands.a->get());
    auto divisor = const_int(*operands.b);
    if (limit != limits_.end() && divisor && limit->second <= *divisor) {
      return e.is<FloorDiv>() ? constant(0) : read(*operands.a);
    }
  }
  if (operands && e.dtype().is_integral() && !e.dtype().is_bool()) {
    LoopSum a = read(*operands.a), b = read(*operands.b);
    switch (e.kind()) {
      case Kind::kAdd:
        return add(a, b, 1);
      case Kind::kSub:
        return add(a, b, -1);
      case Kind::kMul:
        if (b.is_constant()) return scaled(a, b.constant.lo);
        if (a.is_constant()) return scaled(b, a.constant.lo);
        break;
      case Kind::kDiv:
      case Kind::kFloorDiv:
        if (b.is_constant() && b.constant.lo > 0 && b.constant.lo < kFar) return floor_div(a, b.constant.lo);
        break;
      case Kind::kMod:
      case Kind::kFloorMod:
        if (b.is_constant() && b.constant.lo > 0 && b.constant.lo < kFar) return floor_mod(a, b.constant.lo);
        break;
      case Kind::kMin:
        return min_or_max(a, b, false);
      case Kind::kMax:
        return min_or_max(a, b, true);
      default:
        break;
    }
  }
  return opaque(e, levels(NodeRef(e)));
}

std::optional<bool> LoopSums::decide(const Expr& e) {
  if (auto value = const_int(e)) return *value != 0;
  if (is_call_to(e, Intrinsic::k_likely)) return decide(Expr(e.as<Call>()->args[0]));
  if (const Not* negated = e.as<Not>()) {
    std::optional<bool> inner = decide(negated->a);
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  BinaryOperands operands = binary_operands(e);
  if (!operands) return std::nullopt;
  if (e.is<And>() || e.is<Or>()) {
    std::optional<bool> a = decide(*operands.a), b = decide(*operands.b);
    bool strong = e.is<Or>();  // decides alone
    if ((a && *a == strong) || (b && *b == strong)) return strong;
    return a && b ? std::optional<bool>(!strong) : std::nullopt;
  }
  if (!operands.a->dtype().is_integral()) return std::nullopt;
  Span64 d = bounds(add(read(*operands.a), read(*operands.b), -1), kAllLevels);
  auto answer = [](bool yes, bool no) {
    return yes ? std::optional<bool>(true) : no ? std::optional<bool>(false) : std::nullopt;
  };
  switch (e.kind()) {
    case Kind::kLT:
      return answer(d.hi < 0, d.lo >= 0);
    case Kind::kLE:
      return answer(d.hi <= 0, d.lo > 0);
    case Kind::kGT:
      return answer(d.lo > 0, d.hi <= 0);
    case Kind::kGE:
      return answer(d.lo >= 0, d.hi < 0);
    case Kind::kEQ:
      return answer(d.lo == 0 && d.hi == 0, d.lo > 0 || d.hi < 0);
    case Kind::kNE:
      return answer(d.lo > 0 || d.hi < 0, d.lo == 0 && d.hi == 0);
    default:
      return std::nullopt;
  }
}

Span64 LoopSums::bounds_of(const Atom& atom, Levels free) const {
  switch (atom.form) {
    case Form::kLoop: {
      Span64 min = bounds(sums_[atom.a], free);
      if (!(free & level_bit(atom.depth))) return {min.lo, min.lo};
      return {min.lo, atom.extent < 0 ? kFar : plus(min.hi, atom.extent - 1)};
    }
    case Form::kFloorDiv: {
      Span64 a = bounds(sums_[atom.a], free);
      if (!a.is_known()) return {-kFar, kFar};
      return {arith::floor_div(a.lo, atom.divisor), arith::floor_div(a.hi, atom.divisor)};
    }
    case Form::kFloorMod: {
      Span64 a = bounds(sums_[atom.a], free);
      bool in_one_period = a.is_known() && arith::floor_div(a.lo, atom.divisor) == arith::floor_div(a.hi, atom.divisor);
      if (!in_one_period) return {0, atom.divisor - 1};
      return {arith::floor_mod(a.lo, atom.divisor), arith::floor_mod(a.hi, atom.divisor)};
    }
    case Form::kMin:
    case Form::kMax: {
      Span64 a = bounds(sums_[atom.a], free), b = bounds(sums_[atom.b], free);
      if (atom.form == Form::kMin) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case Form::kOpaque:
      return {-kFar, kFar};
  }
  return {-kFar, kFar};
}

Span64 LoopSums::bounds(const LoopSum& sum, Levels free) const {
  Span64 result = sum.constant;
  for (const LoopSum::Term& term : sum) {
    result = plus(result, times(bounds_of(atoms_[term.atom], free), term.coeff));
  }
  return result;
}

Levels LoopSums::levels(const LoopSum& sum) const {
  Levels result = 0;
  for (const LoopSum::Term& term : sum) result |= atoms_[term.atom].levels;
  return result;
}

Levels LoopSums::levels(const NodeRef& e) const {
  Levels result = 0;
  visit(e, [&](const Ref<Var>& var, Visitor&) {
    if (auto* found = find_value(bound_, var.get())) result |= levels(*found);
  });
  return result;
}

IndexWork LoopSums::work(const LoopSum& sum, Levels within) const {
  IndexWork result;
  bool start = sum.constant.lo != 0;
  result.add = sum.count == 0 ? 0 : sum.count - 1 + (start ? 1 : 0);
  for (const LoopSum::Term& term : sum) {
    if (term.coeff != 1 && term.coeff != -1) ++result.mul;
    const Atom& atom = atoms_[term.atom];
    bool divides = atom.form == Form::kFloorDiv || atom.form == Form::kFloorMod;
    bool compares = atom.form == Form::kMin || atom.form == Form::kMax;
    if ((!divides && !compares) || (within != kAllLevels && !(atom.levels & within))) continue;
    (divides ? result.div : result.cmp) += 1;
    for (uint32_t operand : {atom.a, atom.b}) {
      if (operand == atom.b && divides) break;
      IndexWork inner = work(sums_[operand], within);
      result.add += inner.add, result.mul += inner.mul, result.div += inner.div, result.cmp += inner.cmp;
    }
  }
  return result;
}

int64_t LoopSums::step_of(const LoopSum& sum, uint32_t loop) const {
  int64_t inside = 0;
  for (const LoopSum::Term& term : sum) {
    if (term.atom == loop) return term.coeff;
    const Atom& atom = atoms_[term.atom];
    if (atom.levels & level_bit(atoms_[loop].depth) && inside == 0) inside = term.coeff;
  }
  return inside;
}

bool LoopSums::is_even(const LoopSum& sum, uint32_t loop) const {
  Levels bit = level_bit(atoms_[loop].depth);
  return none_of(sum, [&](const LoopSum::Term& term) { return term.atom != loop && atoms_[term.atom].levels & bit; });
}

std::optional<LoopSums::Parts> LoopSums::part(const LoopSum& sum, Levels free) const {
  Parts parts;
  parts.inner.constant = sum.constant;
  for (const LoopSum::Term& term : sum) {
    Levels used = atoms_[term.atom].levels;
    if (used & ~free && used & free) return std::nullopt;
    LoopSum& side = used & free ? parts.inner : parts.outer;
    side.terms[side.count++] = term;
  }
  return parts;
}

}  // namespace tilewright::analysis
