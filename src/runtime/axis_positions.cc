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

constexpr int64_t kFewNonzeros = 1 << 15;  // not worth the start of another thread
constexpr int64_t kMostRanges = 64;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

/// What is as long as the nonzeros, or as the positions along an axis.
template <class T>
using Array = std::vector<T, ArrayAllocator<T>>;

/// Nonzeros [begin, end) of each range.
struct Ranges {
  int64_t nonzeros, number;

  /// As many as there are threads, unless their states would exceed the nonzeros by far.
  Ranges(int64_t count, int64_t states) : nonzeros(count), number(1) {
    if (count < kFewNonzeros) return;
    number = std::min<int64_t>({tw_get_num_threads(), kMostRanges, 2 * count / std::max<int64_t>(states, 1)});
    number = std::max<int64_t>(number, 1);
  }
  std::pair<int64_t, int64_t> operator[](int64_t range) const {
    const int64_t size = (nonzeros + number - 1) / number;
    return {std::min(range * size, nonzeros), std::min((range + 1) * size, nonzeros)};
  }
};

template <class Body>
int32_t for_each(tw_ctx* ctx, int64_t count, const Body& body) {
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

/// Typed views: `P` is the type of positions, `K` that of keys and of offsets along dense axes.
template <class P, class K>
struct Numbers {
  const P* base;
  int64_t radix;
  const K* offset;

  explicit Numbers(const MixedRadix& given)
      : base(static_cast<const P*>(given.base.data)),
        radix(given.radix),
        offset(static_cast<const K*>(given.offset.data)) {}
  int64_t operator[](int64_t i) const {
    return (base ? static_cast<int64_t>(base[i]) * radix : 0) + (offset ? static_cast<int64_t>(offset[i]) : 0);
  }
};

template <class P, class K>
struct Axis {
  Numbers<P, K> parents;
  const K* keys;
  int64_t nonzeros, num_parents;
  P* positions;
  P* offsets;

  Axis(const AxisKeys& given, const AxisPositions& result)
      : parents(given.parents),
        keys(static_cast<const K*>(given.keys.data)),
        nonzeros(given.keys.count),
        num_parents(given.num_parents),
        positions(static_cast<P*>(result.positions)),
        offsets(static_cast<P*>(result.offsets)) {}
  bool is_valid(int64_t i) const {
    return keys[i] >= 0 && static_cast<uint64_t>(parents[i]) < static_cast<uint64_t>(num_parents);
  }
  AxisCount faulty(int32_t code, const std::atomic<int64_t>& fault) const {
    return {code, 0, fault.load() == kNone ? -1 : fault.load()};
  }
};

template <class P>
bool holds(int64_t count) {
  return count <= std::numeric_limits<P>::max();
}

/// Each position of the parent has as many positions as its largest key needs; the key is the offset among them.
template <class P, class K>
AxisCount positions_by_key(tw_ctx* ctx, const Axis<P, K>& axis) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  Array<int64_t> ends(static_cast<size_t>(ranges.number * axis.num_parents));
  std::atomic<int64_t> fault{kNone};
  int32_t code = for_each(ctx, ranges.number, [&](int64_t range) {
    int64_t* own = ends.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (!axis.is_valid(i)) return atomic_min(fault, i);
      int64_t& last = own[axis.parents[i]];
      last = std::max<int64_t>(last, std::min<int64_t>(axis.keys[i], kNone - 1) + 1);
    }
  });
  if (code != TW_OK || fault.load() != kNone) return axis.faulty(code, fault);
  int64_t total = 0;
  for (int64_t parent = 0; parent < axis.num_parents; ++parent) {
    axis.offsets[parent] = static_cast<P>(total);
    int64_t most = 0;
    for (int64_t range = 0; range < ranges.number; ++range)
      most = std::max(most, ends[static_cast<size_t>(range * axis.num_parents + parent)]);
    if (most >= kNone - total) return {TW_OK, kNone, -1};
    total += most;
    if (!holds<P>(total)) return {TW_OK, total, -1};
  }
  axis.offsets[axis.num_parents] = static_cast<P>(total);
  code = for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i)
      axis.positions[i] = axis.offsets[axis.parents[i]] + static_cast<P>(axis.keys[i]);
  });
  return {code, total, -1};
}

