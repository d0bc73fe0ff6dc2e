#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Annotate {
  BlockOrLoop block_or_loop;
  std::string ann_key;
  Value ann_val;
  using Members = Fields<&Annotate::block_or_loop, &Annotate::ann_key, &Annotate::ann_val>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Attach a value to a block or a loop.

Args:
    block_or_loop: what to annotate; of a sparse program an iteration, whose blocks will have the annotation.
    ann_key: the key; it must be free.
    ann_val: a string, an integer, a float, a sampled value, a list or a dict of these.)";
};

}  // namespace tilewright::schedule
