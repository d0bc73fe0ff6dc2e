#include "analysis/witness.h"

#include <algorithm>

#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using Value = std::optional<int64_t>;

template <class F>
Value with_both(const Expr& e, const Point& point, F&& combine) {
  const BinaryOperands operands = binary_operands(e);
  Value x = evaluate(*operands.a, point);
  if (!x) return std::nullopt;
  Value y = evaluate(*operands.b, point);
  return y ? combine(*x, *y) : std::nullopt;
}

Value added(int64_t x, int64_t y) {
  int64_t result;
  return __builtin_add_overflow(x, y, &result) ? Value() : result;
}
Value subtracted(int64_t x, int64_t y) {
  int64_t result;
  return __builtin_sub_overflow(x, y, &result) ? Value() : result;
}
Value multiplied(int64_t x, int64_t y) {
  int64_t result;
  return __builtin_mul_overflow(x, y, &result) ? Value() : result;
}
bool divides(int64_t x, int64_t y) { return y != 0 && !(x == INT64_MIN && y == -1); }
Value floor_divided(int64_t x, int64_t y) {
  if (!divides(x, y)) return std::nullopt;
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

Value evaluate_call(const Call& call, const Point& point) {
  switch (intrinsic_of(call)) {
    case Intrinsic::k_if_then_else: {
      Value condition = evaluate(call.arg(0), point);
      return condition ? evaluate(call.arg(*condition ? 1 : 2), point) : std::nullopt;
    }
    case Intrinsic::k_likely:
      return evaluate(call.arg(0), point);
    default:
      return std::nullopt;
  }
}

Value evaluate_any(const Expr& e, const Point& point) {
  switch (e.kind()) {
    case Kind::kIntImm:
      return e.as<IntImm>()->value;
    case Kind::kVar:
      return point.get(e);
    case Kind::kAdd:
      return with_both(e, point, added);
    case Kind::kSub:
      return with_both(e, point, subtracted);
    case Kind::kMul:
      return with_both(e, point, multiplied);
    case Kind::kFloorDiv:
      return with_both(e, point, floor_divided);
    case Kind::kFloorMod:
      return with_both(e, point, [](int64_t x, int64_t y) {
        Value quotient = floor_divided(x, y);
        return quotient ? Value(x - *quotient * y) : Value();
      });
    case Kind::kDiv:
      return with_both(e, point, [](int64_t x, int64_t y) { return divides(x, y) ? Value(x / y) : Value(); });
    case Kind::kMod:
      return with_both(e, point, [](int64_t x, int64_t y) { return divides(x, y) ? Value(x % y) : Value(); });
    case Kind::kMin:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(std::min(x, y)); });
    case Kind::kMax:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(std::max(x, y)); });
    case Kind::kEQ:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x == y); });
    case Kind::kNE:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x != y); });
    case Kind::kLT:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x < y); });
    case Kind::kLE:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x <= y); });
    case Kind::kGT:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x > y); });
    case Kind::kGE:
      return with_both(e, point, [](int64_t x, int64_t y) { return Value(x >= y); });
    case Kind::kAnd: {
      // Known where one operand decides.
      Value x = evaluate(e.as<And>()->a, point), y = evaluate(e.as<And>()->b, point);
      if ((x && !*x) || (y && !*y)) return 0;
      return x && y ? Value(1) : Value();
    }
    case Kind::kOr: {
      Value x = evaluate(e.as<Or>()->a, point), y = evaluate(e.as<Or>()->b, point);
      if ((x && *x) || (y && *y)) return 1;
      return x && y ? Value(0) : Value();
    }
    case Kind::kNot: {
      Value x = evaluate(e.as<Not>()->a, point);
      return x ? Value(!*x) : Value();
    }
    case Kind::kSelect: {
      Value condition = evaluate(e.as<Select>()->condition, point);
      if (!condition) return std::nullopt;
      return evaluate(*condition ? e.as<Select>()->true_value : e.as<Select>()->false_value, point);
    }
    case Kind::kCast:
      return evaluate(e.as<Cast>()->value, point);
    case Kind::kCall:
      return evaluate_call(*e.as<Call>(), point);
    default:
      return std::nullopt;
  }
}

/// Walks through the iterations.
class Search {
 public:
  Search(Surroundings around, const std::function<bool(const Point&)>& accept) : around_(around), accept_(accept) {
    for (const Surrounding& s : around) {
      loops_ += s.kind == Surrounding::Kind::kLoop;
      hopeless_ |= s.kind == Surrounding::Kind::kWhile;
    }
    extents_.resize(loops_);
  }

  std::optional<Point> run(const std::vector<Expr>& goals) {
    corners();
    if (are_few()) {
      all();
      return std::move(found_);
    }
    for (int i = 0; i < kRandom && going(); ++i) {
      Steps steps(loops_);
      for (int64_t& step : steps) step = static_cast<int64_t>(next() >> 1);
      visit(steps);
    }
    for (const Expr& goal : goals) climb(goal);
    return std::move(found_);
  }

 private:
  using Steps = std::vector<int64_t>;  ///< position of each loop: kLast and beyond, the last iteration
  static constexpr int64_t kLast = INT64_MAX;
  static constexpr int64_t kFew = 1024;  ///< iterations: fewer than trying here and there would look at
  static constexpr size_t kMostCorners = 6;
  static constexpr int kRandom = 48, kMostMoves = 400;

  bool going() const { return !found_ && !hopeless_; }

