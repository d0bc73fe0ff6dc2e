#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Unannotate {
  BlockOrLoop block_or_loop;
  std::string ann_key;
  using Members = Fields<&Unannotate::block_or_loop, &Unannotate::ann_key>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Remove an annotation.

Args:
    block_or_loop: what was annotated.
    ann_key: the key.)";
};

}  // namespace tilewright::schedule
