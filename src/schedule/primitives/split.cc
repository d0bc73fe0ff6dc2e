// Split one loop into a nest whose extents multiply to at least the original extent, in the same order of iterations.
//
//   Before                                After  sch.split(i, factors=[None, 32])
//   for i in range(100):                  for i_0, i_1 in T.grid(4, 32):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(100, i)           vi = T.axis.spatial(100, i_0 * 32 + i_1)
//                                             T.where(i_0 * 32 + i_1 < 100)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Each call checks that extents computed from the sizes of its arguments fit their types (analysis/size_limits.h). Data
// is not checked: if an extent that is read from an array may exceed int32 when it is rounded up, the new loops are
// int64.
//
// Requires  P1 the loop is serial, without annotation or binding
//           P2 it starts at 0
//           P3 at most one factor is inferred, and there is at least one factor
//           P4 factors are positive and their product fits the loop's type; they are numbers, or of T.vscale() alone
//           P5 the product is provably at least the extent
//           P6 where it exceeds the extent, everything below is in blocks (nothing else can be given a condition), and
//              the bounds of loops around these do not fail beyond the extent
//           P7 with disable_predication it equals the extent
//           P8 the loop changes nothing that its extent reads, which the condition repeats
#include "schedule/primitives/split.h"

#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "ir/build.h"
#include "ir/ceildiv.h"
#include "ir/numeric.h"
#include "ir/scalable.h"
#include "ir/traverse.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "schedule/rebind.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

std::string factor_list(const State& state, const Split& split) {
  std::string text;
  for (const Factor& factor : split.factors.items) {
    text += text.empty() ? "" : ", ";
    if (auto* number = std::get_if<int64_t>(&factor)) text += std::to_string(*number);
    if (auto* sampled = std::get_if<ExprRV>(&factor)) text += std::to_string(state.value(*sampled));
    if (std::holds_alternative<None>(factor)) text += "None";
    if (auto* node = std::get_if<NodeRef>(&factor)) text += brief(Expr(*node));
  }
  return "[" + text + "]";
}

struct SplitExtents {
  DataType dtype;             ///< type of the new loops
  std::vector<Expr> extents;  ///< extents of the new loops
  bool exact = false;         ///< their product is the old extent
};

/// Proofs about expressions of T.vscale(): for each number that it may be.
bool can_prove(const Expr& condition, arith::Analyzer& analyzer) {
  if (analyzer.can_prove(condition)) return true;
  return uses_vscale(condition) &&
         all_of(kVscales, [&](int vscale) { return analyzer.can_prove(with_vscale(condition, vscale)); });
}

/// A factor that is an expression, in the type of the loop; nothing for what depends on more than T.vscale(), or may
/// not be positive.
std::optional<Expr> scalable_factor(const NodeRef& node, DataType dtype, arith::Analyzer& analyzer) {
  if (node.sort() != Sort::kExpr) return std::nullopt;
  Expr given(node);
  if (!given.dtype().is_int() || !given.dtype().is_scalar() || has_node<Var, BufferLoad>(given)) return std::nullopt;
  if (!uses_vscale(given)) return std::nullopt;
  Expr factor = analyzer.simplify(cast(dtype, given));
  if (!can_prove(ge(factor, constant(dtype, 1)), analyzer)) return std::nullopt;
  return factor;
}

bool reads_data(const Expr& extent) { return effect_of(extent) != Effect::kPure; }

/// Whether the extent, rounded up to a multiple of the step, is too large for its type: for certain, or as far as is
/// known of data. Sizes without a bound are small enough.
bool leaves_type(const Expr& extent, const Expr& step, arith::Analyzer& analyzer) {
  const DataType dtype = extent.dtype();
  if (reads_data(extent) && dtype.bits >= 64) return false;  // the loop would never end
  const Expr most_of_step = with_vscale(step, kMaxVscale);
  const int64_t by = const_int(analyzer.simplify(most_of_step)).value_or(int_max(dtype));
  bool open = false;
  if (!const_int(extent) && !reads_data(extent)) {
    uses_any_var(
        extent, [&](const Ref<Var>& v) { return open |= analyzer.const_int_bound(v).max_value >= int_max(v.dtype()); });
  }
  if (open) return false;
  const int64_t most = std::min(analyzer.const_int_bound(extent).max_value, int_max(dtype));
  const __int128 rounded = (static_cast<__int128>(most) + by - 1) / by * by;
  return rounded > int_max(dtype);
}

