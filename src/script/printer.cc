#include "script/printer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "ir/kind_cases.h"
#include "ir/traverse.h"
#include "script/diff_text.h"
#include "script/path_walk.h"
#include "script/printer_state.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

/// Python accepts no more levels of indentation. Deeper lines are not indented further, so that the text stays linear
/// in the size of the program.
constexpr int kMaxIndent = 99;

}  // namespace

// ---- text ------------------------------------------------------------------------------------------------------

Printer::Printer(const PrintOptions& options)
    : options_(options),
      tir_((is_identifier(options.tir_prefix) ? options.tir_prefix : "T") + "."),
      ir_((is_identifier(options.ir_prefix) ? options.ir_prefix : "I") + "."),
      buffer_dtype_(DataType::parse(options.buffer_dtype)),
      int_dtype_(DataType::parse(options.int_dtype)),
      float_dtype_(DataType::parse(options.float_dtype)) {
  out_.reserve(1024);
  frames_.push_back({0, 0, {}});
  names_.take(tir_.substr(0, tir_.size() - 1), "T");
  for (std::string_view used : {"range", "metadata"}) names_.take(used, "");
  if (!options.module_alias.empty()) names_.take(options.module_alias, "cls");
}

void Printer::begin_line() {
  line_start_ = out_.size();
  out_.append(static_cast<size_t>(std::clamp(options_.indent_spaces, 1, 16)) * std::min(indent_, kMaxIndent), ' ');
}

void Printer::number(int64_t value) {
  char digits[24];
  auto result = std::to_chars(digits, digits + sizeof digits, value);
  out_.append(digits, result.ptr);
}

void Printer::string_literal(std::string_view value) {
  out_ += '"';
  for (size_t i = 0; i < value.size(); ++i) {
    auto c = static_cast<unsigned char>(value[i]);
    // A whole character of UTF-8 passes as it is; a stray byte could not be decoded by the reader.
    size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 1;
    if (length > 1 && i + length <= value.size()) {
      bool whole = true;
      for (size_t j = 1; j < length; ++j) whole &= (static_cast<unsigned char>(value[i + j]) & 0xC0) == 0x80;
      if (whole) {
        out_ += value.substr(i, length);
        i += length - 1;
        continue;
      }
    }
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += value[i];
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c == '\t') {
      out_ += "\\t";
    } else if (c == '\r') {
      out_ += "\\r";
    } else if (c < 0x20 || c >= 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
      out_ += escaped;
    } else {
      out_ += value[i];
    }
  }
  out_ += '"';
}

void Printer::insert_line(size_t at, int indent, const std::string& line) {
  std::string whole(static_cast<size_t>(std::clamp(options_.indent_spaces, 1, 16)) * std::min(indent, kMaxIndent), ' ');
  insertions_.push_back({at, whole + line + "\n"});
}

// ---- scopes and names ------------------------------------------------------------------------------------------

void Printer::push_frame() { frames_.push_back({out_.size(), indent_, {}}); }

void Printer::pop_frame() {
  std::vector<Undo>& undo = frames_.back().undo;
  for (Undo& last : reversed(undo)) {
    if (last.before) {
      entries_[last.node] = std::move(*last.before);
    } else if (last.node) {
      entries_.erase(last.node);
    }
    if (!last.name.empty()) names_.release(last.name);
  }
  frames_.pop_back();
}

void Printer::define(const NodeRef& node, std::string text, std::string name, int frame) {
  Undo undo{node.get(), std::nullopt, std::move(name)};
  auto [it, fresh] = entries_.try_emplace(node.get());
  if (!fresh) undo.before = std::move(it->second);
  it->second = {std::move(text), frame};
  frames_[frame].undo.push_back(std::move(undo));
}

std::string Printer::with_address(std::string_view hint, const NodeRef& node) const {
  if (!options_.show_object_address) return std::string(hint);
  char address[24];
  std::snprintf(address, sizeof address, "_0x%zx", reinterpret_cast<size_t>(node.get()));
  return std::string(hint) + address;
}

const std::string& Printer::define_var(const Ref<Var>& var) {
  const std::string& name = names_.take(with_address(var->name_hint, var), "v");
  define(var, name, name, static_cast<int>(frames_.size()) - 1);
  return entries_[var.get()].text;
}

const std::string& Printer::define_buffer(const Ref<Buffer>& buffer) {
  const std::string& name = names_.take(with_address(buffer->name, buffer), "buffer");
  int frame = static_cast<int>(frames_.size()) - 1;
  define(buffer, name, name, frame);
  if (!is_defined(buffer->data)) define(buffer->data, name + ".data", "", frame);
  return entries_[buffer.get()].text;
}

