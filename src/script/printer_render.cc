// Diagnostics shown in the program they are about.
#include <functional>
#include <unordered_set>

#include "ir/traverse.h"
#include "script/printer.h"

namespace tilewright::script {
namespace {

constexpr int kContext = 2;

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

bool contains(const NodeRef& program, const NodeRef& wanted) {
  bool found = false;
  std::unordered_set<const NodeBase*> seen;
  std::function<void(const NodeRef&)> walk = [&](const NodeRef& node) {
    found = found || node == wanted;
    if (found || !seen.insert(node.get()).second) return;
    for_each_child(node, [&](const NodeRef& child, Role) { walk(child); });
  };
  if (program.defined()) with_stack_for(program.depth(), [&] { walk(program); });
  return found;
}

/// Where the user wrote the node, unless the diagnostic points at a place itself.
SpanId span_for(const Diagnostic& diagnostic) {
  if (diagnostic.span != 0) return diagnostic.span;
  for (const ObjectPtr& object : diagnostic.nodes) {
    NodeRef node = kept(object);
    if (node.defined() && node.span() != 0) return node.span();
  }
  return 0;
}

}  // namespace

Diagnostic located(Diagnostic diagnostic, const NodeRef& program) {
  diagnostic.span = span_for(diagnostic);
  PrintOptions options;
  options.print_line_numbers = true;
  options.num_context_lines = kContext;
  for (const ObjectPtr& object : diagnostic.nodes) {
    NodeRef node = kept(object);
    if (!node.defined()) continue;
    if (contains(program, node)) {
      options.obj_to_underline.push_back(node);
    } else {
      diagnostic.message += "\n  about:\n" + indented(print(node));
    }
  }
  if (!options.obj_to_underline.empty()) {
    diagnostic.message += "\n  in the program:\n" + indented(print(program, options));
  }
  diagnostic.nodes.clear();
  return diagnostic;
}

Diagnostic with_excerpt(Diagnostic diagnostic, const NodeRef& program) {
  diagnostic.span = span_for(diagnostic);
  bool shown = diagnostic.span != 0 && render_span(diagnostic.span).find('\n') != std::string::npos;
  return shown ? diagnostic : located(std::move(diagnostic), program);
}

std::string render(const Diagnostic& diagnostic, const NodeRef& program) {
  return located(diagnostic, program).render();
}

}  // namespace tilewright::script