/// Positions where nonzeros come in the order of their parents and, below each, of their keys; false in `in_order`
/// where they do not.
template <class P, class K>
AxisCount positions_in_order(tw_ctx* ctx, const Axis<P, K>& axis, bool& in_order) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  std::vector<int64_t> begins(static_cast<size_t>(ranges.number) + 1);
  std::atomic<bool> descends{false};
  auto is_new = [&](int64_t i) {
    return i == 0 || axis.parents[i] != axis.parents[i - 1] || axis.keys[i] != axis.keys[i - 1];
  };
  if (ranges.number > 1) {
    const int32_t code = for_each(ctx, ranges.number, [&](int64_t range) {
      int64_t count = 0;
      for (auto [i, end] = ranges[range]; i < end; ++i) count += is_new(i);
      begins[static_cast<size_t>(range) + 1] = count;
    });
    if (code != TW_OK) return {code, 0, -1};
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
  }
  std::fill_n(axis.offsets, axis.num_parents + 1, P{0});
  const int32_t code = for_each(ctx, ranges.number, [&](int64_t range) {
    auto [i, end] = ranges[range];
    P count = static_cast<P>(begins[static_cast<size_t>(range)]);
    int64_t parent = i ? axis.parents[i - 1] : 0;
    K key = i ? axis.keys[i - 1] : -1;
    // The range after this one stores what comes after the last nonzero of a parent that both have.
    const int64_t shared = end < axis.nonzeros ? axis.parents[end] : -1;
    P of_another;
    if (parent < 0) return descends.store(true, std::memory_order_relaxed);
    for (; i < end; ++i) {
      const int64_t own = axis.parents[i];
      const K own_key = axis.keys[i];
      if (own < parent || own >= axis.num_parents || own_key < 0 || (own == parent && own_key < key))
        return descends.store(true, std::memory_order_relaxed);
      count += i == 0 || own != parent || own_key != key;
      axis.positions[i] = count - 1;
      (own == shared ? of_another : axis.offsets[own + 1]) = count;
      parent = own;
      key = own_key;
    }
  });
  in_order = !descends;
  for (int64_t parent = 0; in_order && parent < axis.num_parents; ++parent)
    axis.offsets[parent + 1] = std::max(axis.offsets[parent], axis.offsets[parent + 1]);
  return {code, axis.offsets[axis.num_parents], -1};
}

/// The least and the greatest key of one position of the parent in one range, and the number of different keys there;
/// in the second pass `count` is the position of the last key that occurred.
template <class P, class K>
struct Ascending {
  K first = -1, last = -1;
  P count = 0;
};

/// Positions where the keys of each parent ascend; false in `ascend` where they do not.
template <class P, class K>
AxisCount positions_ascending(tw_ctx* ctx, const Axis<P, K>& axis, bool& ascend) {
  const Ranges ranges(axis.nonzeros, axis.num_parents);
  Array<Ascending<P, K>> states(static_cast<size_t>(ranges.number * axis.num_parents));
  std::atomic<int64_t> fault{kNone};
  std::atomic<bool> descends{false};
  int32_t code = for_each(ctx, ranges.number, [&](int64_t range) {
    Ascending<P, K>* own = states.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (!axis.is_valid(i)) return atomic_min(fault, i);
      Ascending<P, K>& state = own[axis.parents[i]];
      const K key = axis.keys[i];
      if (key < state.last) return descends.store(true, std::memory_order_relaxed);
      if (state.count == 0) state.first = key;
      state.count += key != state.last;
      state.last = key;
    }
  });
  ascend = !descends;
  if (!ascend || code != TW_OK || fault.load() != kNone) return axis.faulty(code, fault);
  int64_t total = 0;
  for (int64_t parent = 0; parent < axis.num_parents; ++parent) {
    axis.offsets[parent] = static_cast<P>(total);
    K before = -1;
    for (int64_t range = 0; range < ranges.number; ++range) {
      Ascending<P, K>& state = states[static_cast<size_t>(range * axis.num_parents + parent)];
      if (state.count == 0) continue;
      if (state.first < before) {
        ascend = false;
        return {TW_OK, 0, -1};
      }
      const int64_t begin = total - (state.first == before);
      total = begin + state.count;
      if (!holds<P>(total)) return {TW_OK, total, -1};
      before = state.last;
      state.last = state.first;
      state.count = static_cast<P>(begin);
    }
  }
  axis.offsets[axis.num_parents] = static_cast<P>(total);
  code = for_each(ctx, ranges.number, [&](int64_t range) {
    Ascending<P, K>* own = states.data() + range * axis.num_parents;
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      Ascending<P, K>& state = own[axis.parents[i]];
      const K key = axis.keys[i];
      state.count += key != state.last;
      state.last = key;
      axis.positions[i] = state.count;
    }
  });
  return {code, total, -1};
}

