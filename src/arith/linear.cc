#include "arith/linear.h"

#include "ir/build.h"
#include "ir/fold.h"
#include "support/ranges.h"

namespace tilewright::arith {

const Term* Linear::find(Fingerprint fp) const {
  for (const Term& term : terms) {
    if (term.fp == fp) return &term;
  }
  return nullptr;
}

namespace {
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
constexpr size_t kUsualTerms = 4;
}  // namespace

void Linear::add(const Expr& atom, Fingerprint fp, int64_t coeff) {
  if (coeff == 0) return;
  bad |= coeff == kNone;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!(terms[i].fp == fp)) continue;
    if (!add_fits(terms[i].coeff, coeff, &terms[i].coeff) || terms[i].coeff == kNone) bad = true;
    if (terms[i].coeff == 0) erase_at(terms, i);
    return;
  }
  if (terms.capacity() == 0) terms.reserve(kUsualTerms);
  terms.push_back({atom, coeff, fp});
}

void Linear::add_constant(int64_t value, int64_t scale) {
  int64_t product = 0;
  if (!mul_fits(value, scale, &product) || !add_fits(constant, product, &constant) || constant == kNone) bad = true;
}

void Linear::add(const Linear& other, int64_t scale) {
  bad |= other.bad;
  for (const Term& term : other.terms) {
    int64_t coeff = 0;
    if (!mul_fits(term.coeff, scale, &coeff)) bad = true;
    add(term.atom, term.fp, coeff);
  }
  add_constant(other.constant, scale);
}

void Linear::replace_term(size_t at, const Linear& other, int64_t scale) {
  std::vector<Term> old = std::move(terms);
  terms.clear();
  for (size_t i : indices_of(old)) {
    if (i == at) {
      add(other, scale);
    } else {
      add(old[i].atom, old[i].fp, old[i].coeff);
    }
  }
}

void Linear::scale(int64_t factor) {
  if (factor == 0) terms.clear();
  for (Term& term : terms) {
    if (!mul_fits(term.coeff, factor, &term.coeff) || term.coeff == kNone) bad = true;
  }
  if (!mul_fits(constant, factor, &constant) || constant == kNone) bad = true;
}

void Linear::divide_exactly(int64_t divisor) {
  for (Term& term : terms) term.coeff /= divisor;
  constant /= divisor;
}

int64_t Linear::content() const {
  int64_t result = 0;
  for (const Term& term : terms) result = gcd(result, term.coeff);
  return result;
}

Fingerprint Linear::terms_fingerprint() const {
  Fingerprint sum;
  for (const Term& term : terms) {
    sum = sum + (term.coeff == 1 ? term.fp : term.fp * Fingerprint::of_int(term.coeff));
  }
  return sum;
}
Fingerprint Linear::fingerprint() const { return terms_fingerprint() + Fingerprint::of_int(constant); }

Linear operator-(const Linear& a, const Linear& b) {
  Linear result = a;
  result.add(b, -1);
  return result;
}

bool fits(int64_t value, DataType type) { return wrap_int(type, value) == value; }

bool is_unfoldable(const Expr& e) {
  BinaryOperands operands = binary_operands(e);
  return operands && operands.a->is<IntImm>() && operands.b->is<IntImm>() &&
         !fold_binary(e.kind(), *operands.a, *operands.b);
}

namespace {

constexpr uint32_t kShallow = 64;

/// The variable that e is a quotient or a remainder of, by a constant; else e itself.
const Expr& divided_variable(const Expr& e, int64_t* divisor) {
  const FloorDiv* quotient = e.as<FloorDiv>();
  const FloorMod* remainder = e.as<FloorMod>();
  if (!quotient && !remainder) return e;
  const Expr &of = quotient ? quotient->a : remainder->a, &by = quotient ? quotient->b : remainder->b;
  const IntImm* number = by.as<IntImm>();
  if (!number || !of.is<Var>()) return e;
  *divisor = number->value;
  return of;
}

/// Adds up variables and their digits, which count by themselves: the fingerprints of terms stay zero.
class PlainTerms {
 public:
  explicit PlainTerms(const RunsBeyond& runs_beyond) : runs_beyond_(runs_beyond) {}

