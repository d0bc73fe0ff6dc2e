// A vector with inline storage for its first elements, as llvm::SmallVector, but with a move that never throws. For
// short lists that are created and destroyed often.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tilewright {

/// Up to N elements need no heap allocation. Insertions and moves invalidate references.
template <class T, size_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  InlineVector(std::initializer_list<T> items) { append(items.begin(), items.end()); }
  InlineVector(const InlineVector& other) { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(std::move(other)); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) *this = InlineVector(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(std::move(other));
    return *this;
  }
  ~InlineVector() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& operator[](size_t at) { return items_[at]; }
  const T& operator[](size_t at) const { return items_[at]; }
  T& front() { return items_[0]; }
  const T& front() const { return items_[0]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  /// The item may be an element of the vector.
  void push_back(T item) {
    if (size_ == capacity_) grow(2 * capacity_);
    new (items_ + size_) T(std::move(item));
    ++size_;
  }
  /// The range must not be part of the vector.
  template <class It>
  void append(It first, It last) {
    reserve(size_ + static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) {
      new (items_ + size_) T(*first);
      ++size_;
    }
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }

 private:
  T* in_place() { return reinterpret_cast<T*>(place_); }
  /// Destroys the elements and frees their memory. Does not reset the fields.
  void release() {
    std::destroy(begin(), end());
    if (items_ != in_place()) std::allocator<T>().deallocate(items_, capacity_);
  }
  void take(InlineVector&& other) noexcept {
    size_ = other.size_;
    if (other.items_ == other.in_place()) {
      items_ = in_place();
      capacity_ = N;
      std::uninitialized_move(other.begin(), other.end(), items_);
      std::destroy(other.begin(), other.end());
    } else {
      items_ = std::exchange(other.items_, other.in_place());
      capacity_ = std::exchange(other.capacity_, N);
    }
    other.size_ = 0;
  }
  [[gnu::noinline]] void grow(size_t capacity) {
    T* more = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), more);
    release();
    items_ = more;
    capacity_ = capacity;
  }

  T* items_ = in_place();
  size_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char place_[N * sizeof(T)];
};

}  // namespace tilewright
