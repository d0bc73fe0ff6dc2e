// Positions of nonzeros along one axis of a format, and the offsets of the positions of its parent.
//
// A parallel prefix sum: nonzeros are divided into one range per thread, and each range has a state for each parent
// position. A scan over the states, by parent position and then by range, gives the first position of each range.
#include "runtime/axis_positions.h"

#include "runtime/runtime.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/array_memory.h"

namespace tilewright::runtime {
namespace {

constexpr int64_t kMinParallelNonzeros = 1 << 15;  // fewer are not worth another thread
constexpr int64_t kMaxRanges = 64;
constexpr int64_t kNoFault = std::numeric_limits<int64_t>::max();

/// An array with an element per nonzero, or per position along an axis.
template <class T>
using Array = std::vector<T, ArrayAllocator<T>>;

/// Nonzeros [begin, end) of each range.
struct Ranges {
  int64_t nonzeros, number;

  /// Makes one range per thread, or fewer if the states of all ranges would outnumber the nonzeros by far.
  Ranges(int64_t count, int64_t states) : nonzeros(count), number(1) {
    if (count < kMinParallelNonzeros) return;
    number = std::min<int64_t>({tw_get_num_threads(), kMaxRanges, 2 * count / std::max<int64_t>(states, 1)});
    number = std::max<int64_t>(number, 1);
  }
  std::pair<int64_t, int64_t> operator[](int64_t range) const {
    const int64_t size = (nonzeros + number - 1) / number;
    return {std::min(range * size, nonzeros), std::min((range + 1) * size, nonzeros)};
  }
};

template <class Body>
int32_t parallel_for_each(tw_ctx* ctx, int64_t count, const Body& body) {
  auto run = [](tw_ctx*, int64_t first, int64_t last, void* closure) -> int32_t {
    for (int64_t i = first; i < last; ++i) (*static_cast<const Body*>(closure))(i);
    return TW_OK;
  };
  return ctx->parallel_for(ctx, run, const_cast<Body*>(&body), count, 1);
}

void atomic_min(std::atomic<int64_t>& least, int64_t position) {
  int64_t known = least.load(std::memory_order_relaxed);
  while (position < known && !least.compare_exchange_weak(known, position)) {
  }
}

/// Typed views of the arguments: Position is the type of positions, Key that of keys and of dense offsets.
template <class Position, class Key>
struct MixedRadixView {
  const Position* base;
  int64_t radix;
  const Key* offset;

  explicit MixedRadixView(const MixedRadix& given)
      : base(static_cast<const Position*>(given.base.data)),
        radix(given.radix),
        offset(static_cast<const Key*>(given.offset.data)) {}
  int64_t operator[](int64_t i) const {
    return (base ? static_cast<int64_t>(base[i]) * radix : 0) + (offset ? static_cast<int64_t>(offset[i]) : 0);
  }
};

template <class Position, class Key>
struct AxisView {
  MixedRadixView<Position, Key> parents;
  const Key* keys;
  int64_t nonzeros, num_parents;
  Position* positions;
  Position* offsets;

  AxisView(const AxisKeys& given, const AxisPositions& result)
      : parents(given.parents),
        keys(static_cast<const Key*>(given.keys.data)),
        nonzeros(given.keys.count),
        num_parents(given.num_parents),
        positions(static_cast<Position*>(result.positions)),
        offsets(static_cast<Position*>(result.offsets)) {}
  bool is_valid(int64_t i) const {
    return keys[i] >= 0 && static_cast<uint64_t>(parents[i]) < static_cast<uint64_t>(num_parents);
  }
  AxisCount failure(int32_t code, const std::atomic<int64_t>& fault) const {
    return {code, 0, fault.load() == kNoFault ? -1 : fault.load()};
  }
};

template <class Position>
bool fits_in(int64_t count) {
  return count <= std::numeric_limits<Position>::max();
}

/// Positions along a varied axis: each parent position has as many positions as its largest key needs, and the key is
/// the offset among them.
template <class Position, class Key>
AxisCount positions_of_varied_axis(tw_ctx* ctx, const AxisView<Position, Key>& axis) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  Array<int64_t> ends(static_cast<size_t>(ranges.number * axis.num_parents));
  std::atomic<int64_t> fault{kNoFault};
  int32_t code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    int64_t* range_ends = ends.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (!axis.is_valid(i)) return atomic_min(fault, i);
      int64_t& last = range_ends[axis.parents[i]];
      last = std::max<int64_t>(last, std::min<int64_t>(axis.keys[i], kNoFault - 1) + 1);
    }
  });
  if (code != TW_OK || fault.load() != kNoFault) return axis.failure(code, fault);
  int64_t total = 0;
  for (int64_t parent = 0; parent < axis.num_parents; ++parent) {
    axis.offsets[parent] = static_cast<Position>(total);
    int64_t most = 0;
    for (int64_t range = 0; range < ranges.number; ++range)
      most = std::max(most, ends[static_cast<size_t>(range * axis.num_parents + parent)]);
    if (most >= kNoFault - total) return {TW_OK, kNoFault, -1};
    total += most;
    if (!fits_in<Position>(total)) return {TW_OK, total, -1};
  }
  axis.offsets[axis.num_parents] = static_cast<Position>(total);
  code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i)
      axis.positions[i] = axis.offsets[axis.parents[i]] + static_cast<Position>(axis.keys[i]);
  });
  return {code, total, -1};
}

