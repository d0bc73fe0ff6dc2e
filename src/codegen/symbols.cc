#include "codegen/symbols.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tilewright::codegen {
namespace {

using F1 = float (*)(float);
using F2 = float (*)(float, float);
using D1 = double (*)(double);
using D2 = double (*)(double, double);

template <class T>
void* address(T function) {
  return reinterpret_cast<void*>(function);
}

#define TW_UNARY(name) \
  {#name, address<D1>(&::name)}, { #name "f", address<F1>(&::name##f) }
#define TW_BINARY(name) \
  {#name, address<D2>(&::name)}, { #name "f", address<F2>(&::name##f) }

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
    TW_UNARY(sqrt),
    TW_UNARY(floor),
    TW_UNARY(ceil),
    TW_UNARY(trunc),
    TW_UNARY(round),
    TW_UNARY(nearbyint),
    TW_UNARY(rint),
    TW_UNARY(cbrt),
    TW_UNARY(lgamma),
    TW_UNARY(tgamma),
    TW_UNARY(fabs),
    TW_BINARY(pow),
    TW_BINARY(atan2),
    TW_BINARY(fmod),
    TW_BINARY(hypot),
    TW_BINARY(nextafter),
    TW_BINARY(fmin),
    TW_BINARY(fmax),
    {"exp10", address<D1>(&::exp10)},
    {"exp10f", address<F1>(&::exp10f)},
    {"fma", address<double (*)(double, double, double)>(&::fma)},
    {"fmaf", address<float (*)(float, float, float)>(&::fmaf)},
    {"ldexp", address<double (*)(double, int)>(&::ldexp)},
    {"ldexpf", address<float (*)(float, int)>(&::ldexpf)},
    {"sincos", address<void (*)(double, double*, double*)>(&::sincos)},
    {"sincosf", address<void (*)(float, float*, float*)>(&::sincosf)},
    {"memcpy", address<void* (*)(void*, const void*, size_t)>(&::memcpy)},
    {"memmove", address<void* (*)(void*, const void*, size_t)>(&::memmove)},
    {"memset", address<void* (*)(void*, int, size_t)>(&::memset)},
    {"printf", address<int (*)(const char*, ...)>(&::printf)},
    {"fflush", address<int (*)(std::FILE*)>(&::fflush)},
    {"puts", address<int (*)(const char*)>(&::puts)},
    {"putchar", address<int (*)(int)>(&::putchar)},
};
#undef TW_UNARY
#undef TW_BINARY

}  // namespace

std::span<const Symbol> library_symbols() { return kSymbols; }

bool is_library_symbol(std::string_view name) {
  return std::any_of(std::begin(kSymbols), std::end(kSymbols), [&](const Symbol& s) { return s.name == name; });
}

}  // namespace tilewright::codegen
