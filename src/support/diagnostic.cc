#include "support/diagnostic.h"

#include "support/raised_codes.h"

namespace tilewright {

std::string_view blame_name(Blame blame) {
  switch (blame) {
    case Blame::kScript:
      return "ScriptError";
    case Blame::kSchedule:
      return "ScheduleError";
    case Blame::kArgument:
      return "ArgumentError";
    case Blame::kResource:
      return "ResourceError";
    case Blame::kInternal:
      return "InternalError";
  }
  return "InternalError";
}

std::string Diagnostic::render() const {
  if (!rendered.empty()) return rendered;
  std::string text;
  if (!code.empty()) text += "[" + code + "] ";
  text += message;
  if (span != 0) {
    std::string where = render_span(span);
    if (!where.empty()) text += "\n" + where;
  }
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}

namespace {
Diagnostic make_diagnostic(Blame blame, std::string code, std::string message, std::string hint) {
  note_raised(code);
  Diagnostic d;
  d.blame = blame;
  d.code = std::move(code);
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}
}  // namespace

Diagnostic script_error(std::string code, std::string message, std::string hint) {
  Diagnostic d = make_diagnostic(Blame::kScript, std::move(code), std::move(message), std::move(hint));
  d.span = current_span();
  return d;
}
Diagnostic schedule_error(std::string code, std::string message, std::string hint) {
  return make_diagnostic(Blame::kSchedule, std::move(code), std::move(message), std::move(hint));
}
Diagnostic argument_error(std::string code, std::string message, std::string hint) {
  return make_diagnostic(Blame::kArgument, std::move(code), std::move(message), std::move(hint));
}
Diagnostic resource_error(std::string code, std::string message, std::string hint) {
  return make_diagnostic(Blame::kResource, std::move(code), std::move(message), std::move(hint));
}
Diagnostic internal_error(std::string code, std::string message, std::string hint) {
  return make_diagnostic(Blame::kInternal, std::move(code), std::move(message), std::move(hint));
}

Exception::Exception(Diagnostic diagnostic) : diagnostic_(std::move(diagnostic)), text_(diagnostic_.render()) {}

void fail_check(const char* expression, const char* file, int line, const std::string& values) {
  std::string message =
      std::string("a check of Tilewright's own failed: ") + expression + " at " + file + ":" + std::to_string(line);
  if (!values.empty()) message += " (" + values + ")";
  throw Exception(internal_error("internal/check", message, "this is a defect of Tilewright, please report it"));
}

}  // namespace tilewright
