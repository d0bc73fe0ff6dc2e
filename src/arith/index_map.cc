// Theorem behind invert(). Let each index x in [0, N) be divided by numbers whose least common multiple is F, always as
// x + c with one c. With L = c % F, x + L = q * F + r holds for exactly one q in [0, Q) and r in [0, F), where
// Q = ceil((N + L) / F); the pairs that belong to no x are those with x + L < L, all in the first group of F, and those
// with x + L >= N + L, all in the last one. In q and r the map divides without remainders: if it is one to one there
// and its images are a box, the box minus the images of those pairs is the image of the old array.
#include "arith/index_map.h"

#include <numeric>

#include "arith/int_set.h"
#include "arith/iter_map.h"
#include "arith/linear.h"
#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

DataType wide_type(const std::vector<Expr>& shape) {
  DataType type = DataType::int_(32);
  for (const Expr& extent : shape) {
    if (extent.dtype().bits > type.bits) type = DataType::int_(extent.dtype().bits);
  }
  return type;
}

/// Digits of an index.
struct SplitIndex {
  Expr offset;  ///< offset added before each division; null while it is not divided
  Expr factor;  ///< null: by numbers that have no common multiple here
  bool failed = false;
  Expr left, groups;  ///< L and Q of the theorem
  Ref<Var> outer, inner;
  bool split() const { return outer.defined(); }
};

class Inverter {
 public:
  Inverter(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer)
      : type_(wide_type(shape)), map_(with_index_type(map, type_)), analyzer_(analyzer), digits_(shape.size()) {
    for (const Expr& extent : shape) shape_.push_back(cast(type_, extent));
  }

  Result<InvertedMap> run() {
    if (map_->initial_indices.size() != shape_.size()) {
      return argument_error("index-map/count",
                            "the map takes " + std::to_string(map_->initial_indices.size()) +
                                " indices of an array of " + std::to_string(shape_.size()) + " dimensions",
                            "give it one parameter for each dimension: lambda i, j: ...");
    }
    for (const Expr& e : map_->final_indices) {
      if (!is_plain(e)) {
        return argument_error("index-map/form", "a new index is built of more than +, -, *, // and %",
                              "only splits and fusions of the indices can be inverted");
      }
    }
    for (const Expr& e : map_->final_indices) note_divisions(e);
    for (size_t d : indices_of(shape_)) take_apart(d);
    return solve();
  }

 private:
  static bool is_plain(const Expr& e) { return e.dtype().is_int() && !has_node<Call, BufferLoad, Select, Min, Max>(e); }

  std::optional<size_t> position(const Expr& e) const {
    for (size_t d : indices_of(map_->initial_indices)) {
      if (e == map_->initial_indices[d]) return d;
    }
    return std::nullopt;
  }
  bool is_constant(const Expr& e) const {
    return !uses_any_var(e, [&](const Ref<Var>& v) { return position(v).has_value(); });
  }

  struct Peeled {
    size_t index;
    Expr offset, divisor;
  };
  /// e is digit of x + offset: (x + offset) // divisor, perhaps modulo something.
  std::optional<Peeled> peel(const Expr& e) const {
    if (auto d = position(e)) return Peeled{*d, zero(type_), one(type_)};
    const Add* add = e.as<Add>();
    const Sub* sub = e.as<Sub>();
    if (add || sub) {
      const Expr &a = add ? add->a : sub->a, &b = add ? add->b : sub->b;
      if (auto d = position(a); d && is_constant(b)) return Peeled{*d, add ? b : zero(type_) - b, one(type_)};
      if (auto d = position(b); add && d && is_constant(a)) return Peeled{*d, a, one(type_)};
      return std::nullopt;
    }
    const FloorDiv* div = e.as<FloorDiv>();
    const FloorMod* mod = e.as<FloorMod>();
    if (!div && !mod) return std::nullopt;
    auto inner = peel(div ? div->a : mod->a);
    if (!inner || !is_constant(div ? div->b : mod->b)) return std::nullopt;
    if (div) inner->divisor = inner->divisor * div->b;
    return inner;
  }