/// Positions if nonzeros are sorted by parent and, below each parent, by key. Otherwise sets `in_order` to false.
template <class Position, class Key>
AxisCount positions_in_order(tw_ctx* ctx, const AxisView<Position, Key>& axis, bool& in_order) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  std::vector<int64_t> begins(static_cast<size_t>(ranges.number) + 1);
  std::atomic<bool> descends{false};
  auto is_new = [&](int64_t i) {
    return i == 0 || axis.parents[i] != axis.parents[i - 1] || axis.keys[i] != axis.keys[i - 1];
  };
  if (ranges.number > 1) {
    const int32_t code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
      int64_t count = 0;
      for (auto [i, end] = ranges[range]; i < end; ++i) count += is_new(i);
      begins[static_cast<size_t>(range) + 1] = count;
    });
    if (code != TW_OK) return {code, 0, -1};
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
  }
  std::fill_n(axis.offsets, axis.num_parents + 1, Position{0});
  const int32_t code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    auto [i, end] = ranges[range];
    Position count = static_cast<Position>(begins[static_cast<size_t>(range)]);
    int64_t parent = i ? axis.parents[i - 1] : 0;
    Key key = i ? axis.keys[i - 1] : -1;
    // The next range stores the end of a parent that both ranges have.
    const int64_t shared = end < axis.nonzeros ? axis.parents[end] : -1;
    Position unused;  // sink: the next range stores this parent's end
    if (parent < 0) return descends.store(true, std::memory_order_relaxed);
    for (; i < end; ++i) {
      const int64_t nonzero_parent = axis.parents[i];
      const Key nonzero_key = axis.keys[i];
      if (nonzero_parent < parent || nonzero_parent >= axis.num_parents || nonzero_key < 0 ||
          (nonzero_parent == parent && nonzero_key < key))
        return descends.store(true, std::memory_order_relaxed);
      count += i == 0 || nonzero_parent != parent || nonzero_key != key;
      axis.positions[i] = count - 1;
      (nonzero_parent == shared ? unused : axis.offsets[nonzero_parent + 1]) = count;
      parent = nonzero_parent;
      key = nonzero_key;
    }
  });
  in_order = !descends;
  for (int64_t parent = 0; in_order && parent < axis.num_parents; ++parent)
    axis.offsets[parent + 1] = std::max(axis.offsets[parent], axis.offsets[parent + 1]);
  return {code, axis.offsets[axis.num_parents], -1};
}

/// The keys of one parent position in one range.
template <class Position, class Key>
struct SegmentState {
  Key first = -1, last = -1;  ///< smallest and largest key; `last` is the previous key in both passes
  Position count = 0;         ///< number of distinct keys
  Position position = 0;      ///< second pass: position of `last`
};

