#include "arith/iter_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "arith/test_evaluator.h"
#include "ir/structural.h"
#include "ir/substitute.h"

namespace tilewright::arith {
namespace {

struct Input {
  Ref<Var> var;
  int64_t min, extent;
};

IterDomains domains_of(const std::vector<Input>& inputs) {
  IterDomains result;
  for (const Input& input : inputs) {
    result.emplace_back(input.var, make<Range>({i32(input.min), i32(input.extent)}));
  }
  return result;
}

/// Calls visit(env) for each point of the box where the predicate holds.
template <class F>
void for_each_point(const std::vector<Input>& inputs, const Expr& predicate, F&& visit) {
  Env env;
  auto step = [&](auto& self, size_t at) -> void {
    if (at == inputs.size()) {
      if (!predicate.defined() || *evaluate(predicate, env)) visit(env);
      return;
    }
    for (int64_t v = 0; v < inputs[at].extent; ++v) {
      env[inputs[at].var] = inputs[at].min + v;
      self(self, at + 1);
    }
  };
  step(step, 0);
}

/// The image of a map, by enumeration.
struct Image {
  size_t points = 0;
  std::set<std::vector<int64_t>> values;
};
Image image_of(const std::vector<Expr>& indices, const std::vector<Input>& inputs, const Expr& predicate) {
  Image image;
  for_each_point(inputs, predicate, [&](const Env& env) {
    ++image.points;
    std::vector<int64_t> value;
    for (const Expr& index : indices) value.push_back(*evaluate(index, env));
    image.values.insert(value);
  });
  return image;
}

class IterMapTest : public testing::Test {
 protected:
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), x = var("x");
  Ref<Var> n = size_var("n"), m = size_var("m");
  std::vector<Input> inputs{{i, 0, 16}, {j, 0, 4}, {k, 0, 8}};
  Analyzer analyzer;

  IterMapResult detect(const std::vector<Expr>& indices, IterMapLevel level = IterMapLevel::kSurjective,
                       const Expr& predicate = {}) {
    return detect_iter_map(indices, domains_of(inputs), predicate, level, analyzer);
  }
  void accept(const std::vector<Expr>& indices, IterMapLevel level, const Expr& predicate = {}) {
    IterMapResult result = detect(indices, level, predicate);
    ASSERT_TRUE(result.ok()) << result.errors[0];
    verify(indices, result, level, predicate);
  }
  void refuse(const std::vector<Expr>& indices, IterMapLevel level, const std::string& why,
              const Expr& predicate = {}) {
    IterMapResult result = detect(indices, level, predicate);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.errors[0].find(why), std::string::npos) << result.errors[0];
    EXPECT_TRUE(result.indices.empty());
  }
  /// The claim of the level, and that the map computes the indices.
  void verify(const std::vector<Expr>& indices, const IterMapResult& result, IterMapLevel level,
              const Expr& predicate) {
    std::vector<Expr> back;
    for (const IterSumExpr& sum : result.indices) back.push_back(normalize_iter_map_to_expr(sum, analyzer));
    for_each_point(inputs, predicate, [&](const Env& env) {
      for (size_t at = 0; at < indices.size(); ++at) {
        ASSERT_EQ(*evaluate(indices[at], env), *evaluate(back[at], env))
            << text(indices[at]) << " / " << text(back[at]);
      }
    });
    if (level == IterMapLevel::kNoCheck) return;
    Image image = image_of(indices, inputs, predicate);
    size_t box = 1;
    for (const IterSumExpr& sum : result.indices) {
      for (const IterSplitExpr& split : sum.args) box *= static_cast<size_t>(*const_int(split.extent));
    }
    EXPECT_EQ(image.values.size(), box) << text(indices[0]);
    if (level == IterMapLevel::kBijective) {
      EXPECT_EQ(image.points, box);
      std::vector<Expr> outputs;
      for (size_t at = 0; at < indices.size(); ++at) outputs.push_back(var("o" + std::to_string(at)));
      auto inverse = inverse_affine_iter_map(result.indices, outputs, analyzer);
      for_each_point(inputs, predicate, [&](Env env) {
        Env from;
        for (size_t at = 0; at < indices.size(); ++at) from[outputs[at]] = *evaluate(indices[at], env);
        for (const Input& input : inputs) {
          if (input.extent == 1) continue;
          ASSERT_TRUE(inverse.contains(input.var));
          ASSERT_EQ(evaluate(inverse.at(input.var), from), env.at(input.var)) << text(inverse.at(input.var));
        }
      });
    }
  }
};

