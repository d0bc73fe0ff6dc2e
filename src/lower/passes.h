// All passes, in the order of pipeline.cc. Each is described at the top of its own file.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

PassResult lower_init_blocks(const Ref<PrimFunc>& func, PassContext& context);
PassResult inline_block_axes(const Ref<PrimFunc>& func, PassContext& context);
PassResult lower_blocks(const Ref<PrimFunc>& func, PassContext& context);
PassResult flatten_buffers(const Ref<PrimFunc>& func, PassContext& context);

}  // namespace tilewright::lower
