// A value or the reason why there is none. How failures travel inside Tilewright.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "support/diagnostic.h"

namespace tilewright {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Diagnostic diagnostic) : state_(std::in_place_index<1>, std::move(diagnostic)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Diagnostic& error() const { return std::get<1>(state_); }
  Diagnostic& error() { return std::get<1>(state_); }

  /// At the boundary: the value, or an Exception.
  T value_or_throw() && {
    if (!ok()) throw Exception(std::move(error()));
    return std::move(**this);
  }

 private:
  std::variant<T, Diagnostic> state_;
};

struct Ok {};
/// For steps that return nothing.
using Status = Result<Ok>;

}  // namespace tilewright

/// TW_TRY(x, f()): binds x to the value of f(), or returns its diagnostic.
#define TW_TRY_CONCAT_(a, b) a##b
#define TW_TRY_CONCAT(a, b) TW_TRY_CONCAT_(a, b)
#define TW_TRY(name, expression)                                                                                \
  auto TW_TRY_CONCAT(tw_result_, __LINE__) = (expression);                                                      \
  if (!TW_TRY_CONCAT(tw_result_, __LINE__).ok()) return std::move(TW_TRY_CONCAT(tw_result_, __LINE__).error()); \
  auto& name = *TW_TRY_CONCAT(tw_result_, __LINE__)
#define TW_RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                       \
    if (auto tw_status = (expression); !tw_status.ok()) return std::move(tw_status.error()); \
  } while (false)
