// Lower bounds of regions: what loops surely touch, all of it. The counterpart of relax_region() of int_set.h, which
// says what they touch at most.
#pragma once

#include "arith/int_set.h"
#include "arith/iter_map.h"

namespace tilewright::arith {

/// Whether an expression mentions one of the inputs.
bool uses_inputs(const Expr& e, const IterDomains& inputs);

/// e of an index c - e where only e moves with the inputs: what an iteration map, whose iterators grow, can understand.
/// Null for any other index.
Expr mirrored(const Expr& index, const IterDomains& inputs);

/// One of the terms of `e` is a multiple of the variable; not so where it only stands in quotients and remainders.
bool has_multiple(const Expr& e, const Ref<Var>& v);

/// The box of all points that `region` covers while the inputs run over their domains; nothing where the starts of the
/// region are no contiguous surjective iteration map. Where an input of which the region takes a multiple has no
/// iteration, the box is empty; for others that is left to the caller.
std::optional<Box> region_lower_bound(const Region& region, const IterDomains& inputs, const Expr& predicate,
                                      Analyzer& analyzer);

/// A box inside the union of both, as large as is easily seen: one of them where it holds the other, both joined where
/// they touch in one dimension and agree in the others; else the first.
Box unite_lower_bound(const Box& a, const Box& b, Analyzer& analyzer);

}  // namespace tilewright::arith
