#include "arith/join_digits.h"

#include <numeric>
#include <optional>

#include "ir/build.h"
#include "ir/structural.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Returns e, if the arguments are e // c and e % c. The remainder of e = x % 12 by 4 may have become x % 4.
std::optional<Expr> joined(const Expr& quotient, const Expr& rest) {
  const FloorDiv* div = quotient.as<FloorDiv>();
  const FloorMod* mod = rest.as<FloorMod>();
  if (!div || !mod) return std::nullopt;
  auto divisor = const_int(div->b), modulus = const_int(mod->b);
  if (!divisor || divisor != modulus || *divisor <= 0) return std::nullopt;
  if (structural_equal(div->a, mod->a)) return div->a;
  const FloorMod* digit = div->a.as<FloorMod>();
  auto range = digit ? const_int(digit->b) : std::nullopt;
  bool contains = range && *range > 0 && *range % *divisor == 0 && structural_equal(digit->a, mod->a);
  return contains ? std::optional(div->a) : std::nullopt;
}

}  // namespace

std::vector<size_t> join_digits(std::vector<Expr>& values) {
  std::vector<size_t> left(values.size());
  std::iota(left.begin(), left.end(), size_t{0});
  auto join_one = [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j) {
        auto whole = i == j ? std::nullopt : joined(values[i], values[j]);
        if (!whole) continue;
        values[i] = *whole;
        erase_at(values, j);
        erase_at(left, j);
        return true;
      }
    }
    return false;
  };
  while (join_one()) {
  }
  return left;
}

}  // namespace tilewright::arith