TEST_F(IterMapTest, SplitsAndFusions) {
  accept({i, j, k}, IterMapLevel::kBijective);
  accept({i * 4 + j, k}, IterMapLevel::kBijective);
  accept({floordiv(i * 4 + j, 8), floormod(i * 4 + j, 8), k}, IterMapLevel::kBijective);
  accept({floordiv(i * 12 + floormod(j, 2) * 6, 6), k}, IterMapLevel::kSurjective);
  accept({(i * 4 + j) * 8 + k + 5}, IterMapLevel::kBijective);
  accept({floormod(i, 4), floordiv(i, 4), k, j}, IterMapLevel::kBijective);
  accept({floordiv(i, 4) * 4 + floormod(i, 4), k, j}, IterMapLevel::kBijective);
}

TEST_F(IterMapTest, OffsetsOfTheInputs) {
  inputs = {{i, 3, 16}, {j, -1, 4}};
  accept({i, j}, IterMapLevel::kBijective);
  accept({(i - 3) * 4 + j + 1}, IterMapLevel::kBijective);
  accept({floordiv(i - 3, 4), j}, IterMapLevel::kSurjective);
}

TEST_F(IterMapTest, InputsOfExtentOne) {
  inputs = {{i, 0, 16}, {j, 2, 1}};
  accept({i + j}, IterMapLevel::kBijective);
}

TEST_F(IterMapTest, Refusals) {
  refuse({i, i}, IterMapLevel::kSurjective, "used twice");
  refuse({i, j}, IterMapLevel::kBijective, "not used");
  refuse({i * 3 + j}, IterMapLevel::kSurjective, "skip values or overlap");
  refuse({i * 8 + j}, IterMapLevel::kSurjective, "skip values or overlap");
  refuse({i + j}, IterMapLevel::kSurjective, "skip values or overlap");
  refuse({floordiv(i, 5)}, IterMapLevel::kSurjective, "does not divide");
  refuse({i * j}, IterMapLevel::kSurjective, "not a sum of splits");
  refuse({floordiv(i * 4 + j, 4), j, i}, IterMapLevel::kSurjective, "used twice");
  Ref<Buffer> A = decl_buffer({i32(16)}, DataType::int_(32), "A");
  refuse({load(A, {i})}, IterMapLevel::kSurjective, "not a sum of splits");
}

// Fusing loops makes such divisors: `fused // z` where the loop over z has extent 1, so z is 0 and nothing runs.
TEST_F(IterMapTest, DivisorsOfZero) {
  for (const Expr& index : {Expr(make<FloorDiv>({i, i32(0)})), Expr(make<FloorMod>({i * 4 + j, i32(0)}))}) {
    refuse({index}, IterMapLevel::kSurjective, "not a sum of splits");
    EXPECT_FALSE(detect({index}, IterMapLevel::kNoCheck).ok());
  }
}

TEST_F(IterMapTest, SurjectiveMayDropDigits) {
  accept({floordiv(i, 4), j}, IterMapLevel::kSurjective);
  accept({floormod(floordiv(i, 2), 4)}, IterMapLevel::kSurjective);
  refuse({floordiv(i, 4), j, k}, IterMapLevel::kBijective, "not all of it");
}

