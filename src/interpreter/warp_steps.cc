// Instructions that the 32 threads of a warp execute together: a thread waits until all of its warp are there, then
// each gets its part of the result. What registers mean is said in ir/warp_steps.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "interpreter/compile.h"
#include "interpreter/machine.h"
#include "ir/build.h"
#include "ir/numeric.h"
#include "support/ranges.h"

namespace tilewright::interpreter {

// ---- code

Expr Compiler::lane() const {
  for (const Bound& bound : bound_) {
    if (bound.tag == "threadIdx.x") return floormod(bound.var, kWarpLanes);
  }
  return i32(0);
}

/// The values of a thread's registers, in slots from `dst` on.
void Compiler::load_registers(const Registers& registers, int dst) {
  Ref<Buffer> view = flat_view(registers.data, registers.dtype, registers.place + registers.count);
  const Expr first = tilewright::cast(DataType::int_(32), registers.place);
  for (int r = 0; r < registers.count; ++r) {
    emit(Op::kMove, dst + r, expr(tilewright::load(view, {first + r})));
  }
}

void Compiler::store_registers(const Registers& registers, int values, const Expr& e) {
  Ref<Buffer> view = flat_view(registers.data, registers.dtype, registers.place + registers.count);
  const Expr first = tilewright::cast(DataType::int_(32), registers.place);
  for (int r = 0; r < registers.count; ++r) {
    const std::vector<Expr> indices = {first + r};
    store(BufferStore{view, {}, indices, {}}, indices, values + r, e);
  }
}

void Compiler::emit_warp(WarpSite site, int results, int given) {
  emit({.op = Op::kWarp, .dst = results, .a = given, .extra = append(program_.warp_steps, std::move(site))});
}

int Compiler::warp_step(const Expr& e) {
  if (auto own = as_statement(e, lane())) {
    stmt(*own);
    return constant(0);
  }
  WarpSite site{.site = this->site(e)};
  if (auto product = WarpProduct::of(e)) {
    const auto of_a = static_cast<int>(product->a.count), of_b = static_cast<int>(product->b.count);
    const auto of_sums = static_cast<int>(product->sums.count);
    const int given = take(of_a + of_b + of_sums), results = take(of_sums);
    load_registers(product->a, given);
    load_registers(product->b, given + of_a);
    load_registers(product->sums, given + of_a + of_b);
    site.product = *product;
    emit_warp(std::move(site), results, given);
    store_registers(product->sums, results, e);
    return constant(0);
  }
  auto load = WarpLoad::of(e);
  if (!load) return unsupported("an instruction of warps of this shape or type", e);
  const auto elements = static_cast<int>(load->row_elements());
  const int given = take(elements), results = take(static_cast<int>(load->to.count));
  const DataType wide = DataType::int_(32);
  const Expr start = tilewright::cast(wide, load->from.offset) + tilewright::cast(wide, load->place);
  Ref<Buffer> row = flat_view(load->from.data, load->to.dtype, start + elements);
  const Expr has_row = load->matrices == 4 ? Expr(bool_imm(true)) : lt(lane(), i32(8 * load->matrices));
  for (int i = 0; i < elements; ++i) {
    Expr value = tilewright::load(row, {start + i});
    if (!is_true(has_row)) value = tilewright::if_then_else(has_row, value, zero(load->to.dtype));
    emit(Op::kMove, given + i, expr(value));
  }
  site.load = *load;
  emit_warp(std::move(site), results, given);
  store_registers(load->to, results, e);
  return constant(0);
}

int Compiler::lane_exchange(const Expr& e) {
  const int given = take(3), result = take(1);
  WarpSite site{.site = this->site(e)};
  if (intrinsic_of(*e.as<Call>()) != Intrinsic::k_tvm_warp_activemask) {
    site.shuffle = WarpShuffle::of(e);
    if (!site.shuffle) return unsupported("a shuffle of vectors, or of a width that is not a power of two up to 32", e);
    emit(Op::kMove, given, expr(site.shuffle->value));
    emit(Op::kMove, given + 1, expr(site.shuffle->lane));
    emit(Op::kMove, given + 2, expr(site.shuffle->mask));
  }
  emit_warp(std::move(site), result, given);
  return result;
}

// ---- execution

namespace {

using Lanes = std::vector<Slot*>;

/// The upper 19 bits of a float32.
double as_tf32(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>(bits & 0xFFFFE000u));
}

int64_t saturated(int64_t sum) { return std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX); }

void multiply(const WarpProduct& product, const Lanes& given, const Lanes& results) {
  const int64_t k = product.k;
  const bool of_floats = product.sums.dtype.is_float();
  std::vector<Slot> a(static_cast<size_t>(16 * k)), b(static_cast<size_t>(8 * k));
  for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
    const Slot* registers = given[lane];
    for (int64_t r = 0; r < product.a.count; ++r) {
      auto [row, step] = product.element_of_a(lane, r);
      a[row * k + step] = registers[r];
    }
    for (int64_t r = 0; r < product.b.count; ++r) {
      auto [step, column] = product.element_of_b(lane, r);
      b[column * k + step] = registers[product.a.count + r];
    }
  }
  for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
    for (int64_t r = 0; r < product.sums.count; ++r) {
      auto [row, column] = WarpProduct::element_of_sums(lane, r);
      const Slot* one = &a[row * k];
      const Slot* other = &b[column * k];
      Slot sum = given[lane][product.a.count + product.b.count + r];
      for (int64_t step = 0; step < k; ++step) {
        if (!of_floats) {
          sum.i += one[step].i * other[step].i;
        } else {
          sum.f += product.is_tf32 ? as_tf32(one[step].f) * as_tf32(other[step].f) : one[step].f * other[step].f;
        }
      }
      if (of_floats) {
        sum.f = round_float(product.sums.dtype, sum.f);
      } else {
        sum.i = product.is_saturating ? saturated(sum.i) : wrap_int(product.sums.dtype, sum.i);
      }
      results[lane][r] = sum;
    }
  }
}

