// Finds a data race: two iterations of a parallel loop that surely run, of which one writes an element that the other
// one accesses. A loop for which none is found may still have races.
//
//   for i in T.parallel(8):                iteration i = 0 writes A[1], iteration i = 1 reads it
//     A[i + 1] = A[i] + 1.0
//
// The search tries some iterations. Accesses that depend on data are not considered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::analysis {

struct RaceWitness {
  Ref<For> loop;
  std::string message;  ///< "block 'S' writes B[0] in iteration i = 1 of parallel loop 'i', and ..."
  NodeRef site, other;  ///< the accesses
};

/// Checks the parallel, vectorized and thread-bound loops of a function with planned allocations
/// (allocation_locations.h). Threads of one block have barriers between statements, so they race only where one
/// statement stores different values to one element. Lanes that all store to the same element do not count: lowering
/// makes such a loop serial.
std::optional<RaceWitness> find_race(const Ref<PrimFunc>& func, const std::string& name);

/// A parallel loop whose iterations are not proved to be independent, and why. Of nested thread-bound loops, only the
/// outermost one is listed, and only if data select the written elements. Other writes by threads are ordered by
/// barriers, and find_race() checks them.
struct UnprovedLoop {
  Ref<For> loop;
  std::string why;
};
std::vector<UnprovedLoop> unproved_parallel_loops(const Ref<PrimFunc>& func);

}  // namespace tilewright::analysis