/// Positions if the keys of each parent ascend. Otherwise sets `ascend` to false.
template <class Position, class Key>
AxisCount positions_ascending(tw_ctx* ctx, const AxisView<Position, Key>& axis, bool& ascend) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  Array<SegmentState<Position, Key>> states(static_cast<size_t>(ranges.number * axis.num_parents));
  std::atomic<int64_t> fault{kNoFault};
  std::atomic<bool> descends{false};
  int32_t code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    SegmentState<Position, Key>* range_states = states.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (!axis.is_valid(i)) return atomic_min(fault, i);
      SegmentState<Position, Key>& state = range_states[axis.parents[i]];
      const Key key = axis.keys[i];
      if (key < state.last) return descends.store(true, std::memory_order_relaxed);
      if (state.count == 0) state.first = key;
      state.count += key != state.last;
      state.last = key;
    }
  });
  ascend = !descends;
  if (!ascend || code != TW_OK || fault.load() != kNoFault) return axis.failure(code, fault);
  int64_t total = 0;
  for (int64_t parent = 0; parent < axis.num_parents; ++parent) {
    axis.offsets[parent] = static_cast<Position>(total);
    Key before = -1;
    for (int64_t range = 0; range < ranges.number; ++range) {
      SegmentState<Position, Key>& state = states[static_cast<size_t>(range * axis.num_parents + parent)];
      if (state.count == 0) continue;
      if (state.first < before) {
        ascend = false;
        return {TW_OK, 0, -1};
      }
      const int64_t begin = total - (state.first == before);
      total = begin + state.count;
      if (!fits_in<Position>(total)) return {TW_OK, total, -1};
      before = state.last;
      state.last = state.first;
      state.position = static_cast<Position>(begin);
    }
  }
  axis.offsets[axis.num_parents] = static_cast<Position>(total);
  code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    SegmentState<Position, Key>* range_states = states.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      SegmentState<Position, Key>& state = range_states[axis.parents[i]];
      const Key key = axis.keys[i];
      state.position += key != state.last;
      state.last = key;
      axis.positions[i] = state.position;
    }
  });
  return {code, total, -1};
}

/// Ranks at most N keys among the distinct ones by comparing all pairs, branch-free, so that it vectorizes. Returns the
/// number of distinct keys. Unused keys must equal the first one.
template <int N>
int32_t rank_by_pairs(const int32_t* keys, int32_t* ranks) {
  int32_t repeats[N] = {};
  for (int j = 0; j < N; ++j)
    for (int i = 0; i < N; ++i) repeats[i] |= static_cast<int32_t>((keys[i] == keys[j]) & (j < i));
  std::fill_n(ranks, N, 0);
  int32_t num_distinct = 0;
  for (int j = 0; j < N; ++j) {
    const int32_t is_new = 1 - repeats[j];
    num_distinct += is_new;
    for (int i = 0; i < N; ++i) ranks[i] += is_new & static_cast<int32_t>(keys[j] < keys[i]);
  }
  return num_distinct;
}

/// Ranks the keys of a segment among its distinct keys.
template <class Position, class Key>
class Ranking {
 public:
  /// Ranks by a table of all keys below `num_keys`; 0: there are too many, and keys are sorted instead.
  explicit Ranking(int64_t num_keys)
      : marks_(static_cast<size_t>(num_keys)), words_(static_cast<size_t>((num_keys + 63) / 64)) {}

  /// Stores the key's rank for each of `count` nonzeros, whose numbers are `nonzero(n)`. Returns the number of ranks.
  template <class Nonzero>
  Position rank(const Key* keys, Position segment, int64_t count, const Nonzero& nonzero, Position* ranks) {
    if constexpr (sizeof(Key) == sizeof(int32_t)) {
      if (count <= 8) return by_pairs<8>(keys, count, nonzero, ranks);
      if (count <= 16) return by_pairs<16>(keys, count, nonzero, ranks);
      if (count <= 32) return by_pairs<32>(keys, count, nonzero, ranks);
    }
    return marks_.empty() ? by_sorting(keys, count, nonzero, ranks) : by_marks(keys, segment, count, nonzero, ranks);
  }

 private:
  template <int N, class Nonzero>
  Position by_pairs(const Key* keys, int64_t count, const Nonzero& nonzero, Position* ranks) {
    if (count == 0) return 0;
    int32_t padded_keys[N], key_ranks[N];
    for (int64_t n = 0; n < count; ++n) padded_keys[n] = keys[nonzero(n)];
    std::fill(padded_keys + count, padded_keys + N, padded_keys[0]);
    const int32_t num_distinct = rank_by_pairs<N>(padded_keys, key_ranks);
    for (int64_t n = 0; n < count; ++n) ranks[nonzero(n)] = static_cast<Position>(key_ranks[n]);
    return static_cast<Position>(num_distinct);
  }

  struct Mark {
    Position segment = -1;
    Position rank = 0;
  };

  template <class Nonzero>
  Position by_marks(const Key* keys, Position segment, int64_t count, const Nonzero& nonzero, Position* ranks) {
    distinct_.clear();
    bool in_order = true;
    for (int64_t n = 0; n < count; ++n) {
      const Key key = keys[nonzero(n)];
      Mark& mark = marks_[static_cast<size_t>(key)];
      if (mark.segment == segment) continue;
      mark.segment = segment;
      in_order &= distinct_.empty() || distinct_.back() < key;
      distinct_.push_back(key);
    }
    if (!in_order) sort();
    for (size_t rank = 0; rank < distinct_.size(); ++rank)
      marks_[static_cast<size_t>(distinct_[rank])].rank = static_cast<Position>(rank);
    for (int64_t n = 0; n < count; ++n) ranks[nonzero(n)] = marks_[static_cast<size_t>(keys[nonzero(n)])].rank;
    return static_cast<Position>(distinct_.size());
  }