TEST_F(IterMapTest, RoundedUpDomains) {
  inputs = {{i, 0, 20}, {j, 1, 7}};
  std::vector<Expr> indices = {floordiv(i, 8), floormod(i, 6), floordiv(j, 2)};
  IterDomains grown = rounded_up(indices, domains_of(inputs));
  EXPECT_TRUE(is_const_int(grown[0].second->extent, 24));
  EXPECT_TRUE(is_const_int(grown[1].second->extent, 7));  // j does not start at 0

  inputs = {{i, 0, 20}};
  indices = {floordiv(i, 6), floormod(i, 6)};
  refuse(indices, IterMapLevel::kBijective, "");
  grown = rounded_up(indices, domains_of(inputs));
  EXPECT_TRUE(detect_iter_map(indices, grown, {}, IterMapLevel::kBijective, analyzer).ok());
  Image image = image_of(indices, inputs, {});
  EXPECT_EQ(image.points, image.values.size());
}

TEST_F(IterMapTest, NoCheckTakesTheForm) {
  accept({i * 3 + j}, IterMapLevel::kNoCheck);
  accept({floordiv(i, 5), i}, IterMapLevel::kNoCheck);
}

TEST_F(IterMapTest, Predicates) {
  inputs = {{i, 0, 4}, {j, 0, 32}};
  Expr sum = i * 32 + j;
  accept({sum}, IterMapLevel::kBijective, lt(sum, i32(100)));
  accept({floordiv(sum, 4), floormod(sum, 4)}, IterMapLevel::kBijective, lt(sum, i32(100)));
  accept({sum}, IterMapLevel::kBijective, logical_and(lt(sum, i32(100)), le(i32(10), sum)));
  accept({sum}, IterMapLevel::kBijective, lt(sum, i32(1000)));
  accept({j}, IterMapLevel::kSurjective, lt(i, i32(3)));
  accept({i, j}, IterMapLevel::kBijective, lt(i, i32(3)));
  accept({i + j}, IterMapLevel::kBijective, lt(j, i32(1)));
  accept({floordiv(i + j, 2), floormod(j + i, 2)}, IterMapLevel::kBijective, lt(j, i32(1)));
  refuse({i, j}, IterMapLevel::kSurjective, "predicate cuts", lt(sum, i32(100)));
  refuse({floordiv(sum, 8)}, IterMapLevel::kSurjective, "predicate cuts", lt(sum, i32(100)));
  refuse({i, j}, IterMapLevel::kSurjective, "not a bound", ne(floormod(i, 2), i32(0)));
  refuse({sum}, IterMapLevel::kSurjective, "predicate cuts", eq(floormod(sum, 2), i32(1)));
  EXPECT_TRUE(detect({i, j}, IterMapLevel::kBijective, lt(x, i32(3))).ok());
}

TEST_F(IterMapTest, NestedPredicates) {
  inputs = {{i, 0, 4}, {j, 0, 7}, {k, 0, 5}};
  Expr inner = j * 5 + k, all = i * 32 + inner;
  accept({all}, IterMapLevel::kBijective, logical_and(lt(all, i32(100)), lt(inner, i32(32))));
  accept({i, inner}, IterMapLevel::kBijective, lt(inner, i32(32)));
}