  void note_divisions(const Expr& e) {
    auto note = [&](const Expr& value, const Expr& by) {
      auto peeled = peel(value);
      if (!peeled || !is_constant(by)) return;
      SplitIndex& digits = digits_[peeled->index];
      Expr factor = analyzer_.simplify(peeled->divisor * by);
      if (!digits.offset.defined()) {
        digits.offset = peeled->offset;
        digits.factor = factor;
      } else {
        digits.failed |= !analyzer_.can_prove_equal(digits.offset, peeled->offset);
        digits.factor = common_multiple(digits.factor, factor);
      }
    };
    visit(e, on<FloorDiv, FloorMod>([&](const auto& division) { note(division->a, division->b); }));
  }

  Expr common_multiple(const Expr& a, const Expr& b) {
    if (!a.defined() || same_expr(a, b)) return a;
    auto x = const_int(a), y = const_int(b);
    constexpr int64_t kLimit = int64_t{1} << 31;
    if (x && y && *x > 0 && *y > 0 && *x <= kLimit && *y <= kLimit && std::lcm(*x, *y) <= kLimit) {
      return constant(type_, std::lcm(*x, *y));
    }
    return {};
  }

  void take_apart(size_t d) {
    SplitIndex& digits = digits_[d];
    if (!digits.offset.defined() || digits.failed || !digits.factor.defined()) return;
    auto factor = const_int(digits.factor);
    if (factor && *factor < 1) return;
    const Expr& f = digits.factor;
    digits.left = analyzer_.simplify(floormod(digits.offset, f));
    Expr right = analyzer_.simplify(shape_[d] + digits.left);
    bool even = is_const_int(digits.left, 0) && analyzer_.can_prove_equal(floormod(right, f), zero(type_));
    if (even) return;
    const std::string& name = map_->initial_indices[d]->name_hint;
    digits.outer = var(name + "_o", type_);
    digits.inner = var(name + "_i", type_);
    digits.groups =
        analyzer_.simplify(factor ? size_ceildiv(right, f) : floordiv(floormod(zero(type_) - right, f) + right, f));
    if (!factor) analyzer_.assume(ge(f, one(type_)));
  }

  /// The final indices in the digits.
  std::vector<Expr> in_digits() {
    VarMap values;
    for (size_t d : indices_of(digits_)) {
      if (digits_[d].split()) values[map_->initial_indices[d]] = whole(d) - digits_[d].left;
    }
    std::vector<Expr> result;
    for (const Expr& e : map_->final_indices) {
      Expr direct = rewrite(
          e,
          [&](const Ref<FloorDiv>& div, Rewriter& walk) -> Expr {
            auto peeled = by_symbol(div->a, div->b);
            return peeled ? Expr(digits_[peeled->index].outer) + groups_before(*peeled) : Expr(walk.descend(div));
          },
          [&](const Ref<FloorMod>& mod, Rewriter& walk) -> Expr {
            auto peeled = by_symbol(mod->a, mod->b);
            return peeled ? Expr(digits_[peeled->index].inner) : Expr(walk.descend(mod));
          });
      result.push_back(analyzer_.simplify(substitute(direct, values)));
    }
    return result;
  }
  /// q * F + r
  Expr whole(size_t d) const { return digits_[d].outer * digits_[d].factor + digits_[d].inner; }
  /// (x + c) // F or (x + c) % F with a symbolic F.
  std::optional<Peeled> by_symbol(const Expr& value, const Expr& by) const {
    auto peeled = peel(value);
    if (!peeled || !is_const_int(peeled->divisor, 1)) return std::nullopt;
    const SplitIndex& digits = digits_[peeled->index];
    return digits.split() && !const_int(by) && same_expr(by, digits.factor) ? peeled : std::nullopt;
  }
  Expr groups_before(const Peeled& peeled) const {
    const SplitIndex& digits = digits_[peeled.index];
    return floordiv(peeled.offset - digits.left, digits.factor);
  }