const std::string& Printer::name_of(const Ref<Var>& var) {
  if (auto* entry = find_value(entries_, var.get())) return entry->text;
  if (hidden_params_.contains(var.get())) {
    shown_params_.insert(var.get());
    needs_reprint_ = true;
  }
  if (launched_.contains(var.get())) {
    env_threads_.insert(var.get());
    needs_reprint_ = true;
  }
  declare_free(var);
  return entries_.at(var.get()).text;
}

const std::string& Printer::name_of(const Ref<Buffer>& buffer) {
  if (auto* entry = find_value(entries_, buffer.get())) return entry->text;
  declare_free(buffer);
  return entries_.at(buffer.get()).text;
}

void Printer::declare_free(const Ref<Var>& var) {
  const std::string& name = names_.take_unused(with_address(var->name_hint, var), "v");
  define(var, name, name, base_frame_);
  const Frame& frame = frames_[base_frame_];
  insert_line(frame.body, frame.indent, name + " = " + captured([&] { var_creation(var); }));
}

void Printer::declare_free(const Ref<Buffer>& buffer) {
  int frame = frame_of(buffer);
  const std::string& name = names_.take_unused(with_address(buffer->name, buffer), "buffer");
  define(buffer, name, name, frame);
  std::string line = captured([&] {
    text(name);
    text(" = ");
    buffer_call(buffer, name, {"Buffer", "", BufferRole::kFree});
  });
  if (!is_defined(buffer->data)) define(buffer->data, name + ".data", "", frame);
  insert_line(frames_[frame].body, frames_[frame].indent, line);
}

void Printer::declare_before_line(const Ref<Var>& var) {
  const std::string& name = names_.take(with_address(var->name_hint, var), "v");
  define(var, name, name, static_cast<int>(frames_.size()) - 1);
  insert_line(line_start_, indent_, name + " = " + captured([&] { var_creation(var); }));
}

int Printer::frame_of(const NodeRef& node) {
  int frame = base_frame_;
  for_each_child(node, [&](const NodeRef& child, Role) {
    visit(child, [&](const Ref<Var>& var) {
      if (auto* entry = find_value(entries_, var.get())) frame = std::max(frame, entry->frame);
    });
  });
  return frame;
}

// ---- marks -----------------------------------------------------------------------------------------------------

void Printer::add_targets(const NodeRef& root) {
  auto add_path = [&](const NodePath& path, bool underline, std::string note) {
    targets_.push_back({nodes_along(root, path), 0, underline, std::move(note)});
  };
  auto add_object = [&](const NodeRef& node, bool underline, std::string note) {
    if (node.defined()) targets_.push_back({{node.get()}, 0, underline, std::move(note)});
  };
  for (const NodePath& path : options_.path_to_underline) add_path(path, true, "");
  for (const auto& [path, note] : options_.path_to_annotate) add_path(path, false, note);
  for (const NodeRef& node : options_.obj_to_underline) add_object(node, true, "");
  for (const auto& [node, note] : options_.obj_to_annotate) add_object(node, false, note);
  tracking_ = !targets_.empty();
}

void Printer::open_mark(const NodeRef& node, Marking& marking) {
  marking.begin_ = out_.size();
  for (Target& target : targets_) {
    marking.progress_.push_back(target.reached);
    // Skips nodes of the chain that print no text of their own.
    auto from = target.chain.begin() + static_cast<std::ptrdiff_t>(target.reached);
    auto it = std::find(from, target.chain.end(), node.get());
    if (it == target.chain.end()) continue;
    target.reached = it - target.chain.begin() + 1;
    if (target.reached == target.chain.size()) marking.requests_.emplace_back(target.underline, target.note);
  }
}

void Printer::close_mark(Marking& marking) {
  for (size_t i : indices_of(marking.progress_)) targets_[i].reached = marking.progress_[i];
  size_t end = marking.ended_ != 0 ? marking.ended_ : out_.size();
  if (end == marking.begin_) return;
  for (auto& [underline, note] : marking.requests_) marks_.push_back({marking.begin_, end, underline, std::move(note)});
}

// ---- roots -----------------------------------------------------------------------------------------------------

