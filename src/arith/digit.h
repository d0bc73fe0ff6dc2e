// A digit of a number: what is left of x after a division of its residue.
#pragma once

#include <optional>

#include "ir/build.h"

namespace tilewright::arith {

/// source % modulus // divisor, with divisor | modulus; modulus 0: source // divisor; divisor 1: no division.
struct DividedDigit {
  Expr source;
  int64_t modulus = 0;
  int64_t divisor = 1;
};

/// The digit that a quotient or remainder by a positive constant is.
std::optional<DividedDigit> as_digit(const Expr& atom);

}  // namespace tilewright::arith
