// Turns the declarations of blocks about buffer values (ir/buffer_domain.h) into facts of an analyzer.
//
//   for (const BufferDomain& domain : buffer_domains(block)) assume(analyzer, domain);
//   analyzer.can_prove(lt(indices[p], n));                                              // [0, n) was declared
#pragma once

#include "arith/analyzer.h"
#include "ir/buffer_domain.h"

namespace tilewright::arith {

/// Assumes the declaration about the elements of the buffer, and of other buffers on the same data, from now on.
/// Declarations reach an analyzer only through this function.
void assume(Analyzer& analyzer, const BufferDomain& domain);

}  // namespace tilewright::arith
