// Two iterations of a loop that surely meet: both run, and one writes an element that the other one touches.
//
//   for i in T.parallel(8):                iteration i = 0 writes A[1], iteration i = 1 reads it
//     A[i + 1] = A[i] + 1.0
//
// Found by trying some iterations of the loops; none found proves nothing. What depends on data is no witness.
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

/// Checks the parallel and vectorized loops of a function with planned allocations (allocation_locations.h), and those
/// bound to blocks and threads. Threads of one block wait for one another between statements: they meet where one
/// statement stores different values to one element. Lanes that all store to one element, whatever the lane, are no
/// witness: such a loop is made serial.
std::optional<RaceWitness> find_race(const Ref<PrimFunc>& func, const std::string& name);

/// A parallel loop whose iterations are not proved to be independent, and why. Of loops bound to blocks and threads
/// only the outermost one is listed, and only if data select the written elements: other writes by threads are ordered
/// by barriers, and find_race shows whether they conflict.
struct UnprovedLoop {
  Ref<For> loop;
  std::string why;
};
std::vector<UnprovedLoop> unproved_parallel_loops(const Ref<PrimFunc>& func);

}  // namespace tilewright::analysis
