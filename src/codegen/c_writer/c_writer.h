// Writes kernels in a language that looks like C. What languages differ in is a Dialect: OpenCL C is the first one.
//
// A value in the text has the type of its expression, except floats of fewer than 32 bits: they are values of float,
// rounded after each operation, and have their own form in memory only. An index is computed in 32 bits where its
// interval, and those of its parts, fit; else in 64.
//
// What an operation yields at its edges is that of docs/meaning.md: where the language leaves it open, the text calls a
// function that the writer adds in front.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/index_analysis.h"
#include "ir/op.h"
#include "support/result.h"

namespace tilewright::codegen {

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;
  /// Of a value: "int", "float"; of a bool, "bool".
  virtual std::string type(DataType type) const = 0;
  /// In front of a pointer to memory of the scope: "__global ".
  virtual std::string address_space(const std::string& scope) const = 0;
  /// The head of a kernel up to the opening brace. `threads`: of a block along x, y and z; 0: not known.
  virtual std::string kernel_head(const std::string& name, const std::vector<std::string>& parameters,
                                  const std::array<int64_t, 3>& threads) const = 0;
  /// The index along "blockIdx.x", as an int.
  virtual std::string thread_index(const std::string& tag) const = 0;
  /// A statement; `of_global`: what threads exchange is in main memory, too.
  virtual std::string barrier(bool of_global) const = 0;
  /// An array at the beginning of a kernel that the threads of a block share.
  virtual std::string shared_array(const std::string& type, const std::string& name, int64_t count) const = 0;
  /// The name of a function on floats; empty where there is none.
  virtual std::string_view math(Intrinsic intrinsic) const = 0;
  /// The bits of `value` as another type of the same size.
  virtual std::string reinterpret(DataType to, const std::string& value) const = 0;
  /// What the text begins with; `is_double`: it computes with doubles.
  virtual std::string prelude(bool is_double) const = 0;
};

/// The text of all kernels of a lowered module. ScriptError "codegen/not-on-device" names what the language does not
/// have.
Result<std::string> write_kernels(const Ref<Module>& lowered, const Dialect& dialect);
/// Names of kernels in the text, by their names in the module.
std::string kernel_symbol(const std::string& name);

/// OpenCL C 1.2 (codegen/opencl).
const Dialect& opencl_dialect();

}  // namespace tilewright::codegen
