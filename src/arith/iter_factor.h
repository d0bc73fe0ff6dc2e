// Arithmetic on the factors of iteration maps: constants where they are constants, simplified expressions otherwise.
#pragma once

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/ceildiv.h"

namespace tilewright::arith {

class Factors {
 public:
  explicit Factors(Analyzer& analyzer) : analyzer_(analyzer) {}

  Analyzer& analyzer() { return analyzer_; }
  Expr add(const Expr& a, const Expr& b) { return simple(a + b); }
  Expr sub(const Expr& a, const Expr& b) { return simple(a - b); }
  Expr mul(const Expr& a, const Expr& b) { return simple(a * b); }
  Expr div(const Expr& a, const Expr& b) { return simple(floordiv(a, b)); }
  Expr mod(const Expr& a, const Expr& b) { return simple(floormod(a, b)); }
  Expr ceil_div(const Expr& a, const Expr& b) { return simple(size_ceildiv(a, b)); }
  bool equal(const Expr& a, const Expr& b) {
    auto x = const_int(a), y = const_int(b);
    return x && y ? *x == *y : analyzer_.can_prove_equal(a, b);
  }
  bool is_one(const Expr& a) { return is_const_int(a, 1); }
  bool is_zero(const Expr& a) { return is_const_int(a, 0); }
  bool positive(const Expr& a) {
    auto x = const_int(a);
    return x ? *x > 0 : analyzer_.can_prove_greater_equal(a, 1);
  }
  bool non_negative(const Expr& a) {
    auto x = const_int(a);
    return x ? *x >= 0 : analyzer_.can_prove_greater_equal(a, 0);
  }
  /// a is a multiple of b.
  bool divides(const Expr& b, const Expr& a) {
    auto x = const_int(a), y = const_int(b);
    if (y && *y == 0) return false;
    if (x && y) return *x % *y == 0;
    return equal(a, b) || is_const_int(mod(a, b), 0);
  }
  bool less(const Expr& a, const Expr& b) {
    auto x = const_int(a), y = const_int(b);
    return x && y ? *x < *y : analyzer_.can_prove_less(a, b);
  }

 private:
  Expr simple(const Expr& e) { return e.is<IntImm>() ? e : analyzer_.simplify(e); }
  Analyzer& analyzer_;
};

}  // namespace tilewright::arith
