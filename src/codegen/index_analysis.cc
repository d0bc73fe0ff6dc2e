#include "codegen/index_analysis.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "arith/fingerprint.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// The largest stride of loads that take everything between the first and the last element.
constexpr int64_t kMostStride = 4;
/// Bytes of a line of a cache, and of the widest vectors: what more alignment there is makes no difference.
constexpr int64_t kMostAlignment = 64;

/// The interval, unless the arithmetic could have wrapped in the type.
std::optional<Interval> unless_wrapped(DataType type, __int128 low, __int128 high) {
  if (type.is_uint() && type.bits == 64) return std::nullopt;
  if (low < int_min(type.element()) || high > int_max(type.element())) return std::nullopt;
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

std::optional<Interval> combine(Kind kind, DataType type, const Interval& a, const Interval& b) {
  using Wide = __int128;
  switch (kind) {
    case Kind::kAdd:
      return unless_wrapped(type, Wide{a.low} + b.low, Wide{a.high} + b.high);
    case Kind::kSub:
      return unless_wrapped(type, Wide{a.low} - b.high, Wide{a.high} - b.low);
    case Kind::kMul: {
      Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high};
      return unless_wrapped(type, *std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
    }
    case Kind::kFloorDiv:
      if (b.low < 1) return std::nullopt;
      return Interval{std::min(floor_div(a.low, b.low), floor_div(a.low, b.high)),
                      std::max(floor_div(a.high, b.low), floor_div(a.high, b.high))};
    case Kind::kFloorMod:
      if (b.low < 1) return std::nullopt;
      return Interval{0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
    case Kind::kMin:
      return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    case Kind::kMax:
      return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return std::nullopt;
  }
}

int64_t greatest_of(DataType type) { return type.bits == 64 ? INT64_MAX : int_max(type); }

}  // namespace

bool is_held_at_64_bits(DataType type) { return type.is_integral() && !type.is_bool() && type.is_scalar(); }

bool has_no_overflow(const Expr& e) { return arith::is_index(e.dtype()) || e.is<IntImm>() || e.is<Var>(); }

// ---- variables ---------------------------------------------------------------------------------------------------

void IndexAnalysis::define(const Ref<Var>& v) {
  const DataType type = v.dtype();
  Fact fact;
  fact.depth = depth_;
  if (is_held_at_64_bits(type)) {
    if (v->is_size || (type.is_uint() && type.bits < 64)) {
      fact.interval = Interval{0, greatest_of(type)};
    } else if (type.bits < 64) {
      fact.interval = Interval{int_min(type), int_max(type)};
    }
  }
  facts_[v] = fact;
}

void IndexAnalysis::define(const Ref<Var>& v, Interval interval) {
  define(v);
  facts_[v].interval = interval;
}

void IndexAnalysis::define(const Ref<Var>& v, const Expr& value) {
  auto interval = interval_of(value);
  const int64_t alignment = value.is<Var>() ? alignment_of(value.borrow<Var>()) : 0;
  define(v);
  if (interval) facts_[v].interval = interval;
  facts_[v].alignment = alignment;
}

void IndexAnalysis::define_pointer(const Ref<Var>& v, int64_t alignment, bool unique) {
  facts_[v] = {.depth = depth_, .interval = {}, .alignment = alignment, .unique = unique};
}

void IndexAnalysis::define(const Ref<Var>& v, const IndexAnalysis& elsewhere) {
  Fact fact = elsewhere.facts_.at(v);
  fact.depth = depth_;
  facts_[v] = fact;
}

// ---- intervals and alignment -------------------------------------------------------------------------------------

int64_t IndexAnalysis::alignment_of(const Ref<Var>& v) const {
  auto* fact = find_value(facts_, v);
  return fact ? fact->alignment : 0;
}

int64_t IndexAnalysis::alignment_of(const Buffer& buffer, const Expr& index) const {
  const int64_t bytes = buffer.dtype.bytes();
  const Linear parts = linear(buffer, index);
  // The lowest bit that is set in any of them is their greatest common power of two.
  uint64_t bits = static_cast<uint64_t>(std::max(alignment_of(buffer.data), bytes) | kMostAlignment);
  bits |= static_cast<uint64_t>(parts.constant) * static_cast<uint64_t>(bytes);
  for (const Term& term : parts.terms) bits |= static_cast<uint64_t>(term.factor) * static_cast<uint64_t>(bytes);
  return static_cast<int64_t>(bits & -bits);
}

std::optional<Interval> IndexAnalysis::interval_of(const Expr& e) const {
  switch (e.kind()) {
    case Kind::kIntImm:
      return Interval{e.as<IntImm>()->value, e.as<IntImm>()->value};
    case Kind::kVar: {
      auto* fact = find_value(facts_, e);
      return fact ? fact->interval : std::nullopt;
    }
    case Kind::kCast: {
      const Expr& value = e.as<Cast>()->value;
      if (!value.dtype().is_integral() || !e.dtype().is_integral()) return std::nullopt;
      auto inner = interval_of(value);
      return inner ? unless_wrapped(e.dtype(), inner->low, inner->high) : std::nullopt;
    }
    case Kind::kBroadcast:
      return interval_of(e.as<Broadcast>()->value);
    case Kind::kRamp: {
      const Ramp& ramp = *e.as<Ramp>();
      auto base = interval_of(ramp.base), stride = interval_of(ramp.stride);
      if (!base || !stride) return std::nullopt;
      auto steps = combine(Kind::kMul, e.dtype(), {0, e.dtype().lanes - 1}, *stride);
      return steps ? combine(Kind::kAdd, e.dtype(), *base, *steps) : std::nullopt;
    }
    default: {
      const BinaryOperands operands = binary_operands(e);
      auto a = operands ? interval_of(*operands.a) : std::nullopt;
      auto b = a ? interval_of(*operands.b) : std::nullopt;
      return b ? combine(e.kind(), e.dtype(), *a, *b) : std::nullopt;
    }
  }
}

Interval IndexAnalysis::interval_of(const For& loop) const {
  auto min = interval_of(loop.min);
  if (!min) return {INT64_MIN, INT64_MAX};
  Interval result{min->low, int_max(loop.loop_var.dtype())};
  auto extent = interval_of(loop.extent);
  if (extent && !__builtin_add_overflow(min->high, extent->high - 1, &result.high)) {
    result.high = std::max(result.high, result.low);
  }
  return result;
}

bool IndexAnalysis::is_nonnegative(const Expr& e) const {
  auto interval = interval_of(e);
  return interval && interval->low >= 0;
}

// ---- parts of an index -------------------------------------------------------------------------------------------

int IndexAnalysis::depth_of(const Expr& e) const {
  int depth = 0;
  visit(
      e,
      [&](const Ref<Var>& v) {
        if (auto* fact = find_value(facts_, v)) depth = std::max(depth, fact->depth);
      },
      // Memory may change with every iteration.
      [&](const Ref<BufferLoad>&, Visitor&) { depth = depth_; });
  return depth;
}

namespace {

int64_t wrapped_sum(int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }

/// Whether all values of a term are so large that a sum with other terms may overflow 64 bits.
bool is_huge(std::optional<Interval> values, int64_t factor) {
  constexpr int64_t kMost = int64_t{1} << 60;
  if (factor > kMost || factor < -kMost) return true;
  const int64_t most = kMost / std::max<int64_t>(std::abs(factor), 1);
  return values && (values->low > most || values->high < -most);
}

}  // namespace

void IndexAnalysis::collect(const Expr& e, uint64_t factor, Linear& into) const {
  switch (has_no_overflow(e) ? e.kind() : Kind::kVar) {
    case Kind::kIntImm:
      into.constant = wrapped_sum(into.constant, factor * static_cast<uint64_t>(e.as<IntImm>()->value));
      return;
    case Kind::kAdd:
      collect(e.as<Add>()->a, factor, into);
      collect(e.as<Add>()->b, factor, into);
      return;
    case Kind::kSub:
      collect(e.as<Sub>()->a, factor, into);
      collect(e.as<Sub>()->b, -factor, into);
      return;
    case Kind::kMul: {
      const Mul& product = *e.as<Mul>();
      if (auto c = const_int(product.b)) return collect(product.a, factor * static_cast<uint64_t>(*c), into);
      if (auto c = const_int(product.a)) return collect(product.b, factor * static_cast<uint64_t>(*c), into);
      break;
    }
    case Kind::kCast:
      if (arith::is_widening_index_cast(*e.as<Cast>())) return collect(e.as<Cast>()->value, factor, into);
      break;
    default:
      break;
  }
  for (Term& term : into.terms) {
    if (term.value == e) {
      term.factor = wrapped_sum(term.factor, factor);
      return;
    }
  }
  into.terms.push_back({e, static_cast<int64_t>(factor), depth_of(e)});
}

IndexAnalysis::Linear IndexAnalysis::linear(const Buffer& buffer, const Expr& index) const {
  Linear result;
  collect(index, static_cast<uint64_t>(buffer.dtype.lanes), result);
  std::erase_if(result.terms, [](const Term& term) { return term.factor == 0; });
  result.may_wrap = std::ranges::any_of(
      result.terms, [&](const Term& term) { return is_huge(interval_of(term.value), term.factor); });
  std::ranges::stable_sort(result.terms, [](const Term& a, const Term& b) { return a.depth < b.depth; });
  return result;
}

// ---- lanes -------------------------------------------------------------------------------------------------------

LaneLayout lane_layout(const Buffer& buffer, const Expr& index) {
  if (index.dtype().is_scalar()) return {LaneLayout::kContiguous, index};
  const Broadcast* same = index.as<Broadcast>();
  if (same && buffer.dtype.is_scalar()) return {LaneLayout::kSame, same->value};
  const Ramp* ramp = index.as<Ramp>();
  auto stride = ramp ? const_int(ramp->stride) : std::nullopt;
  if (!stride) return {LaneLayout::kScattered, {}};
  if (*stride == 1) return {LaneLayout::kContiguous, ramp->base};
  if (*stride == -1) return {LaneLayout::kReversed, ramp->base - (index.dtype().lanes - 1)};
  return {LaneLayout::kStrided, ramp->base, *stride};
}

namespace {

/// One lane of a vector; null where that is more than a load, and arithmetic of the same lane.
Expr lane_of(const Expr& e, int lane, bool& is_loaded) {
  if (e.dtype().is_scalar()) return e;
  if (const Broadcast* same = e.as<Broadcast>(); same && same->value.dtype().is_scalar()) return same->value;
  if (const Ramp* ramp = e.as<Ramp>(); ramp && ramp->base.dtype().is_scalar()) {
    return ramp->base + ramp->stride * constant(ramp->stride.dtype(), lane);
  }
  if (const Cast* converted = e.as<Cast>()) {
    Expr value = lane_of(converted->value, lane, is_loaded);
    return value.defined() ? cast(e.dtype().element(), value) : value;
  }
  if (const BufferLoad* load = e.as<BufferLoad>()) {
    if (load->predicate.defined() || load->indices.size() != 1 || load->buffer->dtype.is_vector()) return {};
    const LaneLayout layout = lane_layout(*load->buffer, load->indices[0]);
    if (layout.form != LaneLayout::kContiguous) return {};
    is_loaded = true;
    return tilewright::load(load->buffer, {layout.first + constant(layout.first.dtype(), lane)});
  }
  if (!e.is<Add>() && !e.is<Sub>() && !e.is<Mul>()) return {};
  const BinaryOperands operands = binary_operands(e);
  Expr a = lane_of(*operands.a, lane, is_loaded), b = lane_of(*operands.b, lane, is_loaded);
  return a.defined() && b.defined() ? binary(e.kind(), a, b) : Expr();
}

}  // namespace

std::vector<Expr> loaded_indices(const Expr& index) {
  std::vector<Expr> lanes;
  bool is_loaded = false;
  for (int lane = 0; lane < index.dtype().lanes; ++lane) {
    lanes.push_back(lane_of(index, lane, is_loaded));
    if (!lanes.back().defined() || !is_loaded) return {};
  }
  return lanes;
}

bool loads_with_gaps_pay(const Target& target, DataType element, int lanes, int64_t stride) {
  const int64_t part = std::min<int64_t>(lanes, vector_lanes(target, 8 * element.bytes()));
  return stride > 1 && stride <= std::min(kMostStride, part) && std::has_single_bit(static_cast<unsigned>(lanes)) &&
         std::has_single_bit(static_cast<uint64_t>(part));
}

}  // namespace tilewright::codegen