  bool add(const Expr& e, int64_t scale) {
    int64_t product = 0;
    if (const IntImm* number = e.as<IntImm>()) {
      sum.add_constant(number->value, scale);
      return true;
    }
    if (is_unfoldable(e)) return false;
    if (const Add* add_ = e.as<Add>()) return add(add_->a, scale) && add(add_->b, scale);
    if (const Sub* sub = e.as<Sub>()) {
      return sub_fits(0, scale, &product) && add(sub->a, scale) && add(sub->b, product);
    }
    if (const Mul* mul = e.as<Mul>()) {
      const IntImm *left = mul->a.as<IntImm>(), *right = mul->b.as<IntImm>();
      const IntImm* factor = right ? right : left;
      return factor && mul_fits(factor->value, scale, &product) && add(right ? mul->a : mul->b, product);
    }
    int64_t divisor = 0;
    const Expr& variable = divided_variable(e, &divisor);
    if (!variable.is<Var>()) return false;
    if (!(variable == e) && (divisor < 2 || !runs_beyond_ || !runs_beyond_(variable, divisor))) return false;
    return add_term(e, variable, scale);
  }

  Linear sum;

 private:
  bool add_term(const Expr& e, const Expr& variable, int64_t scale) {
    int64_t ignored = 0;
    auto known =
        find_if(sum.terms, [&](const Term& term) { return divided_variable(term.atom, &ignored) == variable; });
    if (known == sum.terms.end()) {
      if (scale == 0) return true;
      if (sum.terms.capacity() == 0) sum.terms.reserve(kUsualTerms);
      sum.terms.push_back({e, scale, {}});
      return true;
    }
    if (!(known->atom == e) && !identical(known->atom, e)) return false;
    if (!add_fits(known->coeff, scale, &known->coeff)) return false;
    if (known->coeff == 0) sum.terms.erase(known);
    return true;
  }

  const RunsBeyond& runs_beyond_;
};

}  // namespace

Expr simplified_sum(const Expr& e, const RunsBeyond& runs_beyond) {
  if (!is_index(e.dtype()) || e.depth() > kShallow) return {};
  PlainTerms terms(runs_beyond);
  if (!terms.add(e, 1) || terms.sum.bad) return {};
  auto result = to_expr(terms.sum, e.dtype());
  return !result ? Expr() : identical(*result, e) ? e : *result;
}

std::optional<Expr> to_expr(const Linear& linear, DataType type) {
  if (linear.bad || !fits(linear.constant, type)) return std::nullopt;
  Expr sum;
  auto append = [&](const Term& term) {
    Expr atom = term.atom.dtype() == type ? term.atom : cast(type, term.atom);
    if (!sum.defined()) {
      sum = term.coeff == 1 ? atom : Expr(make<Mul>({atom, int_imm(type, term.coeff)}));
      return;
    }
    bool negative = term.coeff < 0 && fits(-term.coeff, type);
    int64_t magnitude = negative ? -term.coeff : term.coeff;
    Expr product = magnitude == 1 ? atom : Expr(make<Mul>({atom, int_imm(type, magnitude)}));
    sum = make_binary(negative ? Kind::kSub : Kind::kAdd, sum, product);
  };
  size_t first = linear.terms.size();
  for (size_t i : indices_of(linear.terms)) {
    int64_t coeff = linear.terms[i].coeff;
    if (!fits(coeff, type) || coeff == std::numeric_limits<int64_t>::min()) return std::nullopt;
    if (coeff > 0 && first == linear.terms.size()) first = i;
  }
  int64_t constant = linear.constant;
  if (first < linear.terms.size()) {
    append(linear.terms[first]);
  } else if (constant > 0 || (constant == 0 && linear.terms.empty())) {
    sum = int_imm(type, constant);
    constant = 0;
  }
  for (size_t i : indices_of(linear.terms)) {
    if (i != first) append(linear.terms[i]);
  }
  if (!sum.defined()) return Expr(int_imm(type, constant));
  if (constant > 0) return Expr(make<Add>({sum, int_imm(type, constant)}));
  if (constant < 0 && fits(-constant, type) && constant != std::numeric_limits<int64_t>::min()) {
    return Expr(make<Sub>({sum, int_imm(type, -constant)}));
  }
  if (constant < 0) return Expr(make<Add>({sum, int_imm(type, constant)}));
  return sum;
}

bool identical(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a.kind() != b.kind() || a.dtype() != b.dtype()) return false;
  switch (a.kind()) {
    case Kind::kIntImm:
      return a.as<IntImm>()->value == b.as<IntImm>()->value;
    case Kind::kCast:
      return identical(a.as<Cast>()->value, b.as<Cast>()->value);
    case Kind::kNot:
      return identical(a.as<Not>()->a, b.as<Not>()->a);
    default: {
      BinaryOperands x = binary_operands(a), y = binary_operands(b);
      return x && identical(*x.a, *y.a) && identical(*x.b, *y.b);
    }
  }
}

}  // namespace tilewright::arith