TEST_F(IterMapTest, SymbolicExtents) {
  IterDomains domains{{i, range_of(n)}, {j, range_of(m)}};
  EXPECT_TRUE(detect_iter_map({i * m + j}, domains, {}, IterMapLevel::kBijective, analyzer).ok());
  EXPECT_FALSE(detect_iter_map({i * n + j}, domains, {}, IterMapLevel::kSurjective, analyzer).ok());
  auto fused = detect_iter_map({floordiv(i * m + j, m), floormod(i * m + j, m)}, domains, {}, IterMapLevel::kBijective,
                               analyzer);
  ASSERT_TRUE(fused.ok()) << fused.errors[0];
  EXPECT_TRUE(same_expr(analyzer.simplify(normalize_iter_map_to_expr(fused.indices[0], analyzer)), i));
  // split(i, factors=[None, 32]) of a symbolic extent
  IterDomains split{{i, range_of(ceildiv(n, i32(32)))}, {j, range_of(i32(32))}};
  EXPECT_TRUE(detect_iter_map({i * 32 + j}, split, lt(i * 32 + j, n), IterMapLevel::kSurjective, analyzer).ok());
  // split(fused, factors=[None, 1]), and the inner one by [None, 4]
  IterDomains partial{{i, range_of(n * 2)}, {j, range_of(i32(4))}};
  EXPECT_TRUE(detect_iter_map({floordiv(i + j, n), floormod(i + j, n)}, partial, lt(j, i32(1)),
                              IterMapLevel::kBijective, analyzer)
                  .ok());
  IterDomains of_product{{i, range_of(n * m)}};
  EXPECT_TRUE(
      detect_iter_map({floordiv(i, m), floormod(i, m)}, of_product, {}, IterMapLevel::kBijective, analyzer).ok());
}

TEST_F(IterMapTest, WideIndices) {
  DataType wide = DataType::int_(64);
  Ref<Var> l = var("l", wide);
  IterDomains domains{{l, range_of(i64(16))}, {j, range_of(i32(4))}};
  EXPECT_TRUE(detect_iter_map({l * 4 + cast(wide, j)}, domains, {}, IterMapLevel::kBijective, analyzer).ok());
}

TEST_F(IterMapTest, SimplifyThroughTheMap) {
  inputs = {{i, 0, 2}, {j, 0, 12}};
  Expr fused = i * 12 + j;
  auto simple = iter_map_simplify({floordiv(fused, 8) * 8 + floormod(fused, 8)}, domains_of(inputs), {},
                                  IterMapLevel::kSurjective, analyzer);
  EXPECT_TRUE(same_expr(simple[0], fused)) << text(simple[0]);
}

class SubspaceTest : public IterMapTest {
 protected:
  /// Divided, and compared with the indices at each point of the loops.
  std::optional<SubspaceDivision> divide(const std::vector<Expr>& indices, const std::vector<Ref<Var>>& inner,
                                         const Expr& predicate = {}) {
    auto result = subspace_divide(indices, domains_of(inputs), inner, predicate, IterMapLevel::kSurjective, analyzer,
                                  nullptr, SubspaceForm::kGeneral);
    if (!result) return result;
    auto is_inner = [&](const Ref<Var>& v) { return std::find(inner.begin(), inner.end(), v) != inner.end(); };
    Env start;
    for (const Input& input : inputs) {
      start[input.var] = input.min;
      EXPECT_FALSE(is_inner(input.var) && uses_var(result->outer_predicate, input.var));
      for (const Division& d : result->indices)
        EXPECT_FALSE(uses_var(is_inner(input.var) ? d.outer : d.inner, input.var));
    }
    for_each_point(inputs, {}, [&](const Env& env) {
      bool inside = !predicate.defined() || *evaluate(predicate, env);
      EXPECT_EQ(inside, *evaluate(logical_and(result->outer_predicate, result->inner_predicate), env) != 0);
      if (!inside) return;
      for (size_t at = 0; at < indices.size(); ++at) {
        const Division& d = result->indices[at];
        int64_t inner_value = *evaluate(d.inner, env), outer_value = *evaluate(d.outer, env);
        int64_t extent = *const_int(d.inner_extent), base = *evaluate(indices[at], start);
        EXPECT_EQ(*evaluate(indices[at], env), outer_value * extent + inner_value) << text(indices[at]);
        EXPECT_TRUE(inner_value >= base && inner_value < base + extent) << text(indices[at]);
        EXPECT_TRUE(outer_value >= 0 && outer_value < *const_int(d.outer_extent)) << text(indices[at]);
      }
    });
    return result;
  }
};