  /// Sorts the distinct keys, by a bitmap if they are close together.
  void sort() {
    const auto [least, most] = std::minmax_element(distinct_.begin(), distinct_.end());
    const size_t first = static_cast<size_t>(*least) / 64, last = static_cast<size_t>(*most) / 64;
    if (last - first > 4 * distinct_.size()) {
      std::sort(distinct_.begin(), distinct_.end());
      return;
    }
    for (const Key key : distinct_) words_[static_cast<size_t>(key) / 64] |= uint64_t{1} << (key % 64);
    size_t at = 0;
    for (size_t word = first; word <= last; ++word) {
      for (uint64_t bits = words_[word]; bits; bits &= bits - 1)
        distinct_[at++] = static_cast<Key>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      words_[word] = 0;
    }
  }

  template <class Nonzero>
  Position by_sorting(const Key* keys, int64_t count, const Nonzero& nonzero, Position* ranks) {
    pairs_.clear();
    for (int64_t n = 0; n < count; ++n) pairs_.emplace_back(keys[nonzero(n)], nonzero(n));
    std::sort(pairs_.begin(), pairs_.end());
    Position rank = -1;
    for (size_t n = 0; n < pairs_.size(); ++n) {
      rank += n == 0 || pairs_[n].first != pairs_[n - 1].first;
      ranks[pairs_[n].second] = rank;
    }
    return rank + 1;
  }

  Array<Mark> marks_;
  std::vector<uint64_t> words_;  // all zero between calls
  Array<Key> distinct_;
  Array<std::pair<Key, int64_t>> pairs_;
};

/// The nonzeros grouped by parent position: segment s is [begins[s], begins[s + 1]) of `order`, or of the nonzeros
/// themselves if `order` is empty.
template <class Position>
struct Segments {
  Array<Position> begins, order;
};

template <class Position, class Key>
int32_t group_by_parent(tw_ctx* ctx, const AxisView<Position, Key>& axis, bool in_order, Segments<Position>& segments) {
  segments.begins.resize(static_cast<size_t>(axis.num_parents) + 1);
  if (in_order) {
    int64_t parent = 0;
    for (int64_t i = 0; i < axis.nonzeros; ++i)
      for (; parent <= axis.parents[i]; ++parent)
        segments.begins[static_cast<size_t>(parent)] = static_cast<Position>(i);
    std::fill(segments.begins.begin() + parent, segments.begins.end(), static_cast<Position>(axis.nonzeros));
    return TW_OK;
  }
  Array<Position> parents(static_cast<size_t>(axis.nonzeros));
  for (int64_t i = 0; i < axis.nonzeros; ++i) parents[static_cast<size_t>(i)] = static_cast<Position>(axis.parents[i]);
  segments.order.resize(parents.size());
  const tw_integers keys{parents.data(), axis.nonzeros, static_cast<int32_t>(8 * sizeof(Position))};
  return tw_sort_by_key(ctx, keys, axis.num_parents, segments.begins.data(), segments.order.data());
}

