#include "codegen/symbols.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

template <class T>
constexpr char letter() {
  if constexpr (std::is_void_v<T>) return 'v';
  if constexpr (std::is_pointer_v<T>) return 'p';
  if constexpr (std::is_same_v<T, float>) return 'f';
  if constexpr (std::is_same_v<T, double>) return 'd';
  if constexpr (std::is_same_v<T, int>) return 'i';
  if constexpr (std::is_same_v<T, size_t>) return 'z';
}

template <class Result, class... Args>
constexpr char kPrototype[] = {letter<Result>(), letter<Args>()...};
template <class Result, class... Args>
constexpr char kOpenPrototype[] = {letter<Result>(), letter<Args>()..., '.'};

template <class Result, class... Args>
Symbol symbol(std::string_view name, Result (*function)(Args...)) {
  return {name, reinterpret_cast<void*>(function), {kPrototype<Result, Args...>, 1 + sizeof...(Args)}};
}
template <class Result, class... Args>
Symbol symbol(std::string_view name, Result (*function)(Args..., ...)) {
  return {name, reinterpret_cast<void*>(function), {kOpenPrototype<Result, Args...>, 2 + sizeof...(Args)}};
}

// The casts choose among the overloads of C++.
#define TW_UNARY(name) symbol(#name, static_cast<double (*)(double)>(&::name)), symbol(#name "f", &::name##f)
#define TW_BINARY(name) symbol(#name, static_cast<double (*)(double, double)>(&::name)), symbol(#name "f", &::name##f)

const Symbol kSymbols[] = {
    TW_UNARY(exp),
    TW_UNARY(exp2),
    TW_UNARY(log),
    TW_UNARY(log2),
    TW_UNARY(log10),
    TW_UNARY(log1p),
    TW_UNARY(expm1),
    TW_UNARY(sin),
    TW_UNARY(cos),
    TW_UNARY(tan),
    TW_UNARY(sinh),
    TW_UNARY(cosh),
    TW_UNARY(tanh),
    TW_UNARY(asin),
    TW_UNARY(acos),
    TW_UNARY(atan),
    TW_UNARY(asinh),
    TW_UNARY(acosh),
    TW_UNARY(atanh),
    TW_UNARY(erf),
    TW_UNARY(erfc),
    TW_UNARY(sqrt),
    TW_UNARY(floor),
    TW_UNARY(ceil),
    TW_UNARY(trunc),
    TW_UNARY(round),
    TW_UNARY(nearbyint),
    TW_UNARY(rint),
    TW_UNARY(logb),
    TW_UNARY(cbrt),
    TW_UNARY(lgamma),
    TW_UNARY(tgamma),
    TW_UNARY(fabs),
    TW_BINARY(pow),
    TW_BINARY(atan2),
    TW_BINARY(fmod),
    TW_BINARY(hypot),
    TW_BINARY(copysign),
    TW_BINARY(fdim),
    TW_BINARY(remainder),
    TW_BINARY(nextafter),
    TW_BINARY(fmin),
    TW_BINARY(fmax),
    TW_UNARY(exp10),
    symbol("fma", static_cast<double (*)(double, double, double)>(&::fma)),
    symbol("fmaf", &::fmaf),
    symbol("ldexp", static_cast<double (*)(double, int)>(&::ldexp)),
    symbol("ldexpf", &::ldexpf),
    symbol("sincos", &::sincos),
    symbol("sincosf", &::sincosf),
    symbol("memcpy", &::memcpy),
    symbol("memmove", &::memmove),
    symbol("memset", &::memset),
    symbol("printf", &::printf),
    symbol("fflush", &::fflush),
    symbol("puts", &::puts),
    symbol("putchar", &::putchar),
};
#undef TW_UNARY
#undef TW_BINARY

}  // namespace

std::span<const Symbol> library_symbols() { return kSymbols; }

const Symbol* library_symbol(std::string_view name) {
  auto found = find_if(kSymbols, [&](const Symbol& s) { return s.name == name; });
  return found == std::end(kSymbols) ? nullptr : found;
}

}  // namespace tilewright::codegen