TEST_F(SubspaceTest, DigitsOfEitherSide) {
  inputs = {{i, 0, 4}, {j, 0, 8}, {k, 0, 16}};
  auto plain = divide({i * 8 + j, k}, {j, k});
  ASSERT_TRUE(plain);
  EXPECT_TRUE(same_expr(plain->indices[0].outer, i) && same_expr(plain->indices[0].inner, j));
  EXPECT_TRUE(is_const_int(plain->indices[1].outer_extent, 1));
  ASSERT_TRUE(divide({(i * 8 + j) * 16 + k}, {k}));
  ASSERT_TRUE(divide({floordiv((i * 8 + j) * 16 + k, 4), floormod(k, 4)}, {k}));
  ASSERT_TRUE(divide({floordiv(i * 8 + j, 4), floormod(i * 8 + j, 4), k}, {j, k}));
  EXPECT_FALSE(divide({j * 4 + i, k}, {j}));  // the inner digit is the higher one
}

TEST_F(SubspaceTest, ABaseBelongsToTheInnerSide) {
  inputs = {{i, 0, 4}, {j, 2, 8}, {k, -3, 16}};
  auto shifted = divide({i * 8 + j + 1}, {j});
  ASSERT_TRUE(shifted);
  EXPECT_TRUE(same_expr(shifted->indices[0].outer, i) && same_expr(shifted->indices[0].inner, j + 1));
  ASSERT_TRUE(divide({i * 8 + j - 7, k + 9}, {j, k}));
  ASSERT_TRUE(divide({i * 8 + j - 7, k + 9}, {k}));
  ASSERT_TRUE(divide({(i * 8 + j) * 16 + k}, {k}));
}

TEST_F(SubspaceTest, PredicatesOnEitherAndOnBothSides) {
  inputs = {{i, 0, 4}, {j, 0, 8}, {k, 0, 16}};
  auto cut = divide({i * 8 + j, k}, {k}, logical_and(lt(i * 8 + j, i32(30)), lt(k, i32(15))));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(same_expr(cut->outer_predicate, lt(i * 8 + j, i32(30))));
  EXPECT_TRUE(same_expr(cut->inner_predicate, lt(k, i32(15))));
  auto across = divide({i * 8 + j, k}, {j, k}, lt(i * 8 + j, i32(30)));
  ASSERT_TRUE(across);
  EXPECT_TRUE(same_expr(across->inner_predicate, lt(i * 8 + j, i32(30))));
  EXPECT_TRUE(is_true(across->outer_predicate));
  EXPECT_TRUE(is_const_int(across->indices[0].outer_extent, 4) && is_const_int(across->indices[0].inner_extent, 8));
  // Upon what is cut across both sides, no other digit stands; nor has it digits of its own.
  EXPECT_FALSE(divide({k * 30 + i * 8 + j}, {j}, lt(i * 8 + j, i32(30))));
  EXPECT_FALSE(divide({floordiv(i * 8 + j, 2), floormod(i * 8 + j, 2), k}, {j, k}, lt(i * 8 + j, i32(30))));
}

TEST_F(SubspaceTest, ExactDivisionsTakeNoneOfThese) {
  inputs = {{i, 0, 4}, {j, 0, 10}};
  auto exact = [&](const std::vector<Expr>& indices, const Expr& predicate = {}) {
    return subspace_divide(indices, domains_of(inputs), {j}, predicate, IterMapLevel::kSurjective, analyzer)
        .has_value();
  };
  EXPECT_TRUE(exact({i * 10 + j}));
  EXPECT_FALSE(exact({i * 10 + j + 1}));
  EXPECT_FALSE(exact({i, j}, lt(i + j, i32(5))));
  EXPECT_FALSE(exact({i * 10 + j}, lt(i * 10 + j, i32(35))));
  EXPECT_FALSE(exact({i, floordiv(j, 4), floormod(j, 4)}));
}

