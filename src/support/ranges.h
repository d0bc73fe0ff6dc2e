// Algorithms over whole containers, as in LLVM's STLExtras.h: any_of(loops, is_parallel), is_contained(axes, axis).
// Other algorithms are those of std::ranges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace tilewright {

template <class Range, class Predicate>
bool any_of(Range&& range, Predicate predicate) {
  return std::any_of(std::begin(range), std::end(range), std::move(predicate));
}

template <class Range, class Predicate>
bool all_of(Range&& range, Predicate predicate) {
  return std::all_of(std::begin(range), std::end(range), std::move(predicate));
}

template <class Range, class Predicate>
bool none_of(Range&& range, Predicate predicate) {
  return std::none_of(std::begin(range), std::end(range), std::move(predicate));
}

/// Returns an iterator to the first item for which the predicate holds; the end of the range if there is none.
template <class Range, class Predicate>
auto find_if(Range&& range, Predicate predicate) {
  return std::find_if(std::begin(range), std::end(range), std::move(predicate));
}

template <class Range, class T>
bool is_contained(const Range& range, const T& item) {
  return std::find(std::begin(range), std::end(range), item) != std::end(range);
}

/// Copies all items to the end of the container.
template <class Container, class Range>
void append_range(Container& container, const Range& range) {
  container.insert(container.end(), std::begin(range), std::end(range));
}

/// Removes the item at a position.
template <class Container>
void erase_at(Container& container, size_t position) {
  container.erase(container.begin() + static_cast<std::ptrdiff_t>(position));
}

/// Inserts an item before the one at a position.
template <class Container, class T>
void insert_at(Container& container, size_t position, T&& item) {
  container.insert(container.begin() + static_cast<std::ptrdiff_t>(position), std::forward<T>(item));
}

/// The result of reversed().
template <class Range>
class ReversedRange {
 public:
  explicit ReversedRange(Range& range) : range_(range) {}
  auto begin() const { return std::rbegin(range_); }
  auto end() const { return std::rend(range_); }

 private:
  Range& range_;
};

/// Iterates from last to first: for (const Ref<For>& loop : reversed(loops)). The container must outlive the loop.
template <class Range>
ReversedRange<Range> reversed(Range& range) {
  return ReversedRange<Range>(range);
}

/// Returns a pointer to the value of the key in a map; nullptr if the map has no such key.
template <class Map, class Key>
auto* find_value(Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// Returns a copy of the value of the key in a map; the fallback if the map has no such key.
template <class Map, class Key, class T>
typename Map::mapped_type find_value_or(const Map& map, const Key& key, const T& fallback) {
  auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type(fallback) : found->second;
}

/// The result of indices_of().
template <class Range>
class IndexRange {
 public:
  struct Iterator {
    size_t index;
    const Range& range;
    size_t operator*() const { return index; }
    void operator++() { ++index; }
    bool operator!=(std::default_sentinel_t) const { return index < std::size(range); }
  };

  explicit IndexRange(const Range& range) : range_(range) {}
  Iterator begin() const { return {0, range_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  const Range& range_;
};

/// Iterates over positions: for (size_t i : indices_of(loops)). The size is read before each step, so the container may
/// grow meanwhile. It must outlive the loop.
template <class Range>
IndexRange<Range> indices_of(const Range& range) {
  return IndexRange<Range>(range);
}
template <class Range>
void indices_of(const Range&& range) = delete;

}  // namespace tilewright