/// Ranks of at most N keys among the different ones, by comparing all pairs in vectors: of few keys, without branches
/// that depend on them. Returns how many are different. Keys from `count` on equal the first one.
template <int N>
int32_t rank_by_pairs(const int32_t* keys, int32_t* ranks) {
  int32_t repeats[N] = {};
  for (int j = 0; j < N; ++j)
    for (int i = 0; i < N; ++i) repeats[i] |= static_cast<int32_t>((keys[i] == keys[j]) & (j < i));
  std::fill_n(ranks, N, 0);
  int32_t different = 0;
  for (int j = 0; j < N; ++j) {
    const int32_t is_new = 1 - repeats[j];
    different += is_new;
    for (int i = 0; i < N; ++i) ranks[i] += is_new & static_cast<int32_t>(keys[j] < keys[i]);
  }
  return different;
}

/// Ranks of keys among the different ones of a segment.
template <class P, class K>
class Ranking {
 public:
  /// With a table of all keys below `num_keys`; 0: keys are sorted, as there are too many.
  explicit Ranking(int64_t num_keys)
      : marks_(static_cast<size_t>(num_keys)), words_(static_cast<size_t>((num_keys + 63) / 64)) {}

  /// Stores the rank of the key of each of `count` nonzeros, number `nonzero(n)`; returns how many ranks there are.
  template <class Nonzero>
  P rank(const K* keys, P segment, int64_t count, const Nonzero& nonzero, P* ranks) {
    if constexpr (sizeof(K) == sizeof(int32_t)) {
      if (count <= 8) return by_pairs<8>(keys, count, nonzero, ranks);
      if (count <= 16) return by_pairs<16>(keys, count, nonzero, ranks);
      if (count <= 32) return by_pairs<32>(keys, count, nonzero, ranks);
    }
    return marks_.empty() ? by_sorting(keys, count, nonzero, ranks) : by_marks(keys, segment, count, nonzero, ranks);
  }

 private:
  template <int N, class Nonzero>
  P by_pairs(const K* keys, int64_t count, const Nonzero& nonzero, P* ranks) {
    if (count == 0) return 0;
    int32_t own[N], found[N];
    for (int64_t n = 0; n < count; ++n) own[n] = keys[nonzero(n)];
    std::fill(own + count, own + N, own[0]);
    const int32_t different = rank_by_pairs<N>(own, found);
    for (int64_t n = 0; n < count; ++n) ranks[nonzero(n)] = static_cast<P>(found[n]);
    return static_cast<P>(different);
  }

  struct Mark {
    P segment = -1;
    P rank = 0;
  };

  template <class Nonzero>
  P by_marks(const K* keys, P segment, int64_t count, const Nonzero& nonzero, P* ranks) {
    different_.clear();
    bool in_order = true;
    for (int64_t n = 0; n < count; ++n) {
      const K key = keys[nonzero(n)];
      Mark& mark = marks_[static_cast<size_t>(key)];
      if (mark.segment == segment) continue;
      mark.segment = segment;
      in_order &= different_.empty() || different_.back() < key;
      different_.push_back(key);
    }
    if (!in_order) sort();
    for (size_t rank = 0; rank < different_.size(); ++rank)
      marks_[static_cast<size_t>(different_[rank])].rank = static_cast<P>(rank);
    for (int64_t n = 0; n < count; ++n) ranks[nonzero(n)] = marks_[static_cast<size_t>(keys[nonzero(n)])].rank;
    return static_cast<P>(different_.size());
  }

