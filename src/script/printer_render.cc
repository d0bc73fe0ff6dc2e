// Diagnostics shown in the program they are about.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "ir/traverse.h"
#include "script/printer.h"

namespace tilewright::script {
namespace {

constexpr int kContext = 2;
constexpr size_t kOpening = 12;  ///< lines of what is not in the program

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

/// Whether both are the same loop or block, in programs of which one was made from the other.
bool is_counterpart(const NodeRef& a, const NodeRef& b) {
  if (a == b) return true;
  if (const For* loop = a.as<For>()) return b.is<For>() && loop->loop_var == b.as<For>()->loop_var;
  const BlockRealize *mine = a.as<BlockRealize>(), *other = b.as<BlockRealize>();
  return mine && other && mine->block->id.value == other->block->id.value;
}

/// Returns the node of the program that corresponds to `wanted`: the node itself, or the same loop or block if a
/// diagnostic refers to the result of a refused step. Null if there is none.
NodeRef find_in(const NodeRef& program, const NodeRef& wanted) {
  NodeRef found;
  std::unordered_set<const NodeBase*> seen;
  std::function<void(const NodeRef&)> walk = [&](const NodeRef& node) {
    if (found == wanted || !seen.insert(node.get()).second) return;
    if (is_counterpart(node, wanted)) found = node;
    for_each_child(node, [&](const NodeRef& child, Role) { walk(child); });
  };
  if (program.defined()) with_stack_for(program.depth(), [&] { walk(program); });
  return found;
}

/// The text of what the program does not have: the lines that begin it.
std::string opening_of(const std::string& text) {
  size_t end = 0, lines = 0, all = 1 + static_cast<size_t>(std::ranges::count(text, '\n'));
  if (all <= kOpening + 1) return text;
  for (; lines < kOpening; ++lines) end = text.find('\n', end) + 1;
  return text.substr(0, end) + "(... " + std::to_string(all - lines) + " lines skipped ...)";
}

/// Returns the span of the diagnostic, or else of the first of its nodes that has one.
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
    if (NodeRef there = find_in(program, node); there.defined()) {
      options.obj_to_underline.push_back(there);
    } else {
      diagnostic.message += "\n  about:\n" + indented(opening_of(print(node)));
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

}  // namespace tilewright::script