  Result<InvertedMap> solve() {
    IterDomains inputs;
    Expr before = constant(DataType::int_(64), 1);
    auto add = [&](const Ref<Var>& v, const Expr& extent) {
      Ref<Range> range = range_of(extent);
      inputs.emplace_back(v, range);
      analyzer_.bind(v, range);
      before = before * cast(DataType::int_(64), extent);
    };
    for (size_t d : indices_of(shape_)) {
      if (digits_[d].split()) {
        add(digits_[d].outer, digits_[d].groups);
        add(digits_[d].inner, digits_[d].factor);
      } else {
        add(map_->initial_indices[d], shape_[d]);
      }
    }
    std::vector<Expr> finals = in_digits();
    IterMapResult iter_map = detect_iter_map(finals, inputs, {}, IterMapLevel::kBijective, analyzer_);
    if (!iter_map.ok()) {
      return argument_error("index-map/injective",
                            "it cannot be proved that different indices stay different: " + iter_map.errors.front(),
                            "every index has to be recoverable from the new ones");
    }
    InvertedMap result;
    Expr after = constant(DataType::int_(64), 1);
    for (size_t i = 0; i < finals.size(); ++i) {
      const IterSumExpr& sum = iter_map.indices[i];
      if (!analyzer_.can_prove_equal(sum.base, zero(sum.base.dtype()))) {
        return argument_error("index-map/start", "new index " + std::to_string(i) + " does not start at 0",
                              "remove the constant that is added to all of its values");
      }
      // Sizes that it divides by are positive.
      Expr extent = analyzer_.simplify(cast(type_, length(sum)));
      if (leaves_type(extent)) {
        return argument_error("index-map/size",
                              "new index " + std::to_string(i) + " takes more values than " + type_.str() + " holds",
                              "keep it in several indices, or let the extents be T.int64");
      }
      const bool is_known = analyzer_.can_prove_greater_equal(extent, 0);
      result.shape.push_back(is_known ? extent : not_negative(extent, shape_));
      after = after * cast(DataType::int_(64), result.shape.back());
    }
    result.holes = !analyzer_.can_prove_equal(before, after);
    turn_around(iter_map, result);
    return result;
  }

  /// One more than the largest value. Digits that follow one another reach the first one's scale times its extent.
  Expr length(const IterSumExpr& sum) {
    if (sum.args.empty()) return one(type_);
    if (analyzer_.can_prove_equal(sum.args.back().scale, one(type_))) return sum.args[0].scale * sum.args[0].extent;
    Expr largest = zero(type_);
    for (const IterSplitExpr& digit : sum.args) largest = largest + (digit.extent - 1) * digit.scale;
    return largest + 1;
  }

  void turn_around(const IterMapResult& found, InvertedMap& result) {
    IndexMap inverse;
    std::vector<Expr> outputs;
    for (size_t i : indices_of(result.shape)) {
      Ref<Var> v = var("axis" + std::to_string(i), type_);
      analyzer_.bind(v, range_of(result.shape[i]));
      inverse.initial_indices.emplace_back(v);
      outputs.push_back(v);
    }
    auto values = inverse_affine_iter_map(found.indices, outputs, analyzer_);
    auto value = [&](const Ref<Var>& v) {
      auto* value = find_value(values, v);
      return value ? *value : zero(type_);
    };
    result.padding = bool_imm(false);
    for (size_t d : indices_of(digits_)) {
      const SplitIndex& digits = digits_[d];
      if (!digits.split()) {
        inverse.final_indices.push_back(analyzer_.simplify(value(map_->initial_indices[d])));
        continue;
      }
      Expr q = analyzer_.simplify(value(digits.outer)), r = analyzer_.simplify(value(digits.inner));
      inverse.final_indices.push_back(analyzer_.simplify(q * digits.factor + r - digits.left));
      Expr right = shape_[d] + digits.left;
      Expr low = logical_and(eq(q, floordiv(digits.left, digits.factor)), lt(r, floormod(digits.left, digits.factor)));
      Expr high = logical_and(logical_and(ne(floormod(zero(type_) - right, digits.factor), zero(type_)),
                                          eq(q, floordiv(right, digits.factor))),
                              ge(r, floormod(right, digits.factor)));
      if (is_const_int(digits.left, 0)) low = bool_imm(false);
      result.padding = logical_or(result.padding, logical_or(low, high));
    }
    result.padding = analyzer_.simplify(result.padding);
    result.inverse = make(std::move(inverse));
  }

