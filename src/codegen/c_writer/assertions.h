// Assertions inside kernels. The first thread whose assertion fails stores its number, and the number of its message,
// to the error word, two words of 64 bits in the memory of the device; the host reads them at its next wait
// (runtime/device_checks.c).
//
//   CUDA                                             OpenCL
//   if (!(condition)) {                              if (!(condition)) {
//     tw_fail(tw_error, tw_first + 2, value);          tw_fail(tw_error, tw_first + 2, value);
//     return;                                        } else {
//   }                                                  body
//   body                                             }
//
// No thread may miss a barrier of its block. So if the body has one, all threads of the block skip the body if the
// assertion fails on one of them. Such an assertion itself is reached by all threads, as its barriers are.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/c_writer/functions.h"

namespace tilewright::codegen {

class Assertions {
 public:
  Assertions(const Dialect& dialect, Functions& functions, const Stmt& kernel);

  /// Parameters behind those of the kernel, and lines at its begin; none without assertions.
  std::vector<std::string> parameters() const;
  std::vector<std::string> begin() const;

  struct Text {
    std::vector<std::string> lines;
    std::string head;  ///< of the branch that holds the body; empty: the body follows as it is
  };
  /// `condition` and `value`, the number of the message, are texts.
  Text write(const Ref<AssertStmt>& assertion, const std::string& condition, const std::string& value);

 private:
  bool is_empty() const { return numbers_.empty(); }
  /// Whether threads that fail have to wait at barriers, so that blocks need an array to agree.
  bool has_flags() const { return waiting_ > 0 && dialect_.any_of_block("").empty(); }
  static bool has_barrier(const Stmt& body);

  const Dialect& dialect_;
  Functions& functions_;
  std::unordered_map<NodeRef, int> numbers_;
  int waiting_ = 0;  ///< assertions with a barrier in their body
  int written_ = 0;  ///< of these
};

}  // namespace tilewright::codegen
