// Writes instructions that have no operator in C: steps on fragments, steps of warps, asynchronous copies.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>

#include "codegen/c_writer/functions.h"

namespace tilewright::codegen {

/// How the writer of a kernel spells what instructions are about.
struct Spellings {
  std::function<std::string(const Ref<Var>&)> name;
  std::function<std::string(const Expr&)> index, value;
  std::function<std::string(DataType)> storage;  ///< a type in memory
};

class Instructions {
 public:
  Instructions(const Dialect& dialect, Functions& functions, const Stmt& kernel, Spellings spellings);

  /// Whether the value is such an instruction.
  static bool holds(const Expr& value);
  /// The statement. Codes of errors: codegen/not-on-device, codegen/fragment-stride.
  Result<std::string> statement(const Ref<Call>& call);
  const Fragments& fragments() const { return fragments_; }
  /// Whether a variable decides which registers an instruction uses. They cannot be selected at run time.
  bool selects_registers(const Ref<Var>& v) const { return selectors_.contains(v); }

 private:
  Result<std::string> fragment_step(const Ref<Call>& call);
  Result<std::string> async_step(const Ref<Call>& call);
  Result<std::string> warp_step(const Ref<Call>& call);
  Diagnostic not_there(const Ref<Call>& call, const std::string& why, const std::string& hint) const;
  static Diagnostic wrong_rows(const Ref<Call>& call, const std::string& which);

  const Dialect& dialect_;
  Functions& functions_;
  Fragments fragments_;
  std::unordered_set<NodeRef> selectors_;
  Spellings text_;
};

/// Without parentheses around all of it.
std::string without_parentheses(const std::string& text);

}  // namespace tilewright::codegen
