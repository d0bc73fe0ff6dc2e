#include "codegen/c_writer/assertions.h"

#include <fmt/format.h>

#include "ir/op.h"
#include "ir/traverse.h"

namespace tilewright::codegen {

Assertions::Assertions(const Dialect& dialect, Functions& functions, const Stmt& kernel)
    : dialect_(dialect), functions_(functions) {
  int number = 0;
  for (const Ref<AssertStmt>& assertion : assertions_of(kernel)) {
    numbers_.emplace(assertion, number++);
    waiting_ += has_barrier(assertion->body) ? 1 : 0;
  }
  if (is_empty()) return;
  functions_.add("tw_fail", fmt::format("void tw_fail({}int* error, int number, {} value) {{\n{}}}\n",
                                        dialect.address_space("global"), dialect.type(DataType::int_(64)),
                                        dialect.note_failure()));
}

bool Assertions::has_barrier(const Stmt& body) {
  return any_node(body, [](const Ref<Call>& call) { return intrinsic_of(*call) == Intrinsic::k_tvm_storage_sync; });
}

std::vector<std::string> Assertions::parameters() const {
  if (is_empty()) return {};
  const std::string first = "int tw_first";
  if (dialect_.has_addresses()) return {"int* tw_error", first};
  return {dialect_.address_space("global") + "char* tw_error_memory",
          dialect_.type(DataType::int_(64)) + " tw_error_offset", first};
}

std::vector<std::string> Assertions::begin() const {
  std::vector<std::string> lines;
  if (!is_empty() && !dialect_.has_addresses()) {
    lines.push_back(fmt::format("{0}int* tw_error = ({0}int*)(tw_error_memory + tw_error_offset);",
                                dialect_.address_space("global")));
  }
  if (!has_flags()) return lines;
  lines.push_back(dialect_.shared_array("int", "tw_failed", waiting_));
  std::string is_first;
  for (const char* axis : {"x", "y", "z"}) {
    is_first += (is_first.empty() ? "" : " && ") + dialect_.thread_index(fmt::format("threadIdx.{}", axis)) + " == 0";
  }
  lines.push_back(
      fmt::format("if ({}) for (int tw_i = 0; tw_i < {}; ++tw_i) tw_failed[tw_i] = 0;", is_first, waiting_));
  lines.push_back(dialect_.barrier(false));
  return lines;
}

Assertions::Text Assertions::write(const Ref<AssertStmt>& assertion, const std::string& condition,
                                   const std::string& value) {
  const std::string note = fmt::format("tw_fail(tw_error, tw_first + {}, {});", numbers_.at(assertion) + 1, value);
  const bool returns = !dialect_.any_of_block("").empty(), waits = has_barrier(assertion->body);
  if (!waits && returns) return {{fmt::format("if (!({})) {{ {} return; }}", condition, note)}, ""};
  if (!waits) return {{fmt::format("if (!({})) {{ {} }}", condition, note)}, "else"};
  const int which = written_++;
  if (returns) {
    const std::string failed = fmt::format("tw_failed_{}", which);
    return {{fmt::format("const bool {} = !({});", failed, condition), fmt::format("if ({}) {}", failed, note),
             fmt::format("if ({}) return;", dialect_.any_of_block(failed))},
            ""};
  }
  return {{fmt::format("if (!({})) {{ {} atomic_or(&tw_failed[{}], 1); }}", condition, note, which),
           dialect_.barrier(false)},
          fmt::format("if (tw_failed[{}] == 0)", which)};
}

}  // namespace tilewright::codegen