TEST_F(SubspaceTest, PaddedUp) {
  inputs = {{i, 0, 10}, {j, 0, 6}};
  auto tiles = divide({floordiv(i, 4), floormod(i, 4), j}, {j});
  ASSERT_TRUE(tiles);
  EXPECT_TRUE(is_const_int(tiles->indices[0].outer_extent, 3) && is_const_int(tiles->indices[1].outer_extent, 4));
  EXPECT_TRUE(same_expr(tiles->outer_predicate, lt(i, i32(10))));
  auto inside = divide({floordiv(i, 4), floormod(i, 4), j}, {i}, lt(i, i32(7)));
  ASSERT_TRUE(inside);
}

TEST_F(SubspaceTest, RandomNests) {
  int accepted = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    int64_t m = 1 + pick(5), n = 1 + pick(6), o = 1 + pick(5);
    inputs = {{i, pick(3) ? 0 : pick(5) - 2, m}, {j, pick(3) ? 0 : pick(5) - 2, n}, {k, 0, o}};
    Expr fused = ((i - i32(inputs[0].min)) * i32(n) + (j - i32(inputs[1].min))) * i32(o) + k;
    Expr base = i32(pick(2) ? 0 : pick(20) - 10);
    std::vector<Expr> indices;
    int64_t digit = 1 + pick(4);
    if (pick(2)) {
      indices = {fused + base};
    } else {
      indices = {floordiv(fused, i32(digit)), floormod(fused, i32(digit)) + base};
    }
    std::vector<Ref<Var>> inner{k};
    if (pick(2)) inner.push_back(j);
    Expr predicate;
    if (pick(2)) predicate = pick(2) ? lt(fused, i32(1 + pick(static_cast<int>(m * n * o)))) : lt(k, i32(1 + pick(5)));
    accepted += divide(indices, inner, predicate).has_value();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(accepted, 120);
}

/// Digits of two loops fused, of any radixes: each begins and ends within the outer loop, within the inner one, or
/// reaches from one into the other.
TEST_F(IterMapTest, DigitsOfFusedLoops) {
  std::vector<Expr> tiles{floordiv(i * 128 + j, 896) * 14 + floordiv(floormod(i * 128 + j, 112), 8),
                          floordiv(floormod(i * 128 + j, 896), 112) * 8 + floormod(i * 128 + j, 8)};
  inputs = {{i, 0, 98}, {j, 0, 128}};
  accept(tiles, IterMapLevel::kBijective);
  int reaching = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](int count) { return static_cast<int>(random() % static_cast<uint64_t>(count)); };
    static constexpr int64_t kPrimes[] = {2, 2, 3, 5};
    std::vector<int64_t> primes;
    for (int at = 0, count = 3 + pick(3); at < count; ++at) primes.push_back(kPrimes[pick(4)]);
    int64_t outer = 1, inner = 1;
    for (int64_t prime : primes) (pick(2) ? outer : inner) *= prime;
    std::shuffle(primes.begin(), primes.end(), random);
    inputs = {{i, 0, outer}, {j, 0, inner}};
    Expr fused = i * inner + j;
    std::vector<std::pair<Expr, int64_t>> digits;  // least first
    int64_t below = 1;
    for (size_t at = 0; at < primes.size();) {
      int64_t radix = 1;
      for (int taken = 1 + pick(2); taken > 0 && at < primes.size(); --taken) radix *= primes[at++];
      bool last = at == primes.size();
      reaching += below < inner && below * radix > inner;
      Expr digit = pick(2) || last ? floordiv(fused, below) : floordiv(floormod(fused, below * radix), below);
      digits.emplace_back(last ? digit : floormod(digit, radix), radix);
      below *= radix;
    }
    std::shuffle(digits.begin(), digits.end(), random);
    std::vector<Expr> indices;
    for (size_t at = 0; at < digits.size(); ++at) {
      bool joins = at > 0 && pick(2);
      if (joins) {
        indices.back() = indices.back() * digits[at].second + digits[at].first;
      } else {
        indices.push_back(digits[at].first);
      }
    }
    accept(indices, IterMapLevel::kBijective);
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ", " << outer << " x " << inner;
      return;
    }
  }
  EXPECT_GT(reaching, 100);
}