void Printer::inline_node(const NodeRef& node) {
  if (!node.defined()) return text("None");
  switch (node.kind()) {
    case Kind::kPrimType:
    case Kind::kPointerType:
    case Kind::kTupleType:
      return type(static_cast<const Type&>(node));
    case Kind::kAxis:
      return axis_name(node.borrow<Axis>());
    case Kind::kRange:
      return range(*node.as<Range>());
    case Kind::kIterVar:
      return iter_var(*node.as<IterVar>());
    case Kind::kBuffer:
      return text(name_of(node.borrow<Buffer>()));
    case Kind::kBufferRegion:
      return region(*node.as<BufferRegion>());
    case Kind::kIndexMap:
      return index_map(*node.as<IndexMap>());
    case Kind::kList:
      out_ += '[';
      without_slices([&] { list(node.as<List>()->items, [&](const NodeRef& item) { inline_node(item); }); });
      out_ += ']';
      return;
    case Kind::kDict:
      return annotations(node.as<Dict>()->items);
    case Kind::kTensorData:
      return tensor_data(node.borrow<TensorData>());
#define X TW_CASE_OF_EXPR
#include "ir/kinds.def"
#undef X
      return expr(static_cast<const Expr&>(node));
    // These have no inline form: print their kind.
    case Kind::kPrimFunc:
    case Kind::kModule:
    case Kind::kMatchBufferRegion:
    case Kind::kSpIterVar:
#define X TW_CASE_OF_STMT
#include "ir/kinds.def"
#undef X
      text("<");
      text(kind_name(node.kind()));
      text(">");
  }
}

void Printer::root(const NodeRef& node) {
  if (!node.defined()) return text("None");
  if (node.is<Module>()) return module(node.borrow<Module>());
  if (node.is<PrimFunc>()) return prim_func(node.borrow<PrimFunc>(), func_name(*node.as<PrimFunc>()));
  if (const MatchBufferRegion* match = node.as<MatchBufferRegion>()) {
    line_start_ = out_.size();
    std::string source = captured([&] { region(*match->source); });
    return buffer_line(match->buffer, {"match_buffer", source, BufferRole::kMatch});
  }
  if (node.sort() == Sort::kStmt) return stmt(static_cast<const Stmt&>(node), false);
  begin_line();
  Marking mark(*this, node);
  inline_node(node);
  end_line();
  if (!options_.verbose_expr) insertions_.clear();
}

/// Whether the program has sparse axes. These are often named I, so the prefix I is not reserved then.
static bool has_axes(const NodeRef& node) {
  if (const PrimFunc* func = node.as<PrimFunc>()) return !func->axes.empty();
  const Module* module = node.as<Module>();
  return module && any_of(module->functions, [](const auto& entry) { return has_axes(entry.second); });
}

std::string Printer::run(const NodeRef& node) {
  if (!has_axes(node)) names_.take(ir_.substr(0, ir_.size() - 1), "I");
  add_targets(node);
  bool is_program = node.is<PrimFunc>() || node.is<Module>();
  if (is_program) {
    const std::string package = options_.package.empty() ? "tilewright" : options_.package;
    if (node.is<Module>()) text("# from " + package + ".script import ir as " + ir_.substr(0, ir_.size() - 1) + "\n");
    text("# from " + package + ".script import tir as " + tir_.substr(0, tir_.size() - 1) + "\n\n");
  }
  size_t head = out_.size();
  root(node);
  if (!metadata_.empty()) insertions_.insert(insertions_.begin(), {head, metadata_lines()});
  return finish_text(std::move(out_), std::move(insertions_), std::move(marks_),
                     {options_.print_line_numbers, options_.num_context_lines});
}

// ---- interface -------------------------------------------------------------------------------------------------

std::optional<Diagnostic> find_invalid(const PrintOptions& options) {
  for (const std::string& prefix : {options.ir_prefix, options.tir_prefix}) {
    if (!is_identifier(prefix)) {
      return argument_error("print/prefix", "the prefix '" + prefix + "' is not a Python identifier",
                            "use a name such as T or I");
    }
  }
  for (const std::string& dtype : {options.buffer_dtype, options.int_dtype, options.float_dtype}) {
    if (!DataType::parse(dtype)) {
      return argument_error("print/dtype", "'" + dtype + "' is not a data type", "use a name such as int32 or float32");
    }
  }
  if (options.indent_spaces < 1 || options.indent_spaces > 16) {
    return argument_error("print/indent", "an indentation of " + std::to_string(options.indent_spaces) + " spaces",
                          "use 1 to 16");
  }
  return std::nullopt;
}

std::string print(const NodeRef& node, const PrintOptions& options) {
  std::string result;
  with_stack_for(node.depth(), [&] { result = Printer(options).run(node); });
  return result;
}

std::string diff(const NodeRef& lhs, const NodeRef& rhs) {
  PrintOptions options;
  options.verbose_expr = true;
  return diff_text(print(lhs, options), print(rhs, options));
}

}  // namespace tilewright::script
