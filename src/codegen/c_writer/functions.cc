#include "codegen/c_writer/functions.h"

#include <fmt/format.h>

#include "codegen/c_writer/literals.h"

namespace tilewright::codegen {

std::string Functions::add(const std::string& name, const std::string& text, const std::string& front) {
  if (known_.try_emplace(name, texts_.size()).second) {
    texts_.push_back(fmt::format("{}{}{}\n", front, dialect_.function_head(), text));
  }
  return name;
}

std::string Functions::all_text() const { return fmt::format("{}", fmt::join(texts_, "")); }

namespace {

bool is_float8(DataType type) { return type.is_float() && type.bits == 8; }

/// "i32", "u8", "f32", "bf16", "e4m3"
std::string letter(DataType type) {
  if (is_float8(type)) return type.code == TypeCode::kFloat8E4M3FN ? "e4m3" : "e5m2";
  const char* code = type.code == TypeCode::kBFloat ? "bf" : type.is_float() ? "f" : type.is_uint() ? "u" : "i";
  return code + std::to_string(static_cast<int>(type.bits));
}

/// A format of 8 bits, and the bits of its magnitudes.
struct Float8 {
  int mantissa_bits, bias;
  uint32_t largest, infinity, nan;

  static Float8 of(DataType type) {
    // float8_e4m3fn has no infinity: numbers beyond the largest one are NaN.
    if (type.code == TypeCode::kFloat8E4M3FN) return {3, 7, 0x7E, 0x7F, 0x7F};
    return {2, 15, 0x7B, 0x7C, 0x7E};
  }
  int smallest_exponent() const { return 1 - bias; }
};

DataType computed_in(DataType type) { return is_narrow(type) ? DataType::float_(32) : type; }

}  // namespace

std::string Functions::division(std::string_view operation, DataType type) {
  const DataType wide = computed_in(type);
  const std::string t = dialect_.type(wide), name = fmt::format("tw_{}_{}", operation, letter(wide));
  auto math = [&](Intrinsic of) { return dialect_.math(of, wide); };
  if (wide.is_float()) {  // the remainder only: a quotient is written as it is
    return add(name, fmt::format("{0} {1}({0} a, {0} b) {{\n"
                                 "  {0} r = {2}(a, b);\n"
                                 "  if (r == 0) return {3}(({0})0, b);\n"
                                 "  return (r < 0) != (b < 0) ? r + b : r;\n}}\n",
                                 t, name, math(Intrinsic::k_fmod), math(Intrinsic::k_copysign)));
  }
  // Division by 0 is undefined, and must not stop the device; the smallest number divided by -1 wraps.
  const bool divides = operation.ends_with("div"), floors = operation.starts_with("floor");
  std::string body = "  if (b == 0) return 0;\n";
  if (type.is_int()) {
    const std::string u = dialect_.type(DataType::uint(type.bits));
    body += divides ? fmt::format("  if (b == -1) return ({})(0 - ({})a);\n", t, u) : "  if (b == -1) return 0;\n";
  }
  if (!floors || type.is_uint()) {
    body += fmt::format("  return ({})(a {} b);\n", t, divides ? "/" : "%");
  } else if (divides) {
    body += fmt::format("  {0} q = ({0})(a / b);\n  return ({0})(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);\n", t);
  } else {
    body += fmt::format("  {0} r = ({0})(a % b);\n  return ({0})(r != 0 && (r < 0) != (b < 0) ? r + b : r);\n", t);
  }
  return add(name, fmt::format("{0} {1}({0} a, {0} b) {{\n{2}}}\n", t, name, body));
}

std::string Functions::min_max(bool is_min, DataType type) {
  const DataType wide = computed_in(type);
  const std::string t = dialect_.type(wide), name = fmt::format("tw_{}_{}", is_min ? "min" : "max", letter(wide));
  // A NaN on either side is the result.
  const char* nan = wide.is_float() ? "a != a || " : "";
  return add(name,
             fmt::format("{0} {1}({0} a, {0} b) {{ return {2}a {3} b ? a : b; }}\n", t, name, nan, is_min ? "<" : ">"));
}

std::string Functions::shift(bool is_left, DataType type) {
  const std::string t = dialect_.type(type), u = dialect_.type(DataType::uint(type.bits));
  const std::string name = fmt::format("tw_{}_{}", is_left ? "shift_left" : "shift_right", letter(type));
  const int bits = type.bits;
  std::string inside = is_left ? fmt::format("({})(({})a << b)", t, u) : fmt::format("({})(a >> b)", t);
  std::string beyond = !is_left && type.is_int() ? fmt::format("({})(a < 0 ? -1 : 0)", t) : "0";
  return add(name, fmt::format("{0} {1}({0} a, {0} b) {{ return ({2})b < {3} ? {4} : {5}; }}\n", t, name, u, bits,
                               inside, beyond));
}

std::string Functions::to_integer(DataType from, DataType to) {
  const DataType wide = computed_in(from);
  const std::string f = dialect_.type(wide), t = dialect_.type(to);
  const std::string name = fmt::format("tw_{}_to_{}", letter(wide), letter(to));
  // Powers of two, which every float holds.
  const int exponent = to.is_int() ? to.bits - 1 : to.bits;
  const std::string top = fmt::format("0x1p{}{}", exponent, wide.bits == 64 ? "" : "f");
  const std::string suffix = to.bits == 64 ? (to.is_uint() ? "UL" : "L") : (to.is_uint() ? "U" : "");
  std::string most, least = "0";
  if (to.is_uint()) {
    most = to.bits == 64 ? "0xFFFFFFFFFFFFFFFFUL" : fmt::format("{}U", (uint64_t{1} << to.bits) - 1);
  } else {
    most = fmt::format("{}{}", (uint64_t{1} << (to.bits - 1)) - 1, suffix);
    least = fmt::format("(-{} - 1)", most);
  }
  const std::string bottom = to.is_uint() ? "0" : "-" + top;
  return add(name, fmt::format("{0} {1}({2} x) {{\n"
                               "  if (x != x) return 0;\n"
                               "  if (x >= {3}) return ({0}){4};\n"
                               "  if (x <= {5}) return ({0}){6};\n"
                               "  return ({0})x;\n}}\n",
                               t, name, f, top, most, bottom, least));
}

std::string Functions::sigmoid(DataType type) {
  const DataType wide = computed_in(type);
  const std::string t = dialect_.type(wide), name = "tw_sigmoid_" + letter(wide);
  // Small results keep their digits: exp(x) / (1 + exp(x)).
  return add(name, fmt::format("{0} {1}({0} x) {{\n"
                               "  if (x >= 0) return 1 / (1 + {2}(-x));\n"
                               "  {0} e = {2}(x);\n  return e / (1 + e);\n}}\n",
                               t, name, dialect_.math(Intrinsic::k_exp, wide)));
}

std::string Functions::load(DataType type) {
  const std::string bits = dialect_.type(DataType::uint(type.bits)), name = "tw_load_" + letter(type);
  const DataType f = DataType::float_(32), u = DataType::uint(32);
  std::string body = dialect_.load_half();
  if (is_float8(type)) {
    const Float8 format = Float8::of(type);
    body = fmt::format(
        "  {0} magnitude = bits & 0x7F;\n"
        "  float x = {1};\n"
        "  if (magnitude < {2}) x = (float)magnitude * 0x1p{3}f;\n"
        "  if (magnitude > {4}) x = magnitude == {5} ? {6} : {7};\n"
        "  return bits & 0x80 ? -x : x;\n",
        dialect_.type(u),
        dialect_.reinterpret(
            u, f, fmt::format("(magnitude << {}) + {}u", 23 - format.mantissa_bits, (127 - format.bias) << 23)),
        1 << format.mantissa_bits, format.smallest_exponent() - format.mantissa_bits, format.largest,
        format.infinity == format.nan ? 0 : format.infinity, dialect_.infinity(f), dialect_.nan(f));
  }
  if (type.code == TypeCode::kBFloat) {
    body = fmt::format("  return {};\n", dialect_.reinterpret(u, f, fmt::format("({})bits << 16", dialect_.type(u))));
  }
  return add(name, fmt::format("float {}({} bits) {{\n{}}}\n", name, bits, body));
}

std::string Functions::store(DataType type) {
  const std::string result = dialect_.type(DataType::uint(type.bits)), name = "tw_store_" + letter(type);
  const DataType f = DataType::float_(32), u = DataType::uint(32);
  std::string body = dialect_.store_half();
  if (is_float8(type)) {
    const Float8 format = Float8::of(type);
    const int dropped = 23 - format.mantissa_bits;
    body = fmt::format(
        "  {0} bits = {1}, sign = (bits >> 24) & 0x80, magnitude = bits & 0x7FFFFFFF;\n"
        "  if (x != x) return ({2})(sign | {3});\n"
        "  if (magnitude < {4}u) return ({2})(sign | ({0})({5}({6}(x) * 0x1p{7}f)));\n"
        "  {0} rounded = (magnitude + {8} + ((magnitude >> {9}) & 1)) >> {9};\n"
        "  return ({2})(sign | (rounded > {10} ? {11} : rounded - {12}));\n",
        dialect_.type(u), dialect_.reinterpret(f, u, "x"), result, format.nan,
        static_cast<uint32_t>(127 + format.smallest_exponent()) << 23, dialect_.math(Intrinsic::k_nearbyint, f),
        dialect_.math(Intrinsic::k_fabs, f), format.mantissa_bits - format.smallest_exponent(),
        (1 << (dropped - 1)) - 1, dropped, format.largest + ((127 - format.bias) << format.mantissa_bits),
        format.infinity, (127 - format.bias) << format.mantissa_bits);
  }
  if (type.code == TypeCode::kBFloat) {
    body = fmt::format(
        "  {0} bits = {1};\n"
        "  if (x != x) return 0x7FC0;\n"
        "  return ({2})((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);\n",
        dialect_.type(u), dialect_.reinterpret(f, u, "x"), result);
  }
  return add(name, fmt::format("{} {}(float x) {{\n{}}}\n", result, name, body));
}

std::string Functions::round_to_odd(DataType from) {
  const DataType f = DataType::float_(32), u = DataType::uint(32), d = DataType::float_(64);
  if (from.is_integral()) {
    const std::string name = "tw_round_to_odd_" + letter(from), t = dialect_.type(from);
    const std::string magnitude = dialect_.type(DataType::uint(from.bits));
    return add(name, fmt::format("float {0}({1} x) {{\n"
                                 "  {2} magnitude = {3};\n"
                                 "  int dropped = {4} - (int){5};\n"
                                 "  if (dropped <= 0) return (float)x;\n"
                                 "  {2} kept = magnitude >> dropped;\n"
                                 "  if (kept << dropped != magnitude) kept |= 1;\n"
                                 "  float y = (float)(kept << dropped);\n"
                                 "  return {6};\n}}\n",
                                 name, t, magnitude,
                                 from.is_int() ? fmt::format("x < 0 ? 0 - ({0})x : ({0})x", magnitude) : "x",
                                 from.bits - 24, call_on_integer(dialect_, Intrinsic::k_clz, from.bits, "magnitude"),
                                 from.is_int() ? "x < 0 ? -y : y" : "y"));
  }
  return add("tw_round_to_odd",
             fmt::format("float tw_round_to_odd(double x) {{\n"
                         "  float y = (float)x;\n"
                         "  if (x != x || (double)y == x || isinf(y)) return y;\n"
                         "  {0} bits = {1};\n"
                         "  if ({2}((double)y) > {2}(x)) bits -= 1;\n"
                         "  return {3};\n}}\n",
                         dialect_.type(u), dialect_.reinterpret(f, u, "y"), dialect_.math(Intrinsic::k_fabs, d),
                         dialect_.reinterpret(u, f, "bits | 1")));
}

std::string Functions::round(DataType type) {
  const std::string down = store(type), up = load(type), name = "tw_round_" + letter(type);
  return add(name, fmt::format("float {0}(float x) {{ return {1}({2}(x)); }}\n", name, up, down));
}

std::string Functions::power_of_two(std::string value, DataType of) {
  const DataType power = DataType::int_(32);
  if (of.is_float()) return fmt::format("{}({})", to_integer(of, power), value);
  auto limit = [&](bool is_min, int64_t to) {
    value = fmt::format("{}({}, {})", min_max(is_min, of), value, integer_literal(of, to));
  };
  if (of.bits > 32 || (of.is_uint() && of.bits == 32)) limit(true, INT32_MAX);
  if (of.is_int() && of.bits > 32) limit(false, INT32_MIN);
  return "(int)" + value;
}

std::string Functions::dot4(DataType left, DataType right, DataType sum) {
  const std::string name = fmt::format("tw_dp4a_{}_{}_{}", letter(left), letter(right), letter(sum));
  const std::string t = dialect_.type(sum), u = dialect_.type(DataType::uint(32));
  std::string body = dialect_.dot4(left, right);
  if (body.empty()) {
    body = fmt::format("  {} sum = ({})c;\n", u, u);
    for (int shift = 0; shift < 32; shift += 8) {
      body += fmt::format("  sum += ({0})(({1})(a >> {3}) * ({2})(b >> {3}));\n", u, dialect_.type(left),
                          dialect_.type(right), shift);
    }
    body += fmt::format("  return ({})sum;\n", t);
  }
  return add(name, fmt::format("{0} {1}({2} a, {2} b, {0} c) {{\n{3}}}\n", t, name, u, body));
}

std::string Functions::atomic(Intrinsic intrinsic, DataType type, const std::string& scope) {
  // Threads share main memory and that of their block.
  if (!scope.empty() && !scope.starts_with("global") && !scope.starts_with("shared")) return "";
  const std::string t = dialect_.type(type), space = dialect_.address_space(scope);
  const Dialect::AtomicFunction found = dialect_.atomic_function(intrinsic, type, space);
  if (found.body.empty()) return "";
  std::string name = fmt::format("tw_{}_{}", intrinsic_row(intrinsic).name, letter(type));
  if (!space.empty()) name += scope.starts_with("shared") ? "_shared" : "_global";
  return add(name, fmt::format("{} {}(volatile {}{}* to, {} value) {{\n{}}}\n", t, name, space, t, t, found.body),
             found.front);
}

std::string_view c_math(Intrinsic intrinsic) {
  switch (intrinsic) {
#define SAME(name)          \
  case Intrinsic::k_##name: \
    return #name;
#define NAMED(name, function) \
  case Intrinsic::k_##name:   \
    return #function;
#define INTEGER(name, opencl, cuda, cuda_64)
#include "codegen/c_writer/intrinsics.def"
    default:
      return "";
  }
}

static const IntegerSpelling* integer_spelling(Intrinsic intrinsic) {
  switch (intrinsic) {
#define SAME(name)
#define NAMED(name, function)
#define INTEGER(name, opencl, cuda, cuda_64)                             \
  case Intrinsic::k_##name: {                                            \
    static constexpr IntegerSpelling spelling = {opencl, cuda, cuda_64}; \
    return &spelling;                                                    \
  }
#include "codegen/c_writer/intrinsics.def"
    default:
      return nullptr;
  }
}

std::string call_on_integer(const Dialect& dialect, Intrinsic intrinsic, int bits, const std::string& value) {
  const IntegerSpelling* spelling = integer_spelling(intrinsic);
  if (!spelling) return "";
  return fmt::format(fmt::runtime(dialect.integer_function(*spelling, bits)), fmt::arg("x", value),
                     fmt::arg("missing", 32 - bits));
}

}  // namespace tilewright::codegen