/// Positions if the keys of a parent are in any order.
template <class Position, class Key>
AxisCount positions_unordered(tw_ctx* ctx, const AxisView<Position, Key>& axis) {
  bool in_order = true;
  int64_t last_key = -1, before = 0;
  for (int64_t i = 0; i < axis.nonzeros; ++i) {
    if (!axis.is_valid(i)) return {TW_OK, 0, i};
    const int64_t parent = axis.parents[i];
    in_order &= before <= parent;
    before = parent;
    last_key = std::max<int64_t>(last_key, axis.keys[i]);
  }
  Segments<Position> segments;
  int32_t code = group_by_parent(ctx, axis, in_order, segments);
  if (code != TW_OK) return {code, 0, -1};
  const int64_t num_keys = std::min(last_key, kNoFault - 1) + 1;
  const int64_t table = num_keys <= 4 * axis.nonzeros + 1024 ? num_keys : 0;
  const Ranges ranges(axis.nonzeros, table);
  std::vector<Ranking<Position, Key>> rankings(static_cast<size_t>(ranges.number), Ranking<Position, Key>(table));
  const Position* begins = segments.begins.data();
  const Position* order = segments.order.empty() ? nullptr : segments.order.data();
  // Segments that begin in a range belong to it.
  auto segment_from = [&](int64_t nonzero) {
    return std::lower_bound(begins, begins + axis.num_parents, static_cast<Position>(nonzero)) - begins;
  };
  code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    const int64_t first = range ? segment_from(ranges[range].first) : 0;
    const int64_t last = range + 1 < ranges.number ? segment_from(ranges[range].second) : axis.num_parents;
    Ranking<Position, Key>& ranking = rankings[static_cast<size_t>(range)];
    for (int64_t s = first; s < last; ++s) {
      const Position begin = begins[s], count = begins[s + 1] - begin;
      auto of_order = [&](int64_t n) { return static_cast<int64_t>(order[begin + n]); };
      auto of_nonzeros = [&](int64_t n) { return begin + n; };
      const Position segment = static_cast<Position>(s);
      axis.offsets[s] = order ? ranking.rank(axis.keys, segment, count, of_order, axis.positions)
                              : ranking.rank(axis.keys, segment, count, of_nonzeros, axis.positions);
    }
  });
  if (code != TW_OK) return {code, 0, -1};
  int64_t total = 0;  // at most the number of nonzeros, so it fits
  for (int64_t s = 0; s < axis.num_parents; ++s) total += std::exchange(axis.offsets[s], static_cast<Position>(total));
  axis.offsets[axis.num_parents] = static_cast<Position>(total);
  code = parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i) axis.positions[i] += axis.offsets[axis.parents[i]];
  });
  return {code, total, -1};
}

template <class Position, class Key>
AxisCount positions_of_distinct_keys(tw_ctx* ctx, const AxisView<Position, Key>& axis) {
  bool in_order = true;
  AxisCount found = positions_in_order(ctx, axis, in_order);
  if (in_order) return found;
  found = positions_ascending(ctx, axis, in_order);
  return in_order ? found : positions_unordered(ctx, axis);
}

template <class Position, class Key>
int64_t scatter_values(tw_ctx* ctx, const MixedRadixView<Position, Key>& positions, const Ranges& ranges,
                       const Position* values, bool verify, Position* out, int64_t count) {
  std::atomic<int64_t> fault{kNoFault};
  auto value = [&](int64_t i) { return values ? values[i] : static_cast<Position>(i); };
  // Two nonzeros at one position are an error that `verify` finds. The stores are atomic so that it is no data race.
  auto element = [&](int64_t i) { return std::atomic_ref<Position>(out[positions[i]]); };
  parallel_for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (static_cast<uint64_t>(positions[i]) >= static_cast<uint64_t>(count)) return atomic_min(fault, i);
      element(i).store(value(i), std::memory_order_relaxed);
    }
  });
  if (verify && fault.load() == kNoFault) {
    parallel_for_each(ctx, ranges.number, [&](int64_t range) {
      for (auto [i, end] = ranges[range]; i < end; ++i)
        if (out[positions[i]] != value(i)) return atomic_min(fault, i);
    });
  }
  return fault.load() == kNoFault ? -1 : fault.load();
}

/// Calls a function with two zeros, of the type of positions and of the type of keys.
template <class Function>
auto with_types(int32_t bits, int32_t key_bits, const Function& function) {
  if (bits == 64) return key_bits == 64 ? function(int64_t{}, int64_t{}) : function(int64_t{}, int32_t{});
  return key_bits == 64 ? function(int32_t{}, int64_t{}) : function(int32_t{}, int32_t{});
}

}  // namespace

AxisCount varied_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result) {
  return with_types(result.bits, axis.keys.bits, [&]<class Position, class Key>(Position, Key) {
    return positions_of_varied_axis(ctx, AxisView<Position, Key>(axis, result));
  });
}

AxisCount compressed_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result) {
  return with_types(result.bits, axis.keys.bits, [&]<class Position, class Key>(Position, Key) {
    return positions_of_distinct_keys(ctx, AxisView<Position, Key>(axis, result));
  });
}

int64_t scatter(tw_ctx* ctx, const MixedRadix& positions, int64_t nonzeros, tw_integers values, bool verify, void* out,
                int64_t count, int32_t bits) {
  return with_types(
      bits, positions.offset.data ? positions.offset.bits : bits, [&]<class Position, class Key>(Position, Key) {
        return scatter_values(ctx, MixedRadixView<Position, Key>(positions), Ranges(nonzeros, 1),
                              static_cast<const Position*>(values.data), verify, static_cast<Position*>(out), count);
      });
}

}  // namespace tilewright::runtime
