// Adapts a trace to an equal program whose blocks, buffers or function have other names.
//
//   recorded on a function main with the block C     get_block("C", "main")     get_block("C_local", "main")
//   for matmul, whose block is called prod           get_block("prod", "matmul")     get_block("prod_local", "matmul")
#pragma once

#include <string>

#include "ir/stmt.h"
#include "schedule/trace.h"

namespace tilewright::search {

/// The steps of a trace of the function `was` for an equal one, which stands in its module as `function`. Blocks
/// correspond by their places; what a step has called after a block or a buffer, with an ending after "_", follows it.
schedule::Trace renamed_trace(const schedule::Trace& trace, const Ref<PrimFunc>& was, const Ref<PrimFunc>& now,
                              const std::string& function);

/// The trace of the program `was` for the program `now`; unchanged where these are not two equal functions.
schedule::Trace as_named_in(const Ref<Module>& now, const Ref<Module>& was, const schedule::Trace& trace);

}  // namespace tilewright::search