/// Random chains of splits and fusions, some spoilt: what is accepted is checked by enumeration, and chains without
/// a spoilt step must be accepted.
TEST_F(IterMapTest, RandomMapsAgainstEnumeration) {
  int accepted = 0, cut = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&](int count) { return static_cast<int>(random() % static_cast<uint64_t>(count)); };
    struct Loop {
      Expr value;
      int64_t extent;
    };
    inputs.clear();
    std::vector<Loop> loops;
    static constexpr int kExtents[] = {1, 2, 3, 4, 6, 8, 12};
    for (int at = 0, count = 1 + pick(3); at < count; ++at) {
      Input input{var("i" + std::to_string(at)), pick(4) ? 0 : pick(5) - 2, kExtents[pick(7)]};
      inputs.push_back(input);
      loops.push_back({input.min == 0 ? Expr(input.var) : input.var - i32(input.min), input.extent});
    }
    Expr predicate;
    bool exact = true;
    for (int step = 0; step < 4; ++step) {
      size_t at = static_cast<size_t>(pick(static_cast<int>(loops.size())));
      Loop loop = loops[at];
      switch (pick(5)) {
        case 0: {  // split exactly
          static constexpr int64_t kFactors[] = {2, 3, 4};
          int64_t factor = kFactors[pick(3)];
          if (loop.extent % factor != 0) break;
          loops[at] = {floordiv(loop.value, factor), loop.extent / factor};
          loops.push_back({floormod(loop.value, factor), factor});
          break;
        }
        case 1:
        case 2: {  // fuse
          size_t other = static_cast<size_t>(pick(static_cast<int>(loops.size())));
          if (other == at) break;
          loops[at] = {loop.value * loops[other].extent + loops[other].value, loop.extent * loops[other].extent};
          loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(other));
          break;
        }
        case 3: {  // cut, as a split that is not exact does, down to a single iteration
          if (loop.extent < 2 || predicate.defined()) break;
          loops[at].extent = 1 + pick(static_cast<int>(loop.extent) - 1);
          predicate = lt(loop.value, i32(loops[at].extent));
          ++cut;
          break;
        }
        default:
          if (pick(6) == 0) {
            exact = false;
            loops[at].value = pick(2) ? loop.value * 2 + floormod(loop.value, 2) : floordiv(loop.value, 2);
          }
      }
    }
    if (!predicate.defined() && inputs.size() > 1 && pick(4) == 0) {  // a condition on a digit of loops together
      Expr sum = inputs[0].var * i32(inputs[1].extent) + inputs[1].var;
      const int by = 2 + pick(3);
      Expr digit = pick(2) ? floormod(sum, i32(by)) : floordiv(sum, i32(by));
      predicate = pick(2) ? eq(digit, i32(pick(by))) : le(digit, i32(pick(by)));
      exact = false;
    }
    std::vector<Expr> indices;
    for (const Loop& loop : loops) indices.push_back(loop.value);
    for (IterMapLevel level : {IterMapLevel::kBijective, IterMapLevel::kSurjective, IterMapLevel::kNoCheck}) {
      IterMapResult result = detect(indices, level, predicate);
      if (!result.ok()) {
        EXPECT_FALSE(exact) << "seed " << seed << ": " << text(indices[0]) << ": " << result.errors[0]
                            << (predicate.defined() ? " where " + text(predicate) : "");
        continue;
      }
      ++accepted;
      verify(indices, result, level, predicate);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 3000);
  EXPECT_GT(cut, 300);
}

}  // namespace
}  // namespace tilewright::arith
