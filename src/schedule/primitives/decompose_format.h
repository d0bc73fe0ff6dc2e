#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct DecomposeFormat {
  std::string buffer;
  std::string format;
  std::vector<Factor> parameters;
  int64_t count = 0;
  std::string func_name;
  using Members = Fields<&DecomposeFormat::buffer, &DecomposeFormat::format, &DecomposeFormat::parameters,
                         &DecomposeFormat::count, &DecomposeFormat::func_name>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 3;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Store a sparse buffer in another format: one iteration for each rule.

What the rules update together is initialized once, by an iteration in front of them. Padding is skipped.
``tilewright.sparse.decomposition_of`` gives the rules and the arguments that the program takes.

SparseTIR, arXiv 2207.04606, section 3.2.1.

Args:
    buffer: its name.
    format: a function of ``tilewright.sparse.formats`` by name, such as "hyb".
    parameters: its arguments, integers or sampled values: the shape of the tensor first.
    count: how many rules there are, whatever is sampled; by default as many as the format has. Rules beyond those of
        the format take no nonzero.
    func_name: the function to rewrite; by default the one being worked on.

Returns:
    Handles of the iterations over the rules, in their order; for each iteration over the buffer as many as rules.)";
};

}  // namespace tilewright::schedule
