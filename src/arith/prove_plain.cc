// Orders of sums of variables that run independently of one another, over ranges with constant ends: the smallest and
// the largest value of the difference are taken on, so both answers are exact, and no normal form is made. With
// quotients and remainders by constants, the ends of intervals say yes, and two corners of the domain say no. The usual
// questions of a schedule.
#include <algorithm>

#include "arith/engine.h"
#include "ir/build.h"

namespace tilewright::arith {
namespace {

constexpr uint32_t kDeepestPlain = 64;
/// Sums of two such numbers, and products with numbers of 31 bits, do not wrap.
constexpr int64_t kFar = int64_t{1} << 31;
bool is_near(int64_t x) { return -kFar < x && x < kFar; }

int64_t floor_quotient(int64_t x, int64_t by) { return x / by - (x % by < 0); }

/// x and a constant behind it.
std::pair<const NodeBase*, int64_t> without_constant(const Expr& e) {
  if (const Add* sum = e.as<Add>()) {
    if (const IntImm* number = sum->b.as<IntImm>()) return {sum->a.get(), number->value};
  }
  return {e.get(), 0};
}

}  // namespace

bool Engine::PlainSum::add(const Expr& e, int64_t scale) {
  int64_t product = 0;
  if (const IntImm* number = e.as<IntImm>()) {
    return mul_fits(number->value, scale, &product) && add_fits(constant, product, &constant);
  }
  if (e.is<Var>()) {
    for (size_t i = 0; i < size; ++i) {
      if (terms[i].var == e.get()) return add_fits(terms[i].coeff, scale, &terms[i].coeff);
    }
    if (size == terms.size()) return false;
    terms[size++] = {e.get(), scale};
    return true;
  }
  if (is_unfoldable(e)) return false;
  if (const Add* sum = e.as<Add>()) return add(sum->a, scale) && add(sum->b, scale);
  if (const Sub* difference = e.as<Sub>()) {
    return sub_fits(0, scale, &product) && add(difference->a, scale) && add(difference->b, product);
  }
  if (const Mul* mul = e.as<Mul>()) {
    const IntImm *left = mul->a.as<IntImm>(), *right = mul->b.as<IntImm>();
    const IntImm* factor = right ? right : left;
    return factor && mul_fits(factor->value, scale, &product) && add(right ? mul->a : mul->b, product);
  }
  return false;
}

/// Whether a - b is such a sum. If it is, sets the interval of its values; `exact` says whether both ends are reached.
bool Engine::PlainSum::difference(const Engine& engine, const Expr& a, const Expr& b) {
  if (!is_index(a.dtype()) || a.dtype() != b.dtype() || engine.value_mode_) return false;
  if (a.depth() > kDeepestPlain || b.depth() > kDeepestPlain || !add(a, 1) || !add(b, -1)) return false;
  __int128 least = constant, most = constant;
  exact = engine.runs_freely();
  for (size_t i = 0; i < size; ++i) {
    if (terms[i].coeff == 0) continue;
    const VarInfo* known = engine.info(terms[i].var);
    if (!known || known->value.defined()) return false;
    const ConstIntBound& range = known->bound;
    if (!range.is_finite()) return false;
    exact &= known->facts.empty();
    bool grows = terms[i].coeff > 0;
    least += static_cast<__int128>(terms[i].coeff) * (grows ? range.min_value : range.max_value);
    most += static_cast<__int128>(terms[i].coeff) * (grows ? range.max_value : range.min_value);
  }
  low = least;
  high = most;
  return true;
}

/// Whether nothing but its range is known of any variable.
bool Engine::runs_freely() const { return facts_.empty() && bounds_.empty() && truths_.empty() && residues_.empty(); }

/// Returns false for expressions of another form. `exact` stays true if both corners belong to the domain.
bool Engine::extremes(const Expr& e, Extremes& found, bool& exact) const {
  if (const IntImm* number = e.as<IntImm>()) {
    found = {number->value, number->value, number->value, number->value};
    return is_near(number->value);
  }
  if (!e.is<Var>()) return extremes_of_binary(e, found, exact);
  const VarInfo* known = info(e);
  if (!known || known->value.defined()) return false;
  const ConstIntBound& range = known->bound;
  if (!range.is_finite() || !is_near(range.min_value) || !is_near(range.max_value)) return false;
  exact &= known->facts.empty() && range.min_value <= range.max_value;
  found = {range.min_value, range.max_value, range.min_value, range.max_value};
  return true;
}

bool Engine::extremes_of_binary(const Expr& e, Extremes& found, bool& exact) const {
  BinaryOperands operands = binary_operands(e);
  if (!operands || !is_index(e.dtype())) return false;
  Kind kind = e.kind();
  const IntImm* number = operands.b->as<IntImm>();
  if (kind == Kind::kMul && !number) {
    std::swap(operands.a, operands.b);
    number = operands.b->as<IntImm>();
  }
  Extremes x{}, y{};
  if (!extremes(*operands.a, x, exact) || !extremes(*operands.b, y, exact)) return false;
  int64_t by = number ? number->value : 0;
  switch (kind) {
    case Kind::kAdd:
      found = {x.least + y.least, x.most + y.most, x.at_least + y.at_least, x.at_most + y.at_most};
      break;
    case Kind::kSub:
      found = {x.least - y.most, x.most - y.least, x.at_least - y.at_least, x.at_most - y.at_most};
      break;
    case Kind::kMul:
      if (!number) return false;
      found = {x.least * by, x.most * by, x.at_least * by, x.at_most * by};
      if (by < 0) std::swap(found.least, found.most);
      break;
    case Kind::kFloorDiv:
      if (by <= 0) return false;
      found = {floor_quotient(x.least, by), floor_quotient(x.most, by), floor_quotient(x.at_least, by),
               floor_quotient(x.at_most, by)};
      break;
    case Kind::kFloorMod: {
      if (by <= 0) return false;
      auto rest = [&](int64_t value) { return value - floor_quotient(value, by) * by; };
      bool one_turn = floor_quotient(x.least, by) == floor_quotient(x.most, by);
      found = {one_turn ? rest(x.least) : 0, one_turn ? rest(x.most) : by - 1, rest(x.at_least), rest(x.at_most)};
      break;
    }
    case Kind::kMin:
      found = {std::min(x.least, y.least), std::min(x.most, y.most), std::min(x.at_least, y.at_least),
               std::min(x.at_most, y.at_most)};
      break;
    case Kind::kMax:
      found = {std::max(x.least, y.least), std::max(x.most, y.most), std::max(x.at_least, y.at_least),
               std::max(x.at_most, y.at_most)};
      break;
    default:
      return false;
  }
  return is_near(found.least) && is_near(found.most) && is_near(found.at_least) && is_near(found.at_most);
}

std::optional<bool> Engine::plain_order(const Expr& a, const Expr& b, bool or_equal) const {
  PlainSum sum;
  if (sum.difference(*this, b, a)) {
    if (sum.low >= (or_equal ? 0 : 1)) return true;
    return sum.exact ? std::optional(false) : std::nullopt;
  }
  if (value_mode_ || !is_index(a.dtype()) || a.dtype() != b.dtype()) return std::nullopt;
  if (a.depth() > kDeepestPlain || b.depth() > kDeepestPlain) return std::nullopt;
  auto [x, behind_x] = without_constant(a);
  auto [y, behind_y] = without_constant(b);
  Extremes first{}, second{};
  bool exact = runs_freely();
  if (!extremes(a, first, exact) || !extremes(b, second, exact)) return std::nullopt;
  auto holds = [&](int64_t left, int64_t right) { return or_equal ? left <= right : left < right; };
  if (x == y ? holds(behind_x, behind_y) : holds(first.most, second.least)) return true;
  bool at_corners = holds(first.at_least, second.at_least) && holds(first.at_most, second.at_most);
  return exact && !at_corners ? std::optional(false) : std::nullopt;
}

std::optional<bool> Engine::plain_equality(const Expr& a, const Expr& b) const {
  PlainSum sum;
  if (!sum.difference(*this, a, b)) return std::nullopt;
  if (sum.low == 0 && sum.high == 0) return true;
  return sum.exact ? std::optional(false) : std::nullopt;
}

}  // namespace tilewright::arith