  DataType type_;
  Ref<IndexMap> map_;
  Analyzer& analyzer_;
  std::vector<Expr> shape_;
  std::vector<SplitIndex> digits_;
};

}  // namespace

Ref<IndexMap> with_index_type(const IndexMap& map, DataType type) {
  IndexMap result;
  VarMap renamed, narrowed;
  for (const Def<Var>& v : map.initial_indices) {
    result.initial_indices.emplace_back(v.dtype() == type ? Ref<Var>(v) : var(v->name_hint, type));
    renamed[v] = result.initial_indices.back();
    narrowed[v] = cast(v.dtype(), result.initial_indices.back());
  }
  // Loads and calls keep their types, and so do their arguments.
  auto as_given = [&](const Expr& e) {
    Expr inner = substitute(e, narrowed);
    return e.dtype().is_int() ? cast(type, inner) : inner;
  };
  for (const Expr& e : map.final_indices) {
    Expr typed = rewrite(
        e,
        [&](const Ref<Var>& v, Rewriter&) -> Expr {
          if (auto* known = find_value(renamed, v)) return *known;
          return v.dtype().is_int() ? cast(type, v) : Expr(v);
        },
        [&](const Ref<IntImm>& value, Rewriter&) -> Expr {
          return value.dtype().is_int() ? constant(type, value->value) : Expr(value);
        },
        [&](const Ref<Cast>& converted, Rewriter& walk) -> Expr {
          bool between_ints = converted.dtype().is_int() && converted->value.dtype().is_int();
          return between_ints ? walk(converted->value) : Expr(walk.descend(converted));
        },
        on<BufferLoad, Call>([&](const auto& node, Rewriter&) -> Expr { return as_given(node); }));
    result.final_indices.push_back(cast(type, typed));
  }
  result.inverse_index_map = map.inverse_index_map;
  return make(std::move(result));
}

std::vector<Expr> map_indices(const IndexMap& map, const std::vector<Expr>& indices, Analyzer& analyzer) {
  VarMap values;
  for (size_t d : indices_of(indices)) {
    values[map.initial_indices[d]] = cast(map.initial_indices[d].dtype(), indices[d]);
  }
  std::vector<Expr> result;
  for (const Expr& e : map.final_indices) result.push_back(analyzer.simplify(substitute(e, values)));
  return result;
}

std::vector<Ref<Range>> map_region(const IndexMap& map, const std::vector<Ref<Range>>& region, Analyzer& analyzer) {
  Domains domains;
  Expr before = i64(1), after = i64(1);
  for (size_t d : indices_of(region)) {
    DataType type = map.initial_indices[d].dtype();
    domains[map.initial_indices[d]] =
        IntSet::of_range(range(cast(type, region[d]->min), cast(type, region[d]->extent)));
    before = before * cast(DataType::int_(64), region[d]->extent);
  }
  std::vector<Ref<Range>> result;
  for (const Expr& e : map.final_indices) {
    IntSet set = eval_set(e, domains, analyzer);
    Ref<Range> dim = set.is_bounded() ? set.to_range(analyzer) : Ref<Range>();
    if (!dim.defined()) return {};
    result.push_back(dim);
    after = after * cast(DataType::int_(64), dim->extent);
  }
  // Different indices have different images: if there are as many, the box holds nothing else.
  if (!analyzer.can_prove_equal(before, after)) return {};
  return result;
}