  uint64_t next() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ ^ (random_ >> 29);
  }

  /// Fills the point; false where the iteration does not exist, or it is not known to. Notes the loops it comes to, and
  /// how long they are.
  bool reach(Steps& steps, Point& point) {
    size_t& at = reached_ = 0;
    for (const Surrounding& s : around_) {
      switch (s.kind) {
        case Surrounding::Kind::kLoop: {
          const For& loop = *s.node.as<For>();
          Value min = evaluate(loop.min, point), extent = evaluate(loop.extent, point);
          if (!min || !extent) hopeless_ = loops_ == 0 || at == 0;
          if (!min || !extent || *extent <= 0) return false;
          extents_[at] = *extent;
          int64_t& step = steps[at++];
          step = step == kLast ? *extent - 1 : step % *extent;
          Value value = added(*min, step);
          if (!value) return false;
          point.set(s.var, *value);
          break;
        }
        case Surrounding::Kind::kLet:
        case Surrounding::Kind::kAxis: {
          Value value = s.set.is_point() ? evaluate(s.set.min, point) : Value();
          if (value) point.set(s.var, *value);
          break;
        }
        case Surrounding::Kind::kCondition:
        case Surrounding::Kind::kAssertion: {
          Value holds = evaluate(s.condition, point);
          if (!holds || !*holds) return false;
          break;
        }
        case Surrounding::Kind::kWhile:
          return false;
        case Surrounding::Kind::kBlock:
        case Surrounding::Kind::kDeclaration:
          break;
      }
    }
    return true;
  }

  /// Visits an iteration. Returns whether it runs.
  bool visit(Steps& steps) {
    point_.clear();
    if (!reach(steps, point_)) return false;
    if (accept_(point_)) found_ = point_;
    some_.push_back(steps);
    return true;
  }

  bool are_few() const {
    int64_t count = 1;
    for (const Surrounding& s : around_) {
      if (s.kind != Surrounding::Kind::kLoop) continue;
      auto extent = const_int(s.node.as<For>()->extent);
      if (!extent || (*extent > 0 && __builtin_mul_overflow(count, *extent, &count)) || count > kFew) return false;
    }
    return true;
  }

  /// Visits every iteration, in order. A false condition outside a loop skips the whole loop.
  void all() {
    Steps steps(loops_, 0);
    while (going()) {
      point_.clear();
      if (reach(steps, point_) && accept_(point_)) found_ = point_;
      size_t at = reached_;
      while (at > 0 && steps[at - 1] + 1 >= extents_[at - 1]) --at;
      if (at == 0) return;
      ++steps[at - 1];
      std::fill(steps.begin() + static_cast<ptrdiff_t>(at), steps.end(), 0);
    }
  }

  void corners() {
    size_t free = std::min(loops_, kMostCorners);
    for (size_t bits = 0; bits < size_t{1} << free && going(); ++bits) {
      Steps steps(loops_, 0);
      for (size_t i = 0; i < loops_; ++i) {
        // Beyond the first few, loops go with the last of them.
        if (bits >> std::min(i, free - 1) & 1) steps[i] = kLast;
      }
      visit(steps);
    }
  }

  Value at(Steps& steps, const Expr& goal) { return visit(steps) ? evaluate(goal, point_) : Value(); }

  /// Improves the best iteration by steps along one loop or two, as long as the goal grows.
  void climb(const Expr& goal) {
    Steps best;
    Value most;
    std::vector<Steps> seen = std::exchange(some_, {});
    for (Steps& steps : seen) {
      if (!going()) return;
      Value value = at(steps, goal);
      if (value && (!most || *value > *most)) most = value, best = steps;
    }
    some_ = std::move(seen);
    int moves = 0;
    for (bool better = most.has_value(); better && going();) {
      better = false;
      for (size_t i = 0; i < loops_ && !better; ++i) {
        for (int64_t length = 1; length < extents_[i] && !better && ++moves < kMostMoves; length *= 2) {
          for (int64_t move : {length, -length}) {
            Steps steps = best;
            steps[i] += move;
            if (steps[i] < 0 || !going()) continue;
            Steps wanted = steps;
            Value value = at(steps, goal);
            if (!value || *value <= *most || steps != wanted) continue;
            most = value, best = steps, better = true;
            break;
          }
        }
      }
    }
  }

  Surroundings around_;
  const std::function<bool(const Point&)>& accept_;
  size_t loops_ = 0;
  bool hopeless_ = false;
  uint64_t random_ = 20;
  Point point_;
  size_t reached_ = 0;       ///< loops of the iteration that was looked for last
  Steps extents_;            ///< extents of loops in their last visited iteration
  std::vector<Steps> some_;  ///< iterations that run
  std::optional<Point> found_;
};

}  // namespace

std::optional<int64_t> Point::get(const NodeRef& variable) const {
  for (const auto& [known, value] : reversed(values_)) {
    if (known == variable.get()) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> evaluate(const Expr& e, const Point& point) {
  DataType type = e.dtype();
  if (!type.is_scalar() || !(type.is_integral() || type.is_bool())) return std::nullopt;
  Value value = evaluate_any(e, point);
  if (!value || type.is_bool()) return value;
  if (type.is_uint() && *value < 0) return std::nullopt;
  int bits = type.is_uint() ? type.bits : type.bits - 1;
  if (bits < 63 && (*value >= int64_t{1} << bits || *value < -(int64_t{1} << bits))) return std::nullopt;
  return value;
}

std::optional<Point> find_iteration(Surroundings around, const std::vector<Expr>& goals,
                                    const std::function<bool(const Point&)>& accept) {
  return Search(around, accept).run(goals);
}

std::string loops_of(Surroundings around, const Point& point) {
  std::string text;
  for (const Surrounding& s : around) {
    if (s.kind != Surrounding::Kind::kLoop) continue;
    text += (text.empty() ? "" : ", ") + s.var->name_hint + " = " + std::to_string(point.get(s.var).value_or(0));
  }
  return text;
}

}  // namespace tilewright::analysis
