// Whether a program touches only what is there and what its blocks say: what ir/verify.h cannot decide without
// reasoning about loops.
//
//   verify/reads, verify/writes   an access outside of the regions that its block declares, by some iteration that
//                                 provably runs. An index that depends on data must be proved in bounds, unless
//                                 data also decide whether the access happens at all. Whoever relies on declared
//                                 regions asks BlockFacts, for which such a block touches more than it declares.
//   verify/bounds                 an access outside of its buffer, by some iteration that provably runs
//   verify/axis-bounds            an axis bound to a value outside of its domain, by some iteration that provably runs
//   verify/init                   a block whose init sets the same elements for all values of a spatial axis
//
// Programs for which neither can be proved are accepted. The program must be one that ir/verify.h accepts.
#pragma once

#include "ir/node.h"
#include "support/result.h"

namespace tilewright::analysis {

/// The first rule that a module, function or statement breaks.
Status verify_accesses(const NodeRef& node);

}  // namespace tilewright::analysis