void distribute(const WarpLoad& load, const Lanes& given, const Lanes& results) {
  const int64_t width = 4 / load.to.dtype.bytes();  // elements of a matrix that a lane gets
  for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
    for (int64_t r = 0; r < load.to.count; ++r) {
      const int64_t matrix = r / width, element = r % width;
      const int64_t row = load.is_transposed ? 2 * (lane % 4) + element : lane / 4;
      const int64_t column = load.is_transposed ? lane / 4 : width * (lane % 4) + element;
      results[lane][r] = given[8 * matrix + row][column];
    }
  }
}

}  // namespace

/// Threads with the same key are one warp: 32 neighbors in a block, x running fastest.
std::vector<int64_t> Machine::warp_of(const Thread& thread, int64_t& lane) {
  std::vector<int64_t> key;
  std::array<const LoopLevel*, 3> axes{};
  for (const LoopLevel* level : thread.levels) {
    const auto& axis = program_.loops[level->fork->site].axis;
    const bool is_thread = axis && axis->level == ThreadAxis::Level::kThread;
    if (is_thread) axes[static_cast<size_t>(axis->dimension)] = level;
    if (!is_thread) key.push_back(level->index);
  }
  int64_t index = 0;
  for (const LoopLevel* axis : reversed(axes)) {
    // A loop over threads whose threads run one after another has no neighbors.
    if (axis && axis->fork->count == 0) key.push_back(axis->index);
    if (axis && axis->fork->count > 0) index = index * axis->fork->count + axis->index;
  }
  lane = index % kWarpLanes;
  key.push_back(index / kWarpLanes);
  return key;
}

/// Executes the instruction if all threads that it needs wait at it: every lane, of a shuffle those that the mask names
/// and that have not ended.
bool Machine::run_warp(const Warp& warp, const Insn& in) {
  const WarpSite& site = program_.warp_steps[in.extra];
  Lanes given(kWarpLanes), results(kWarpLanes);
  uint32_t waiting = 0, alive = 0;
  for (size_t lane = 0; lane < kWarpLanes; ++lane) {
    if (!warp[lane]) continue;
    alive |= 1U << lane;
    if (warp[lane]->warp_step != &in) continue;
    waiting |= 1U << lane;
    given[lane] = warp[lane]->frames.back().slots + in.a;
    results[lane] = warp[lane]->frames.back().slots + in.dst;
  }
  uint32_t running = waiting;
  if (site.product || site.load) {
    if (waiting != 0xFFFFFFFF) return false;
    site.product ? multiply(*site.product, given, results) : distribute(*site.load, given, results);
  } else if (site.shuffle) {
    const auto first = static_cast<size_t>(std::countr_zero(waiting));
    const auto mask = static_cast<uint32_t>(given[first][2].i);
    running = mask & alive;
    current_ = warp[first];
    if ((running & ~waiting) != 0) return false;
    for (size_t lane = 0; lane < kWarpLanes; ++lane) {
      if ((waiting >> lane & 1) == 0) continue;
      if ((mask >> lane & 1) == 0 || static_cast<uint32_t>(given[lane][2].i) != mask) return fail_mask(site.site);
      const int64_t source = site.shuffle->source_of(static_cast<int64_t>(lane), given[lane][1].i);
      if ((running >> source & 1) == 0) return fail_lane(site.site, static_cast<int64_t>(lane), source);
      *results[lane] = *given[source];
    }
  } else {
    for (size_t lane = 0; lane < kWarpLanes; ++lane) {
      if (results[lane]) results[lane]->i = waiting;
    }
  }
  for (size_t lane = 0; lane < kWarpLanes; ++lane) {
    if (running >> lane & 1) warp[lane]->warp_step = nullptr;
  }
  return true;
}

/// Executes the instructions of warps whose threads are all there. Returns whether there were any; false with a failure
/// too.
bool Machine::run_warps() {
  if (none_of(threads_, [](const auto& thread) { return thread->warp_step; })) return false;
  std::map<std::vector<int64_t>, Warp> warps;
  for (const auto& thread : threads_) {
    if (!thread->team || thread->running_children > 0) continue;
    int64_t lane = 0;
    Warp& warp = warps[warp_of(*thread, lane)];
    warp[lane] = thread.get();
  }
  bool found = false;
  for (const auto& [key, warp] : warps) {
    for (const Thread* thread : warp) {
      if (thread && thread->warp_step) found |= run_warp(warp, *thread->warp_step);
      if (failure_) return false;
    }
  }
  return found;
}

}  // namespace tilewright::interpreter
