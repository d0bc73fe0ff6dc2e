// What the host has to know of kernels to launch them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "codegen/c_writer/c_writer.h"
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/traverse.h"

namespace tilewright::codegen {

int64_t dynamic_shared_bytes(const Stmt& kernel, const Dialect& dialect) {
  int64_t largest = 0;
  visit(kernel, [&](const Ref<Allocate>& allocate) {
    if (!scope_of(allocate->buffer_var).starts_with("shared")) return;
    largest = std::max(largest, const_int(allocate->extents[0]).value_or(0) * allocate->dtype.bytes());
  });
  return largest > dialect.max_static_shared_bytes() ? largest : 0;
}

std::string kernel_symbol(const std::string& name) {
  std::string symbol = "tw_";
  for (unsigned char c : name) {  // no two names have one symbol
    const bool is_plain = (std::isalnum(c) && c != 'Z') || c == '_';
    symbol += is_plain ? std::string(1, static_cast<char>(c)) : fmt::format("Z{:02X}", c);
  }
  return symbol;
}

std::vector<Ref<AssertStmt>> assertions_of(const Stmt& kernel) {
  std::vector<Ref<AssertStmt>> found;
  visit(kernel, [&](const Ref<AssertStmt>& assertion, Visitor& v) {
    found.push_back(assertion);
    v.descend(assertion);
  });
  return found;
}

}  // namespace tilewright::codegen