/// The extents of the new loops, the inferred one included.
Result<SplitExtents> new_extents(const State& state, const Split& split, const Place& place, DataType dtype,
                                 arith::Analyzer& analyzer) {
  const For& loop = place.loop();
  auto factors = [&] { return "factors=" + factor_list(state, split); };
  int inferred = -1, position = 0;
  int64_t product = 1;
  Expr scalable = constant(dtype, 1);
  SplitExtents result{dtype, {}};
  for (const Factor& factor : split.factors.items) {
    if (std::holds_alternative<None>(factor)) {
      if (inferred >= 0) {
        return refuse("split/P3", "of " + factors() + " for " + describe(place) + " several are None", place,
                      "at most one factor can be inferred from the extent");
      }
      inferred = position;
      result.extents.emplace_back();
    } else if (auto* node = std::get_if<NodeRef>(&factor)) {
      std::optional<Expr> extent = scalable_factor(*node, dtype, analyzer);
      if (!extent) {
        return refuse("split/P4",
                      "factor number " + std::to_string(position) + " of " + factors() + " for " + describe(place) +
                          " is not a positive expression of T.vscale() alone",
                      place, "give numbers, sampled values, or multiples of T.vscale()");
      }
      scalable = scalable * *extent;
      result.extents.push_back(*extent);
    } else {
      auto* number = std::get_if<int64_t>(&factor);
      int64_t value = number ? *number : state.value(std::get<ExprRV>(factor));
      if (value < 1 || __builtin_mul_overflow(product, value, &product) || product > int_max(dtype)) {
        return refuse("split/P4",
                      "factor number " + std::to_string(position) + " of " + factors() + " for " + describe(place) +
                          (value < 1 ? " is not positive" : " makes a product beyond " + dtype.str()),
                      place, "factors are at least 1");
      }
      result.extents.push_back(constant(dtype, value));
    }
    ++position;
  }
  if (position == 0) {
    return refuse("split/P3", "no factors are given for " + describe(place), place,
                  "give the extents of the new loops, for instance factors=[None, 32]");
  }
  Expr total = scalable * constant(dtype, product);
  if (inferred >= 0) {
    if (leaves_type(cast(dtype, loop.extent), total, analyzer)) {
      const DataType wide = DataType::int_(64);
      if (reads_data(loop.extent) && dtype.bits < wide.bits) return new_extents(state, split, place, wide, analyzer);
      return refuse("split/P4",
                    factors() + " for " + describe(place) + " round it up to a multiple of " + brief(total) +
                        " beyond " + dtype.str(),
                    place, "use factors that divide the extent, smaller ones, or a loop over T.int64");
    }
    Expr& extent = result.extents[inferred];
    extent = analyzer.simplify(size_ceildiv(cast(dtype, loop.extent), total));
    total = extent * total;
  } else if (!can_prove(ge(total, cast(dtype, loop.extent)), analyzer)) {
    return refuse("split/P5",
                  "the product of " + factors() + " is " + brief(total) +
                      ", which is not provably at least the extent of " + describe(place),
                  place, "let one factor be None, and it is inferred");
  }
  const Expr whole = cast(dtype, loop.extent);
  result.exact = analyzer.can_prove_equal(total, whole);
  // Only with disable_predication: otherwise the condition stays, since it is needed for vectors of other lengths.
  if (!result.exact && split.disable_predication) result.exact = can_prove(eq(total, whole), analyzer);
  return result;
}

}  // namespace

Result<Plan> plan(const State& state, const Split& split) {
  TW_TRY(place, state.find(split.loop));
  const For& loop = place.loop();
  TW_RETURN_IF_ERROR(require_plain_loop(place, "split/P1"));
  TW_RETURN_IF_ERROR(require_zero_start(place, "split/P2"));
  TW_RETURN_IF_ERROR(require_kept_bounds(place, place, "split/P8"));
  Rebind rebind(*place.tree, place.at, split.preserve_unit_iters);
  TW_TRY(nest, new_extents(state, split, place, loop.loop_var.dtype(), rebind.analyzer()));
  if (!nest.exact && split.disable_predication) {
    return refuse("split/P7",
                  "factors=" + factor_list(state, split) + " do not provably multiply to the extent of " +
                      describe(place) + ", so a condition is needed",
                  place, "omit disable_predication");
  }

  std::vector<Ref<Var>> vars;
  const Expr start = zero(nest.dtype);
  Expr value = start;
  for (size_t i : indices_of(nest.extents)) {
    vars.push_back(var(loop.loop_var->name_hint + "_" + std::to_string(i), nest.dtype));
    rebind.bind(vars[i], start, nest.extents[i]);
    value = value * nest.extents[i] + vars[i];
  }
  rebind.replace(loop.loop_var, cast(loop.loop_var.dtype(), value));
  Expr condition;
  if (!nest.exact) {
    condition = lt(value, cast(nest.dtype, loop.extent));
    if (rebind.analyzer().can_prove(condition)) condition = {};
  }
  if (condition.defined()) {
    if (const NodeBase* bare = analysis::bare_statement_in(loop.body)) {
      return refuse("split/P6",
                    "a statement below " + describe(place) +
                        " is not in a block, and cannot be skipped for iterations beyond the extent",
                    {place.node(), NodeRef(bare)}, "use factors that multiply to the extent, or put it into a block");
    }
  }
  Stmt nested = rebind(loop.body, condition);
  if (condition.defined()) {
    // Inferred extents are positive only where the loop runs.
    auto is_number = [](const Expr& extent) { return extent.is<IntImm>(); };
    if (!all_of(nest.extents, is_number)) analysis::assume_runs(rebind.analyzer(), *place.tree, {place.at});
    if (auto failing = find_early_failure(nested, rebind.analyzer())) {
      return refuse("split/P6",
                    "below " + describe(place) + " stands " + *failing + " may divide by zero beyond the extent", place,
                    "use factors that multiply to the extent, or put that into a block");
    }
  }
  for (size_t i = vars.size(); i-- > 0;) {
    nested = make<For>({.loop_var = vars[i],
                        .min = start,
                        .extent = nest.extents[i],
                        .thread_binding = {},
                        .annotations = {},
                        .body = std::move(nested)},
                       place.node().span());
  }
  TreeEdit edit(*place.tree);
  edit.replace(place.at, std::move(nested));
  return give_loops(place.func, edit.finish(), vars);
}

}  // namespace tilewright::schedule
