// An error before it is formatted as text.
//
// A Diagnostic travels inside Result<T> (or, at the boundary only, inside Exception). The blame says whose mistake it
// is and decides the Python class; the code ("split/P1") names the rule and is what tests and counters look at.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/span.h"

namespace tilewright {

enum class Blame {
  kScript,    ///< the text the user wrote
  kSchedule,  ///< a precondition of a schedule primitive
  kArgument,  ///< arguments of a function or a kernel
  kResource,  ///< a file, a database, memory, a helper process, a deadline
  kInternal,  ///< a defect of Tilewright
};

std::string_view blame_name(Blame blame);

using ObjectPtr = std::shared_ptr<const void>;

struct Diagnostic {
  Blame blame = Blame::kInternal;
  std::string code;     ///< "split/P1"; empty only for plain argument errors of the Python layer
  std::string message;  ///< observation and the rule it breaks, one or two sentences
  std::string hint;     ///< advice; may be empty
  SpanId span = 0;      ///< the user's own text, when known
  /// IR nodes the message is about, kept alive; `script` underlines them when it renders the program. The pointers are
  /// `const NodeBase*` of ir/node.h.
  std::vector<ObjectPtr> nodes;
  std::string rendered;  ///< the whole text with the program, where a boundary that knows the program has made it

  /// "code: message\n  hint: ..." with the source line and carets when `span` is known.
  std::string render() const;
};

Diagnostic script_error(std::string code, std::string message, std::string hint = {});
Diagnostic schedule_error(std::string code, std::string message, std::string hint = {});
Diagnostic argument_error(std::string code, std::string message, std::string hint = {});
Diagnostic resource_error(std::string code, std::string message, std::string hint = {});
Diagnostic internal_error(std::string code, std::string message, std::string hint = {});

/// The only C++ exception. Thrown at boundaries (constructors called by user code, the binding), never as control flow.
class Exception : public std::exception {
 public:
  explicit Exception(Diagnostic diagnostic);
  const char* what() const noexcept override { return text_.c_str(); }
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
  std::string text_;
};

/// A broken invariant of ours: throws Exception with Blame::kInternal, expression, file and line.
[[noreturn]] void fail_check(const char* expression, const char* file, int line, const std::string& values);

#define TW_CHECK(condition, ...)                                                            \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::tilewright::fail_check(#condition, __FILE__, __LINE__, ::std::string{__VA_ARGS__}); \
  } while (false)

}  // namespace tilewright
