// Functions and modules.

#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "script/printer_state.h"

namespace tilewright::script {
namespace {

/// Attribute of the module that I.module_global_infos sets.
constexpr std::string_view kGlobalInfos = "global_infos";

std::string_view global_symbol(const PrimFunc& func) {
  const NodeRef symbol = func.attrs.get("global_symbol");
  const StringImm* name = symbol.as<StringImm>();
  return name ? std::string_view(name->value) : std::string_view();
}

bool has_block_realize(const Stmt& root) {
  bool found = false;
  visit(
      root, [&](const Ref<BlockRealize>&, Visitor&) { found = true; },
      [&](const Ref<SeqStmt>& seq, Visitor& v) {
        for (const Stmt& s : seq->seq) {
          if (!found) v(s);
        }
      },
      [&](const Ref<BufferStore>&, Visitor&) {}, [&](const Ref<Evaluate>&, Visitor&) {});
  return found;
}

}  // namespace

std::string Printer::func_name(const PrimFunc& func) const {
  if (!options_.name.empty()) return to_identifier(options_.name, "main");
  std::string_view symbol = global_symbol(func);
  return to_identifier(symbol, "main");
}

/// `A: T.Buffer(...)` instead of a handle and T.match_buffer: the handle is used nowhere else, and the memory is the
/// buffer's own.
bool Printer::is_sugared_param(const Ref<Var>& param, const Ref<Buffer>& buffer) const {
  if (!options_.syntax_sugar || shown_params_.contains(param.get()) || !is_simple(*buffer)) return false;
  const PrimType* type = param->type_annotation.as<PrimType>();
  return type && type->dtype.is_handle() && buffer->axes.empty() && !is_plain_structure(buffer) &&
         !is_defined(buffer) && !is_defined(buffer->data);
}

void Printer::func_header(const Ref<PrimFunc>& func, const std::string& name) {
  begin_line();
  text("@");
  tir(func->attrs.has("global_symbol") ? "prim_func\n" : "prim_func(private=True)\n");
  begin_line();
  text("def ");
  text(name);
  text("(");
  std::unordered_map<const NodeBase*, Ref<Buffer>> buffer_of;
  std::unordered_map<const NodeBase*, int> sharing;  // buffers on one pointer
  for (const auto& [param, buffer] : func->buffer_map) {
    buffer_of.emplace(param.get(), buffer);
    ++sharing[buffer->data.get()];
  }
  find_structures(func);
  std::vector<std::pair<Ref<Var>, Ref<Buffer>>> matches;
  list(func->params, [&](const Ref<Var>& param) {
    Marking mark(*this, param);
    Ref<Buffer> buffer = buffer_of[param.get()];
    if (buffer.defined() && sharing[buffer->data.get()] == 1 && is_sugared_param(param, buffer)) {
      hidden_params_.insert(param.get());
      std::string label = define_buffer(buffer);
      text(label + ": ");
      // The data variable is defined by this very call: the call must not name it.
      return buffer_call(buffer, label, {"Buffer", "", BufferRole::kParam}, true);
    }
    if (buffer.defined()) matches.emplace_back(param, buffer);
    text(define_var(param));
    text(": ");
    type(param->type_annotation);
  });
  text(")");
  const TupleType* nothing = func->ret_type.as<TupleType>();
  if (!nothing || !nothing->fields.empty()) {
    text(" -> ");
    type(func->ret_type);
  }
  text(":");
  end_line();
  ++indent_;
  mark_body();
  Annotations attrs = func->attrs;
  if (global_symbol(*func) == name) attrs.erase("global_symbol");
  if (!attrs.empty()) {
    begin_line();
    tir("func_attr(");
    annotations(attrs);
    text(")\n");
  }
  for (const auto& [param, buffer] : matches) {
    if (buffer->axes.empty() && !is_plain_structure(buffer))
      buffer_line(buffer, {"match_buffer", name_of(param), BufferRole::kMatch});
  }
  for (const Ref<Axis>& axis : func->axes) axis_line(axis);
  for (const auto& [param, buffer] : matches) {
    if (!buffer->axes.empty()) buffer_line(buffer, {"match_buffer", name_of(param), BufferRole::kMatch});
  }
  // Buffers on what is no parameter (ill-formed) show as well.
  for (const auto& [param, buffer] : func->buffer_map) {
    if (is_defined(buffer) || is_plain_structure(buffer)) continue;
    buffer_line(buffer, {"match_buffer", name_of(param), BufferRole::kMatch});
  }
  mark_body();
}

/// The root block that the parser adds by itself.
const Block* Printer::implicit_root(const Stmt& body) const {
  const BlockRealize* realize = body.as<BlockRealize>();
  if (!options_.syntax_sugar || !realize || !realize->iter_values.empty() || !is_true(realize->predicate))
    return nullptr;
  const Block& root = *realize->block;
  const size_t declared = (declares_domains(root.annotations) ? 1 : 0) + (declares_disjoint(root.annotations) ? 1 : 0);
  if (root.name_hint != "root" || root.annotations.entries().size() != declared || !root.match_buffers.empty() ||
      !root.reads.empty() || !root.writes.empty() || root.init.defined()) {
    return nullptr;
  }
  const BlockRealize* inner = root.body.as<BlockRealize>();
  bool needed = declared > 0 || !root.alloc_buffers.empty() ||
                (inner ? !inner->block->iter_vars.empty() : has_block_realize(root.body));
  return needed ? &root : nullptr;
}

void Printer::func_body(const PrimFunc& func) {
  size_t before = out_.size();
  if (const Block* root = implicit_root(func.body)) {
    begin_line();
    {
      Marking realize_mark(*this, func.body);
      Marking mark(*this, func.body.as<BlockRealize>()->block);
      text("# with ");
      tir("block(\"root\"):");
    }
    end_line();
    Marking realize_path(*this, func.body);
    realize_path.requests_.clear();
    Marking block_path(*this, func.body.as<BlockRealize>()->block);
    block_path.requests_.clear();
    for (const Ref<Buffer>& buffer : root->alloc_buffers) buffer_line(buffer, {"alloc_buffer", "", BufferRole::kAlloc});
    mark_body();
    buffer_domains(*root);
    stmt(root->body, true);
  } else {
    stmt(func.body, true);
  }
  if (out_.size() == before) {
    begin_line();
    text("pass\n");
  }
}

/// Prints the function. Returns false if it must be printed again, with the declarations that are now in shown_params_
/// and env_threads_.
bool Printer::prim_func_once(const Ref<PrimFunc>& func, const std::string& name) {
  needs_reprint_ = false;
  names_.forget_released();
  hidden_params_.clear();
  launched_.clear();
  Marking mark(*this, func);
  push_frame();
  int outer = std::exchange(base_frame_, static_cast<int>(frames_.size()) - 1);
  func_header(func, name);
  mark.end_here();
  func_body(*func);
  --indent_;
  pop_frame();
  base_frame_ = outer;
  return !needs_reprint_;
}

void Printer::prim_func(const Ref<PrimFunc>& func, const std::string& name) {
  size_t begin = out_.size(), insertions = insertions_.size(), marks = marks_.size();
  shown_params_.clear();
  env_threads_.clear();
  const bool outer = std::exchange(in_function_, true);
  while (!prim_func_once(func, name)) {
    out_.resize(begin);
    insertions_.resize(insertions);
    marks_.resize(marks);
  }
  in_function_ = outer;
}

std::string Printer::module_name() const { return to_identifier(options_.name, "Module"); }

void Printer::module(const Ref<Module>& module) {
  begin_line();
  text("@" + ir_ + "ir_module\n");
  begin_line();
  text("class " + module_name() + ":\n");
  ++indent_;
  const Module* outer = std::exchange(module_, &*module);
  Annotations attrs = module->attrs;
  const Dict* infos = attrs.get(kGlobalInfos).as<Dict>();
  if (infos) attrs.erase(kGlobalInfos);
  if (!attrs.empty()) {
    begin_line();
    text(ir_ + "module_attrs(");
    annotations(attrs);
    text(")\n");
  }
  if (infos) {
    begin_line();
    text(ir_ + "module_global_infos(");
    annotations(infos->items);
    text(")\n");
  }
  if (module->functions.empty() && module->attrs.empty()) {
    begin_line();
    text("pass\n");
  }
  bool first = true;
  for (const auto& [name, func] : module->functions) {
    if (!first) out_ += '\n';
    first = false;
    if (const Ref<PrimFunc> prim = func.cast<PrimFunc>(); prim.defined()) {
      prim_func(prim, to_identifier(name, "main"));
    } else {
      begin_line();
      text("# " + name + ": " + (func.defined() ? kind_name(func.kind()) : "None") + "\n");
    }
  }
  module_ = outer;
  --indent_;
}

}  // namespace tilewright::script
