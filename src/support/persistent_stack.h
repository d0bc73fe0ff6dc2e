// An immutable linked stack with O(1) copies, which share their common prefix, and O(log n) access to any element.
// Traces and handle tables of schedules use it.
//
// The data structure is that of Myers, "An applicative random-access stack" (1983): besides its parent, each cell has a
// jump pointer to a cell further down, chosen so that the distances form a skew-binary number.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace tilewright {

template <class T>
class PersistentStack {
 public:
  PersistentStack() = default;
  PersistentStack(const PersistentStack& other) : top_(other.top_) { retain(top_); }
  PersistentStack(PersistentStack&& other) noexcept : top_(std::exchange(other.top_, nullptr)) {}
  PersistentStack& operator=(PersistentStack other) noexcept {
    std::swap(top_, other.top_);
    return *this;
  }
  ~PersistentStack() { release(top_); }

  size_t size() const { return top_ ? top_->size : 0; }
  bool empty() const { return !top_; }
  const T& back() const { return top_->value; }
  /// The element pushed when the stack had `index` elements. index < size().
  const T& operator[](size_t index) const { return cell(index + 1)->value; }

  void push_back(T value) {
    const Cell* jump = top_;
    if (top_ && top_->jump) {
      size_t near = top_->size - top_->jump->size;
      size_t far = top_->jump->size - (top_->jump->jump ? top_->jump->jump->size : 0);
      if (near == far && top_->jump->jump) jump = top_->jump->jump;
    }
    // The new cell takes over this stack's count of the old top.
    top_ = new Cell{std::move(value), size() + 1, top_, jump, {1}};
  }
  /// The stack as it was when it had `size` elements.
  PersistentStack prefix(size_t size) const {
    PersistentStack result;
    result.top_ = size ? cell(size) : nullptr;
    retain(result.top_);
    return result;
  }
  /// Returns pointers to all elements, the first pushed first. Valid while a stack that contains them exists.
  std::vector<const T*> items() const {
    std::vector<const T*> result(size());
    for (const Cell* c = top_; c; c = c->parent) result[c->size - 1] = &c->value;
    return result;
  }
  /// Whether both are the same stack, not only equal ones.
  friend bool same(const PersistentStack& a, const PersistentStack& b) { return a.top_ == b.top_; }

 private:
  struct Cell {
    T value;
    size_t size;
    const Cell* parent;  ///< owned: one count
    const Cell* jump;    ///< kept alive by the chain of parents
    mutable std::atomic<size_t> refs;
  };
  const Cell* cell(size_t size) const {
    const Cell* c = top_;
    while (c->size > size) c = c->jump && c->jump->size >= size ? c->jump : c->parent;
    return c;
  }
  static void retain(const Cell* c) {
    if (c) c->refs.fetch_add(1, std::memory_order_relaxed);
  }
  static void release(const Cell* c) {
    while (c && c->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const Cell* parent = c->parent;
      delete c;
      c = parent;
    }
  }
  const Cell* top_ = nullptr;
};

}  // namespace tilewright