  /// Sorts the different keys: by a bit for each where they are not far apart.
  void sort() {
    const auto [least, most] = std::minmax_element(different_.begin(), different_.end());
    const size_t first = static_cast<size_t>(*least) / 64, last = static_cast<size_t>(*most) / 64;
    if (last - first > 4 * different_.size()) {
      std::sort(different_.begin(), different_.end());
      return;
    }
    for (const K key : different_) words_[static_cast<size_t>(key) / 64] |= uint64_t{1} << (key % 64);
    size_t at = 0;
    for (size_t word = first; word <= last; ++word) {
      for (uint64_t bits = words_[word]; bits; bits &= bits - 1)
        different_[at++] = static_cast<K>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      words_[word] = 0;
    }
  }

  template <class Nonzero>
  P by_sorting(const K* keys, int64_t count, const Nonzero& nonzero, P* ranks) {
    pairs_.clear();
    for (int64_t n = 0; n < count; ++n) pairs_.emplace_back(keys[nonzero(n)], nonzero(n));
    std::sort(pairs_.begin(), pairs_.end());
    P rank = -1;
    for (size_t n = 0; n < pairs_.size(); ++n) {
      rank += n == 0 || pairs_[n].first != pairs_[n - 1].first;
      ranks[pairs_[n].second] = rank;
    }
    return rank + 1;
  }

  Array<Mark> marks_;
  std::vector<uint64_t> words_;  // all zero between calls
  Array<K> different_;
  Array<std::pair<K, int64_t>> pairs_;
};

/// Nonzeros by the position of their parent: segment s is [begins[s], begins[s + 1]) of `order`, or of the nonzeros
/// themselves if `order` is empty.
template <class P>
struct Segments {
  Array<P> begins, order;
};

template <class P, class K>
int32_t group_by_parent(tw_ctx* ctx, const Axis<P, K>& axis, bool in_order, Segments<P>& segments) {
  segments.begins.resize(static_cast<size_t>(axis.num_parents) + 1);
  if (in_order) {
    int64_t parent = 0;
    for (int64_t i = 0; i < axis.nonzeros; ++i)
      for (; parent <= axis.parents[i]; ++parent) segments.begins[static_cast<size_t>(parent)] = static_cast<P>(i);
    std::fill(segments.begins.begin() + parent, segments.begins.end(), static_cast<P>(axis.nonzeros));
    return TW_OK;
  }
  Array<P> parents(static_cast<size_t>(axis.nonzeros));
  for (int64_t i = 0; i < axis.nonzeros; ++i) parents[static_cast<size_t>(i)] = static_cast<P>(axis.parents[i]);
  segments.order.resize(parents.size());
  const tw_integers keys{parents.data(), axis.nonzeros, static_cast<int32_t>(8 * sizeof(P))};
  return tw_sort_by_key(ctx, keys, axis.num_parents, segments.begins.data(), segments.order.data());
}

/// Positions where keys come in any order.
template <class P, class K>
AxisCount positions_unordered(tw_ctx* ctx, const Axis<P, K>& axis) {
  bool in_order = true;
  int64_t last_key = -1, before = 0;
  for (int64_t i = 0; i < axis.nonzeros; ++i) {
    if (!axis.is_valid(i)) return {TW_OK, 0, i};
    const int64_t parent = axis.parents[i];
    in_order &= before <= parent;
    before = parent;
    last_key = std::max<int64_t>(last_key, axis.keys[i]);
  }
  Segments<P> segments;
  int32_t code = group_by_parent(ctx, axis, in_order, segments);
  if (code != TW_OK) return {code, 0, -1};
  const int64_t num_keys = std::min(last_key, kNone - 1) + 1;
  const int64_t table = num_keys <= 4 * axis.nonzeros + 1024 ? num_keys : 0;
  const Ranges ranges(axis.nonzeros, table);
  std::vector<Ranking<P, K>> rankings(static_cast<size_t>(ranges.number), Ranking<P, K>(table));
  const P* begins = segments.begins.data();
  const P* order = segments.order.empty() ? nullptr : segments.order.data();
  // Segments that begin in a range belong to it.
  auto segment_from = [&](int64_t nonzero) {
    return std::lower_bound(begins, begins + axis.num_parents, static_cast<P>(nonzero)) - begins;
  };
  code = for_each(ctx, ranges.number, [&](int64_t range) {
    const int64_t first = range ? segment_from(ranges[range].first) : 0;
    const int64_t last = range + 1 < ranges.number ? segment_from(ranges[range].second) : axis.num_parents;
    Ranking<P, K>& ranking = rankings[static_cast<size_t>(range)];
    for (int64_t s = first; s < last; ++s) {
      const P begin = begins[s], count = begins[s + 1] - begin;
      auto of_order = [&](int64_t n) { return static_cast<int64_t>(order[begin + n]); };
      auto of_nonzeros = [&](int64_t n) { return begin + n; };
      const P segment = static_cast<P>(s);
      axis.offsets[s] = order ? ranking.rank(axis.keys, segment, count, of_order, axis.positions)
                              : ranking.rank(axis.keys, segment, count, of_nonzeros, axis.positions);
    }
  });
  if (code != TW_OK) return {code, 0, -1};
  int64_t total = 0;  // no more than there are nonzeros
  for (int64_t s = 0; s < axis.num_parents; ++s) total += std::exchange(axis.offsets[s], static_cast<P>(total));
  axis.offsets[axis.num_parents] = static_cast<P>(total);
  code = for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i) axis.positions[i] += axis.offsets[axis.parents[i]];
  });
  return {code, total, -1};
}

