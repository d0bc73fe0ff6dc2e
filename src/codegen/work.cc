#include "codegen/work.h"

#include <algorithm>
#include <cmath>

#include "ir/build.h"
#include "ir/traverse.h"

namespace tilewright::codegen {
namespace {

constexpr double kUnknownTrips = 16;
/// About 20 microseconds of scalar work, several times what waking a thread costs.
constexpr double kOperationsPerRange = 40000;

}  // namespace

double count_operations(const Stmt& body) {
  double total = 0, trips = 1;
  visit(
      body,
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
      },
      [&](const Ref<BufferStore>& store, Visitor& v) {
        total += trips * store->value.dtype().lanes;
        v.descend(store);
      },
      [&](const Ref<BufferLoad>& load, Visitor& v) {
        total += trips * Expr(load).dtype().lanes;
        v.descend(load);
      },
      [&](const Ref<Call>& call, Visitor& v) {
        total += trips * 10 * call->dtype.lanes;
        v.descend(call);
      },
      [&](const Ref<Mul>& e, Visitor& v) {
        total += trips * e->a.dtype().lanes;
        v.descend(e);
      });
  return total;
}

int64_t parallel_grain(const For& loop) {
  double each = std::max(count_operations(loop.body), 1.0);
  return static_cast<int64_t>(std::max(1.0, std::ceil(kOperationsPerRange / each)));
}

bool has_vector_code(const Stmt& body) {
  bool found = false;
  visit(
      body, [&](const Ref<BufferStore>& store) { found |= store->value.dtype().is_vector(); },
      [&](const Ref<BufferLoad>& load) { found |= Expr(load).dtype().is_vector(); });
  return found;
}

}  // namespace tilewright::codegen
