#include "codegen/work.h"

#include <algorithm>
#include <cmath>

#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

constexpr int kUnknownTrips = 16;
constexpr int64_t kEndless = int64_t{1} << 40;

/// Adds the operations of what is visited, each `trips()` times: every lane that is stored, loaded or multiplied is
/// one, and every lane of a call ten.
template <class Trips, class... Handlers>
void add_operations(const Stmt& body, double& total, Trips&& trips, Handlers&&... handlers) {
  visit(
      body, std::forward<Handlers>(handlers)...,
      [&](const Ref<BufferStore>& store) { total += trips() * store->value.dtype().lanes; },
      [&](const Ref<BufferLoad>& load) { total += trips() * Expr(load).dtype().lanes; },
      [&](const Ref<Call>& call) { total += trips() * 10 * call->dtype.lanes; },
      [&](const Ref<Mul>& e) { total += trips() * e->a.dtype().lanes; });
}

}  // namespace

double count_operations(const Stmt& body) {
  double total = 0, trips = 1;
  add_operations(
      body, total, [&] { return trips; },
      [&](const Ref<For>& loop, Visitor& v) {
        auto extent = const_int(loop->extent);
        double outer = trips;
        trips *= extent ? static_cast<double>(std::max<int64_t>(*extent, 0)) : kUnknownTrips;
        v(loop->body);
        trips = outer;
      },
      [&](const Ref<While>& loop, Visitor& v) {
        double outer = trips;
        trips *= kUnknownTrips;
        v.descend(loop);
        trips = outer;
      });
  return total;
}

Expr Operations::of(const Stmt& body) {
  if (auto* known = find_value(known_, body)) return *known;
  double own = 1;
  Expr inside = i64(0);
  add_operations(
      body, own, [] { return 1.0; },
      [&](const Ref<For>& loop, Visitor&) {
        Expr each = of_iteration(*loop);
        bool fixed = effect_of(loop->extent) == Effect::kPure;
        inside = inside + each * (fixed ? cast(DataType::int_(64), loop->extent) : Expr(i64(kUnknownTrips)));
      },
      [&](const Ref<LetStmt>& let, Visitor& v) {
        v(let->value);
        inside = inside + without(of(let->body), let->var, let->value);
      });
  Expr total = inside + i64(static_cast<int64_t>(own));
  // Constants far beyond what could ever run would overflow further out.
  if (auto constant = const_int(total); constant && (*constant > kEndless || *constant < 0)) total = i64(kEndless);
  known_[body] = total;
  return total;
}

Expr Operations::of_iteration(const For& loop) {
  return without(of(loop.body), loop.loop_var, loop.min + floordiv(loop.extent, 2));
}

Expr Operations::without(const Expr& count, const Ref<Var>& v, const Expr& value) {
  if (!uses_var(count, v)) return count;
  return effect_of(value) == Effect::kPure ? substitute(count, {{v, value}}) : Expr(i64(kUnknownTrips * kUnknownTrips));
}

int64_t parallel_grain(const For& loop) {
  double each = std::max(count_operations(loop.body), 1.0);
  return static_cast<int64_t>(std::max(1.0, std::ceil(kOperationsPerRange / each)));
}

bool has_vector_code(const Stmt& body) {
  return any_node(
      body, [&](const Ref<BufferStore>& store) { return store->value.dtype().is_vector(); },
      [&](const Ref<BufferLoad>& load) { return Expr(load).dtype().is_vector(); });
}

}  // namespace tilewright::codegen
