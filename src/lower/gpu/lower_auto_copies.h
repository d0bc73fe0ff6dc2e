// A pass of the pipeline: see lower_auto_copies.cc.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

PassResult lower_auto_copies(const Ref<PrimFunc>& func, PassContext& context);

}  // namespace tilewright::lower