namespace {

/// Whether the index runs against the map: it is taken away, or times a negative number.
bool is_mirrored(const IndexMap& map, const Ref<Var>& index) {
  auto is_index = [&](const Ref<Var>& v) { return v == index; };
  bool found = false;
  for (const Expr& e : map.final_indices) {
    visit(
        e, [&](const Ref<Sub>& sub) { found |= uses_any_var(sub->b, is_index); },
        [&](const Ref<Mul>& mul) {
          auto factor = const_int(mul->b);
          found |= factor && *factor < 0 && uses_any_var(mul->a, is_index);
        });
  }
  return found;
}

}  // namespace

Result<InvertedMap> invert(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer) {
  auto direct = Inverter(map, shape, analyzer).run();
  if (direct.ok() || map.initial_indices.size() != shape.size()) return direct;
  // An index that counts down, such as 7 - i, is inverted as the ascending index of the mirrored dimension.
  std::vector<bool> mirrored;
  VarMap values;
  Analyzer plain;
  for (size_t d : indices_of(shape)) {
    const Def<Var>& index = map.initial_indices[d];
    mirrored.push_back(is_mirrored(map, index));
    if (mirrored[d]) values[index] = cast(index.dtype(), shape[d]) - 1 - index;
  }
  if (values.empty()) return direct;
  IndexMap flipped = map;
  for (Expr& e : flipped.final_indices) e = plain.simplify(substitute(e, values));
  auto inverted = Inverter(flipped, shape, analyzer).run();
  if (!inverted.ok()) return direct;
  IndexMap inverse = *inverted->inverse;
  for (size_t d : indices_of(shape)) {
    Expr& index = inverse.final_indices[d];
    if (mirrored[d]) index = plain.simplify(cast(index.dtype(), shape[d]) - 1 - index);
  }
  inverted->inverse = make(std::move(inverse));
  return inverted;
}

Expr not_negative(const Expr& extent, const std::vector<Expr>& shape) {
  if (const auto number = const_int(extent)) return *number < 0 ? zero(extent.dtype()) : extent;
  Analyzer analyzer;
  for (const Expr& old : shape) analyzer.assume(ge(old, 0));
  return analyzer.can_prove_greater_equal(extent, 0) ? extent : max(extent, zero(extent.dtype()));
}

bool leaves_type(const Expr& extent) {
  bool found = is_unfoldable(extent);
  auto look = [&](const auto& node) { found |= is_unfoldable(node); };
  visit(extent, on<Add, Sub, Mul>(look));
  return found;
}

std::vector<Expr> map_shape(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer) {
  if (auto inverted = invert(map, shape, analyzer); inverted.ok()) return inverted->shape;
  Ref<IndexMap> typed = with_index_type(map, wide_type(shape));
  Domains domains;
  for (size_t d : indices_of(shape)) {
    domains[typed->initial_indices[d]] = IntSet::of_range(range_of(cast(typed->initial_indices[d].dtype(), shape[d])));
  }
  std::vector<Expr> result;
  for (const Expr& e : typed->final_indices) {
    IntSet set = eval_set(e, domains, analyzer);
    if (!set.is_bounded()) return {};
    const Expr extent = analyzer.simplify(set.max - set.min + 1);
    if (leaves_type(extent)) return {};
    result.push_back(not_negative(extent, shape));
  }
  return result;
}

bool equivalent(const IndexMap& a, const IndexMap& b) {
  if (a.initial_indices.size() != b.initial_indices.size() || a.final_indices.size() != b.final_indices.size()) {
    return false;
  }
  DataType type = DataType::int_(32);
  for (const IndexMap* map : {&a, &b}) {
    for (const Def<Var>& v : map->initial_indices) {
      if (v.dtype().bits > type.bits) type = v.dtype();
    }
  }
  Ref<IndexMap> left = with_index_type(a, type), right = with_index_type(b, type);
  Analyzer analyzer;
  std::vector<Expr> shared(left->initial_indices.begin(), left->initial_indices.end());
  std::vector<Expr> other = map_indices(*right, shared, analyzer);
  for (size_t i : indices_of(other)) {
    if (!analyzer.can_prove_equal(left->final_indices[i], other[i])) return false;
  }
  return true;
}

}  // namespace tilewright::arith