template <class P, class K>
AxisCount positions_of_distinct_keys(tw_ctx* ctx, const Axis<P, K>& axis) {
  bool in_order = true;
  AxisCount found = positions_in_order(ctx, axis, in_order);
  if (in_order) return found;
  found = positions_ascending(ctx, axis, in_order);
  return in_order ? found : positions_unordered(ctx, axis);
}

template <class P, class K>
int64_t scatter_values(tw_ctx* ctx, const Numbers<P, K>& positions, const Ranges& ranges, const P* values, bool verify,
                       P* out, int64_t count) {
  std::atomic<int64_t> fault{kNone};
  auto value = [&](int64_t i) { return values ? values[i] : static_cast<P>(i); };
  // Two nonzeros at one position are an error that `verify` finds, and no data race.
  auto element = [&](int64_t i) { return std::atomic_ref<P>(out[positions[i]]); };
  for_each(ctx, ranges.number, [&](int64_t range) {
    for (auto [i, end] = ranges[range]; i < end; ++i) {
      if (static_cast<uint64_t>(positions[i]) >= static_cast<uint64_t>(count)) return atomic_min(fault, i);
      element(i).store(value(i), std::memory_order_relaxed);
    }
  });
  if (verify && fault.load() == kNone) {
    for_each(ctx, ranges.number, [&](int64_t range) {
      for (auto [i, end] = ranges[range]; i < end; ++i)
        if (out[positions[i]] != value(i)) return atomic_min(fault, i);
    });
  }
  return fault.load() == kNone ? -1 : fault.load();
}

/// Calls a function with zeros of the types of positions and of keys.
template <class Function>
auto with_types(int32_t bits, int32_t key_bits, const Function& function) {
  if (bits == 64) return key_bits == 64 ? function(int64_t{}, int64_t{}) : function(int64_t{}, int32_t{});
  return key_bits == 64 ? function(int32_t{}, int64_t{}) : function(int32_t{}, int32_t{});
}

}  // namespace

AxisCount varied_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result) {
  return with_types(result.bits, axis.keys.bits,
                    [&]<class P, class K>(P, K) { return positions_by_key(ctx, Axis<P, K>(axis, result)); });
}

AxisCount compressed_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result) {
  return with_types(result.bits, axis.keys.bits,
                    [&]<class P, class K>(P, K) { return positions_of_distinct_keys(ctx, Axis<P, K>(axis, result)); });
}

int64_t scatter(tw_ctx* ctx, const MixedRadix& positions, int64_t nonzeros, tw_integers values, bool verify, void* out,
                int64_t count, int32_t bits) {
  return with_types(bits, positions.offset.data ? positions.offset.bits : bits, [&]<class P, class K>(P, K) {
    return scatter_values(ctx, Numbers<P, K>(positions), Ranges(nonzeros, 1), static_cast<const P*>(values.data),
                          verify, static_cast<P*>(out), count);
  });
}

}  // namespace tilewright::runtime
