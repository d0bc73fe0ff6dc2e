#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Tensorize {
  BlockOrLoop block_or_loop;
  std::string tensor_intrin;
  bool preserve_unit_iters = true;
  using Members = Fields<&Tensorize::block_or_loop, &Tensorize::tensor_intrin, &Tensorize::preserve_unit_iters>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr std::string_view kDoc = R"(Let a block be computed by a tensor intrinsic.

Args:
    block_or_loop: a block that computes what the description of the intrinsic says; a loop becomes one by blockize.
    tensor_intrin: the name under which the intrinsic is registered, see tilewright.TensorIntrin.
    preserve_unit_iters: as for blockize.)";
};

}  // namespace tilewright::schedule
