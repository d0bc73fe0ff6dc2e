// The loop that executes code.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "interpreter/machine.h"
#include "ir/meaning.h"
#include "ir/numeric.h"
#include "support/ranges.h"

namespace tilewright::interpreter {
namespace {

constexpr size_t kMaxCalls = 10000;

DataType type_of(const Insn& in) { return {in.code, in.bits, 1, false}; }

/// The value in the instruction's floating-point type.
double rounded(const Insn& in, double value) {
  if (in.bits == 32) return static_cast<float>(value);
  if (in.bits == 64) return value;
  return round_result(type_of(in), value);
}
/// The value modulo 2^bits.
int64_t wrapped(const Insn& in, uint64_t value) {
  int shift = 64 - in.bits;
  return in.is_unsigned ? static_cast<int64_t>(value << shift >> shift) : static_cast<int64_t>(value << shift) >> shift;
}

/// The bits of values in their memory layout, reinterpreted as elements of another type with the same total size.
void reinterpret(DataType from, const Slot* values, int count, DataType to, Slot* results, int results_count) {
  // Elements of less than a byte have one each.
  std::vector<std::byte> bytes(static_cast<size_t>(std::max(count * from.bytes(), results_count * to.bytes())));
  for (int i = 0; i < count; ++i) {
    const Slot value = values[i];
    store_element(from, from.is_float() ? value.f : 0, from.is_float() ? 0 : value.i, &bytes[i * from.bytes()]);
  }
  for (int i = 0; i < results_count; ++i) {
    const std::byte* place = &bytes[i * to.bytes()];
    results[i] = to.is_float() ? Slot{.f = load_float(to, place)} : Slot{.i = load_int(to, place)};
  }
}

/// Negative where one is, the largest number where it overflows.
int64_t product_of_sizes(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0) return -1;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

bool Machine::divide(const Insn& in, Slot* r) {
  for (int k = 0; k < in.lanes; ++k) {
    int64_t a = r[in.a + k].i, b = r[in.b + k].i;
    if (b == 0)
      return fail("interpret/divide-by-zero", where(in.extra) + " divides " + std::to_string(a) + " by zero", in.extra);
    int64_t& result = r[in.dst + k].i;
    bool quotient = in.op == Op::kDivInt || in.op == Op::kFloorDivInt;
    bool floors = in.op == Op::kFloorDivInt || in.op == Op::kFloorModInt;
    if (in.is_unsigned) {
      auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
      result = static_cast<int64_t>(quotient ? ua / ub : ua % ub);
    } else if (b == -1) {
      result = quotient ? wrapped(in, -static_cast<uint64_t>(a)) : 0;
    } else if (floors) {
      result = quotient ? floor_div(a, b) : floor_mod(a, b);
    } else {
      result = quotient ? a / b : a % b;
    }
  }
  return true;
}

void Machine::compare(const Insn& in, Slot* r) {
  for (int k = 0; k < in.lanes; ++k) {
    const Slot a = r[in.a + k], b = r[in.b + k];
    bool result = false;
    switch (in.op) {
      case Op::kEqInt:
        result = a.i == b.i;
        break;
      case Op::kNeInt:
        result = a.i != b.i;
        break;
      case Op::kLtInt:
        result = in.is_unsigned ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
        break;
      case Op::kLeInt:
        result = in.is_unsigned ? static_cast<uint64_t>(a.i) <= static_cast<uint64_t>(b.i) : a.i <= b.i;
        break;
      case Op::kEqFloat:
        result = a.f == b.f;
        break;
      case Op::kNeFloat:
        result = a.f != b.f;
        break;
      case Op::kLtFloat:
        result = a.f < b.f;
        break;
      default:
        result = a.f <= b.f;
    }
    r[in.dst + k].i = result;
  }
}

void Machine::math(const Insn& in, Slot* r) {
  auto intrinsic = static_cast<Intrinsic>(in.extra);
  DataType type = type_of(in);
  const IntrinsicRow& row = intrinsic_row(intrinsic);
  auto arg = [&](int first, int k) { return first == kNone ? Slot{.i = 0} : r[first + k]; };
  for (int k = 0; k < in.lanes; ++k) {
    Slot& result = r[in.dst + k];
    if (!type.is_float()) {
      // A fourth argument is in the slot behind the third, one for all lanes.
      IntArgs args{r[in.a + k].i, arg(in.b, k).i, arg(in.c, row.arity == 4 ? 0 : k).i, 0};
      if (row.arity == 4) args.d = r[in.c + 1].i;
      result.i = compute(intrinsic, type, args);
    } else {
      double value = compute(intrinsic, type, r[in.a + k].f, arg(in.b, k).f, arg(in.c, k).f);
      if (row.typing == Typing::kBool) {
        result.i = value != 0;
      } else {
        result.f = value;
      }
    }
  }
}

void Machine::convert(const Insn& in, Slot* r) {
  if (in.op == Op::kReinterpret) {
    const DataType from{static_cast<TypeCode>(in.extra >> 8), static_cast<uint8_t>(in.extra & 0xFF), 1, false};
    const bool whole_bytes = from.bits % 8 == 0 && in.bits % 8 == 0;
    const int count = whole_bytes ? in.lanes * in.bits / from.bits : in.lanes;
    return reinterpret(from, &r[in.a], count, type_of(in), &r[in.dst], in.lanes);
  }
  for (int k = 0; k < in.lanes; ++k) {
    const Slot a = r[in.a + k];
    Slot& result = r[in.dst + k];
    switch (in.op) {
      case Op::kIntToInt:
        result.i = wrapped(in, static_cast<uint64_t>(a.i));
        break;
      case Op::kIntToFloat:
        result.f = int_to_float(in.extra ? DataType::uint(64) : DataType::int_(64), type_of(in), a.i);
        break;
      case Op::kFloatToInt:
        result.i = float_to_int(type_of(in), a.f);
        break;
      case Op::kFloatToFloat:
        result.f = round_float(type_of(in), a.f);
        break;
      default:
        result.i = in.extra ? a.f != 0 : a.i != 0;
    }
  }
}

void Machine::print(const PrintSite& site, const Slot* r) {
  std::string line;
  for (size_t i : indices_of(site.values)) {
    auto [slot, type] = site.values[i];
    if (i > 0) line += ' ';
    if (slot == kNone) {
      line += site.texts[i];
      continue;
    }
    int lanes = type.scalable ? type.lanes * options_.vscale : type.lanes;
    if (lanes > 1) line += '[';
    for (int k = 0; k < lanes; ++k) {
      if (k > 0) line += ", ";
      if (type.is_float()) {
        char digits[40];
        std::snprintf(digits, sizeof digits, type.bits == 64 ? "%.17g" : "%.9g", r[slot + k].f);
        line += digits;
      } else {
        line += type.is_uint() ? std::to_string(static_cast<uint64_t>(r[slot + k].i)) : std::to_string(r[slot + k].i);
      }
    }
    if (lanes > 1) line += ']';
  }
  line += '\n';
  if (options_.print) {
    options_.print(line);
  } else {
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  }
}

bool Machine::check_limits(int site) {
  if (steps_ >= step_limit_) {
    return fail(resource_error("interpret/steps", "the program was stopped after " + std::to_string(steps_) + " steps",
                               "raise max_steps, or use smaller shapes"),
                site);
  }
  if (steps_ % 0x4000 != 0) return true;
  if (options_.timeout_seconds > 0 && std::chrono::steady_clock::now() > deadline_) {
    return fail(resource_error("interpret/timeout", "the program did not end within its time limit",
                               "raise the limit, or use smaller shapes"),
                site);
  }
  if (options_.keep_going && !options_.keep_going()) {
    return fail(resource_error("interpret/stopped", "the program was stopped from outside"), site);
  }
  return true;
}

bool Machine::call(Thread& thread, const CallSite& site) {
  if (thread.frames.size() >= kMaxCalls) {
    return fail("interpret/recursion", "functions call one another without end", site.site);
  }
  const Function& callee = *program_.functions[program_.by_name.at(site.callee)];
  push_frame(thread, callee);
  Frame& frame = thread.frames.back();
  const Frame& caller = thread.frames[thread.frames.size() - 2];
  for (size_t i : indices_of(site.args)) frame.slots[callee.param_slots[i]] = caller.slots[site.args[i]];
  frame.result = site.dst;
  frame.result_lanes = site.lanes;
  return true;
}

// A `case` for an operation on each lane.
#define TW_EACH(Name, expression)                  \
  case Op::Name:                                   \
    for (int k = 0; k < in.lanes; ++k) {           \
      const Slot x = r[in.a + k], y = r[in.b + k]; \
      (void)x, (void)y;                            \
      expression;                                  \
    }                                              \
    break;
#define TW_INT(Name, value) TW_EACH(Name, r[in.dst + k].i = wrapped(in, value))
#define TW_FLOAT(Name, value) TW_EACH(Name, r[in.dst + k].f = rounded(in, value))

/// Operations that cannot fail; false: not one of them.
bool Machine::arithmetic(const Insn& in, Slot* r) {
  auto less = [&](int64_t a, int64_t b) {
    return in.is_unsigned ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  };
  switch (in.op) {
    case Op::kMove:
      for (int k = 0; k < in.lanes; ++k) r[in.dst + k] = r[in.a + k];
      break;
    case Op::kBroadcast:
      for (int k = 0; k < in.lanes; ++k) r[in.dst + k] = r[in.a];
      break;
    case Op::kRamp:
      for (int k = 0; k < in.lanes; ++k) {
        r[in.dst + k].i = wrapped(in, static_cast<uint64_t>(r[in.a].i) + static_cast<uint64_t>(r[in.b].i) * k);
      }
      break;
      TW_INT(kAddInt, static_cast<uint64_t>(x.i) + static_cast<uint64_t>(y.i))
      TW_INT(kSubInt, static_cast<uint64_t>(x.i) - static_cast<uint64_t>(y.i))
      TW_INT(kMulInt, static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i))
      TW_EACH(kMulSize, r[in.dst + k].i = product_of_sizes(x.i, y.i))
      TW_EACH(kMinInt, r[in.dst + k].i = less(x.i, y.i) ? x.i : y.i)
      TW_EACH(kMaxInt, r[in.dst + k].i = less(x.i, y.i) ? y.i : x.i)
      TW_FLOAT(kAddFloat, x.f + y.f)
      TW_FLOAT(kSubFloat, x.f - y.f)
      TW_FLOAT(kMulFloat, x.f * y.f)
      TW_FLOAT(kDivFloat, x.f / y.f)
      TW_FLOAT(kFloorDivFloat, floor_div_of(type_of(in), x.f, y.f))
      TW_FLOAT(kFloorModFloat, floor_mod_of(x.f, y.f))
      TW_EACH(kMinFloat, r[in.dst + k].f = min_of(x.f, y.f))
      TW_EACH(kMaxFloat, r[in.dst + k].f = max_of(x.f, y.f))
      TW_EACH(kAnd, r[in.dst + k].i = x.i & y.i)
      TW_EACH(kOr, r[in.dst + k].i = x.i | y.i)
    case Op::kNot:
      for (int k = 0; k < in.lanes; ++k) r[in.dst + k].i = r[in.a + k].i == 0;
      break;
    case Op::kSelect:
      for (int k = 0; k < in.lanes; ++k) r[in.dst + k] = r[in.extra ? in.a : in.a + k].i ? r[in.b + k] : r[in.c + k];
      break;
    case Op::kEqInt:
    case Op::kNeInt:
    case Op::kLtInt:
    case Op::kLeInt:
    case Op::kEqFloat:
    case Op::kNeFloat:
    case Op::kLtFloat:
    case Op::kLeFloat:
      compare(in, r);
      break;
    case Op::kIntToInt:
    case Op::kIntToFloat:
    case Op::kFloatToInt:
    case Op::kFloatToFloat:
    case Op::kToBool:
    case Op::kReinterpret:
      convert(in, r);
      break;
    case Op::kMath:
      math(in, r);
      break;
    default:
      return false;
  }
  return true;
}

bool Machine::fail_with(int number) {
  const Message& message = program_.messages[number];
  return fail(message.code, where(message.site) + ": " + message.text, message.site, message.hint);
}

bool Machine::check_axis(const Insn& in, const Slot* r) {
  int64_t value = r[in.a].i, min = r[in.b].i, extent = r[in.c].i;
  if (value >= min && value < min + extent) return true;
  return fail("interpret/axis",
              where(in.extra) + ": axis '" + program_.sites[in.extra].what + "' is bound to " + std::to_string(value) +
                  ", outside of its domain [" + std::to_string(min) + ", " + std::to_string(min + extent) + ")",
              in.extra, "guard the block with T.where, or correct the binding");
}

/// Executes an instruction that may fail, allocates or concerns loops. Returns false after a failure.
bool Machine::effect(Thread& thread, const Insn& in, Slot* r) {
  switch (in.op) {
    case Op::kDivInt:
    case Op::kModInt:
    case Op::kFloorDivInt:
    case Op::kFloorModInt:
      return divide(in, r);
    case Op::kCheckAxis:
      return check_axis(in, r);
    case Op::kCheckEqual:
      return r[in.a].i == r[in.b].i || fail_with(in.extra);
    case Op::kAssert:
      return r[in.a].i != 0 || fail_with(in.extra);
    case Op::kFail:
      return fail_with(in.extra);
    case Op::kAssume:
      return r[in.a].i != 0 || fail_assumption(in, r);
    case Op::kSearch:
      return search(in, r);
    case Op::kAddress:
      return address(in, r);
    case Op::kAtomic:
      return atomic(in, r);
    case Op::kAllocate:
      return allocate(thread, in, r);
    case Op::kFree:
      release(thread, in, r);
      return true;
    case Op::kAllocateConst:
      r[in.dst].i = constant_memory(in.a);
      return true;
    case Op::kEnter:
      enter(thread, in);
      return true;
    case Op::kIterate:
      iterate(thread, r[in.dst].i);
      return true;
    case Op::kLeave:
      return leave(thread);
    case Op::kCloseGroup:
      thread.pending_groups.push_back(std::exchange(thread.open_group, {}));
      return true;
    case Op::kWaitGroup:
      return complete_groups(thread, static_cast<size_t>(in.a));
    case Op::kArgDimension:
    case Op::kArgStride:
      return argument_size(thread.frames.back(), in, r);
    case Op::kCheckArg:
      return check_argument(thread.frames.back(), program_.arg_checks[in.a], r);
    case Op::kPrint:
      print(program_.prints[in.a], r);
      return true;
    default:
      return true;
  }
}

/// Ends the innermost function; false when it was the thread's first.
bool Machine::return_from(Thread& thread, const Insn& in) {
  Frame done = std::move(thread.frames.back());
  thread.frames.pop_back();
  if (thread.frames.empty()) {
    if (in.a != kNone) store_returned(*done.function, done.slots[in.a]);
    return false;
  }
  Slot* r = thread.frames.back().slots;
  for (int k = 0; k < done.result_lanes; ++k) {
    r[done.result + k] = in.a == kNone ? Slot{.i = 0} : done.slots[in.a + k];
  }
  return true;
}

Machine::Stop Machine::execute(Thread& thread) {
  const Insn* code = nullptr;
  Slot* r = nullptr;
  size_t pc = 0;
  auto enter_frame = [&] {
    const Frame& frame = thread.frames.back();
    code = frame.function->code.data();
    r = frame.slots;
    pc = frame.pc;
  };
  enter_frame();
  for (;;) {
    const Insn& in = code[pc++];
    bool ok = true;
    switch (in.op) {
      case Op::kLoad:
        ok = access<false>(in, program_.accesses[in.a], r);
        break;
      case Op::kStore:
        ok = access<true>(in, program_.accesses[in.a], r);
        break;
      case Op::kLoop:
        if (++r[in.dst].i < r[in.a].i) pc = static_cast<size_t>(in.b);
        ++steps_;
        ok = check_limits(in.extra);
        break;
      case Op::kJump:
        if (static_cast<size_t>(in.a) < pc) {
          ++steps_;
          ok = check_limits(in.extra);
        }
        pc = static_cast<size_t>(in.a);
        break;
      case Op::kJumpIfZero:
        if (r[in.dst].i == 0) pc = static_cast<size_t>(in.a);
        break;
      case Op::kJumpIfDiffer:
        if (r[in.a].i != r[in.b].i) pc = static_cast<size_t>(in.c);
        break;
      case Op::kFork:
        if (fork(thread, in)) return Stop::kForked;
        pc = thread.frames.back().pc;
        break;
      case Op::kJoin:
        return Stop::kFinished;
      case Op::kWarp:
        if (!thread.team) {
          ok = fail_warp(in);
          break;
        }
        thread.warp_step = &in;
        thread.frames.back().pc = pc;
        return Stop::kBarrier;
      case Op::kBarrier:
        if (!thread.team) break;  // a single thread waits for nobody
        thread.barrier = in.extra;
        thread.frames.back().pc = pc;
        return Stop::kBarrier;
      case Op::kCall:
        thread.frames.back().pc = pc;
        ++steps_;
        ok = call(thread, program_.calls[in.a]) && check_limits(program_.calls[in.a].site);
        if (ok) enter_frame();
        break;
      case Op::kReturn:
        if (!return_from(thread, in)) return Stop::kFinished;
        enter_frame();
        break;
      default:
        // Most of what remains cannot fail.
        if (!arithmetic(in, r)) ok = effect(thread, in, r);
    }
    if (!ok) [[unlikely]]
      return Stop::kFailed;
  }
}

}  // namespace tilewright::interpreter
