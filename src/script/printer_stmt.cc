// Statements except blocks.

#include "ir/build.h"
#include "ir/kind_cases.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "script/interval.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {

void Printer::end_header() {
  if (statement_mark_) statement_mark_->end_here();
  end_line();
}

void Printer::body(const Stmt& s) {
  ++indent_;
  push_frame();
  size_t before = out_.size();
  stmt(s, true);
  if (out_.size() == before) {
    begin_line();
    text("pass\n");
  }
  pop_frame();
  --indent_;
}

template <class Call, class Bind>
void Printer::scope(bool concise, std::string_view lhs, std::string_view name, Call&& call, Bind&& bind,
                    const Stmt& rest) {
  begin_line();
  if (concise) {
    if (!lhs.empty()) {
      text(lhs);
      text(" = ");
    }
    call();
  } else {
    text("with ");
    call();
    if (!name.empty()) {
      text(" as ");
      text(name);
    }
    text(":");
    ++indent_;
  }
  end_header();
  bind();
  mark_body();
  size_t before = out_.size();
  stmt(rest, true);
  if (out_.size() == before && !concise) {
    begin_line();
    text("pass\n");
  }
  if (!concise) --indent_;
  pop_frame();
}

// ---- loops -----------------------------------------------------------------------------------------------------

namespace {

bool fits_grid(const For& loop) {
  return loop.kind == ForKind::kSerial && is_zero_literal(loop.min) && loop.annotations.empty();
}

std::string_view loop_function(const For& loop) {
  switch (loop.kind) {
    case ForKind::kSerial:
      return "serial";
    case ForKind::kParallel:
      return "parallel";
    case ForKind::kVectorized:
      return "vectorized";
    case ForKind::kUnrolled:
      return "unroll";
    case ForKind::kThreadBinding:
      return "thread_binding";
  }
  return "serial";
}

/// Returns the call that `return` makes.
const Call* as_return(const Expr& value) {
  const Call* call = value.as<Call>();
  const Op* op = call ? call->op.as<Op>() : nullptr;
  bool fits = op && op->name == "tir.ret" && call->args.size() == 1 && call->args[0].sort() == Sort::kExpr;
  return fits ? call : nullptr;
}

}  // namespace

bool Printer::grid(const Ref<For>& loop) {
  std::vector<Ref<For>> nest;
  for (Stmt s = loop; s.is<For>(); s = nest.back()->body) {
    const For& inner = *s.as<For>();
    if (!fits_grid(inner)) break;
    // An extent that depends on a loop of the grid ends it. A constant does not, and is the usual case.
    bool dependent = !inner.extent.is<IntImm>() && uses_any_var(inner.extent, [&](const Ref<Var>& var) {
      return any_of(nest, [&](const Ref<For>& l) { return l->loop_var == var; });
    });
    if (dependent) break;
    nest.push_back(s.cast<For>());
  }
  if (nest.size() < 2) return false;
  if (statement_mark_) statement_mark_->forget();
  push_frame();
  begin_line();
  // The extents are printed before the variables are in scope.
  std::vector<std::pair<size_t, size_t>> names;
  std::vector<std::string> taken;
  text("for ");
  list(nest, [&](const Ref<For>& l) {
    taken.push_back(names_.take(with_address(l->loop_var->name_hint, l->loop_var), "v"));
    Marking mark(*this, l);
    Marking var_mark(*this, l->loop_var);
    text(taken.back());
  });
  text(" in ");
  tir("grid(");
  list(nest, [&](const Ref<For>& l) {
    Marking mark(*this, l);
    expr(l->extent);
  });
  text("):");
  end_line();
  for (size_t i : indices_of(nest)) {
    define(nest[i]->loop_var, taken[i], taken[i], static_cast<int>(frames_.size()) - 1);
    loops_[nest[i]->loop_var.get()] = &*nest[i];
  }
  body(nest.back()->body);
  for (const Ref<For>& l : nest) loops_.erase(l->loop_var.get());
  pop_frame();
  return true;
}

void Printer::loop_header(const For& loop) {
  bool plain = loop.kind == ForKind::kSerial && loop.annotations.empty();
  if (plain) {
    text("range(");
  } else {
    tir(loop_function(loop));
    out_ += '(';
  }
  if (is_zero_literal(loop.min)) {
    expr(loop.extent);
  } else {
    bounds(loop.min, loop.extent, ", ");
  }
  if (loop.thread_binding.defined()) {
    text(", thread=");
    string_literal(loop.thread_binding->thread_tag);
  }
  if (!loop.annotations.empty()) {
    text(", annotations=");
    annotations(loop.annotations);
  }
  text("):");
}

void Printer::for_loop(const Ref<For>& loop) {
  if (options_.syntax_sugar && fits_grid(*loop) && loop->body.is<For>() && grid(loop)) return;
  push_frame();
  begin_line();
  text("for ");
  const std::string& name = names_.take(with_address(loop->loop_var->name_hint, loop->loop_var), "v");
  {
    Marking mark(*this, loop->loop_var);
    text(name);
  }
  text(" in ");
  loop_header(*loop);
  end_header();
  define(loop->loop_var, name, name, static_cast<int>(frames_.size()) - 1);
  loops_[loop->loop_var.get()] = &*loop;
  body(loop->body);
  loops_.erase(loop->loop_var.get());
  pop_frame();
}

void Printer::while_loop(const While& loop) {
  begin_line();
  text("while ");
  expr(loop.condition);
  text(":");
  end_header();
  body(loop.body);
}

void Printer::if_then_else(const IfThenElse& branch) {
  begin_line();
  text("if ");
  expr(branch.condition);
  text(":");
  end_header();
  body(branch.then_case);
  if (!branch.else_case.defined()) return;
  begin_line();
  text("else:\n");
  body(branch.else_case);
}

// ---- scopes ----------------------------------------------------------------------------------------------------

void Printer::let_stmt(const LetStmt& let, bool concise) {
  push_frame();
  // A variable that a plain binding would not create again is declared in front.
  bool usual = !let.var->is_size && (let.var->type_annotation.is<PrimType>() || concise);
  line_start_ = out_.size();
  if (!usual && !is_defined(let.var)) declare_before_line(let.var);
  std::string name, lhs;
  if (usual) {
    name = names_.take(with_address(let.var->name_hint, let.var), "v");
    lhs = name + ": " + captured([&] { type(let.var->type_annotation); });
  } else {
    concise = false;
  }
  scope(
      concise, lhs, name,
      [&] {
        if (concise) return expr(let.value);
        tir("LetStmt(");
        expr(let.value);
        if (!usual) text(", var=" + name_of(let.var));
        text(")");
      },
      [&] {
        if (usual) define(let.var, name, name, static_cast<int>(frames_.size()) - 1);
      },
      let.body);
}

bool Printer::launch_thread(const AttrStmt& attr, bool concise) {
  const IterVar* thread = attr.node.as<IterVar>();
  bool is_virtual = attr.attr_key == "virtual_thread";
  if (!thread || (attr.attr_key != "thread_extent" && !is_virtual)) return false;
  if (thread->iter_type != IterType::kThreadIndex || thread->thread_tag.starts_with("vthread") != is_virtual)
    return false;
  if (!attr.value.defined() || attr.value.sort() != Sort::kExpr) return false;
  const auto& extent = static_cast<const Expr&>(attr.value);
  // T.launch_thread makes an axis with exactly this domain. Other axes are printed as attributes.
  if (!thread->dom.defined() || !is_zero_literal(thread->dom->min) || !same_expr(thread->dom->extent, extent))
    return false;
  push_frame();
  bool named = is_defined(thread->var);
  if (!named && launched_.contains(thread->var.get())) {
    env_threads_.insert(thread->var.get());
    needs_reprint_ = true;
  }
  if (!named && env_threads_.contains(thread->var.get())) {
    const std::string& name = names_.take_unused(with_address(thread->var->name_hint, thread->var), "v");
    define(thread->var, name, name, base_frame_);
    std::string line = captured([&] {
      text(name + " = ");
      tir("env_thread(");
      string_literal(thread->thread_tag);
      if (thread->var.dtype() != DataType::int_(32)) {
        text(", ");
        dtype_string(thread->var.dtype());
      }
      text(")");
    });
    insert_line(frames_[base_frame_].body, frames_[base_frame_].indent, line);
    named = true;
  }
  std::string name = named ? "" : names_.take(with_address(thread->var->name_hint, thread->var), "v");
  scope(
      concise, name, name,
      [&] {
        tir("launch_thread(");
        if (named) {
          text(name_of(thread->var));
        } else {
          string_literal(thread->thread_tag);
        }
        text(", ");
        expr(extent);
        text(")");
      },
      [&] {
        if (named) return;
        launched_.insert(thread->var.get());
        define(thread->var, name, name, static_cast<int>(frames_.size()) - 1);
      },
      attr.body);
  return true;
}

void Printer::attr_stmt(const AttrStmt& attr, bool concise) {
  if (launch_thread(attr, concise)) return;
  const BufferRealize* realized = attr.body.as<BufferRealize>();
  if (realized && attr.attr_key == "realize_scope" && attr.node == realized->buffer && attr.value.is<StringImm>()) {
    return realize(*realized, attr.value.as<StringImm>(), concise);
  }
  push_frame();
  scope(
      concise, "", "",
      [&] {
        tir("attr(");
        inline_node(attr.node);
        text(", ");
        string_literal(attr.attr_key);
        text(", ");
        inline_node(attr.value);
        text(")");
      },
      [] {}, attr.body);
}

void Printer::assert_stmt(const AssertStmt& assertion, bool concise) {
  push_frame();
  auto condition_and_message = [&] {
    expr(assertion.condition);
    text(", ");
    expr(assertion.message);
  };
  if (concise) {
    begin_line();
    text("assert ");
    condition_and_message();
    end_header();
    stmt(assertion.body, true);
    return pop_frame();
  }
  scope(
      false, "", "",
      [&] {
        tir("Assert(");
        condition_and_message();
        text(")");
      },
      [] {}, assertion.body);
}

void Printer::realize(const BufferRealize& realize, const StringImm* storage, bool concise) {
  push_frame();
  line_start_ = out_.size();
  name_of(realize.buffer);
  scope(
      concise, "", "",
      [&] {
        tir("realize(");
        text(name_of(realize.buffer));
        region_bounds(realize.bounds);
        if (storage) {
          text(", ");
          string_literal(storage->value);
        }
        if (!is_true(realize.condition)) {
          text(storage ? ", " : ", condition=");
          expr(realize.condition);
        }
        text(")");
      },
      [] {}, realize.body);
}

void Printer::prefetch(const Prefetch& prefetch) {
  begin_line();
  tir("prefetch(");
  text(name_of(prefetch.region->buffer));
  text(", [");
  list(prefetch.region->region, [&](const Ref<Range>& range) {
    tir("Range(");
    bounds(range->min, range->extent, ", ");
    text(")");
  });
  text("])");
  end_line();
}

// ---- memory ----------------------------------------------------------------------------------------------------

void Printer::buffer_store(const BufferStore& store) {
  begin_line();
  text(name_of(store.buffer));
  if (store.predicate.defined()) {
    text(".vstore([");
    exprs(store.indices);
    text("], ");
    expr(store.value);
    text(", predicate=");
    expr(store.predicate);
    text(")");
  } else {
    access_indices(store.indices);
    text(" = ");
    expr(store.value);
  }
  end_line();
}

/// Allocate whose body declares the one buffer on it: a buffer of its own.
bool Printer::allocate_buffer(const Allocate& allocate, bool concise) {
  const DeclBuffer* decl = allocate.body.as<DeclBuffer>();
  if (!options_.syntax_sugar || !decl || !is_true(allocate.condition) || !allocate.annotations.empty()) return false;
  const Buffer& buffer = *decl->buffer;
  if (buffer.data != allocate.buffer_var || buffer.dtype != allocate.dtype || !has_default_data(buffer)) return false;
  if (buffer.shape.size() != allocate.extents.size()) return false;
  for (size_t i : indices_of(buffer.shape)) {
    if (!same_expr(buffer.shape[i], allocate.extents[i])) return false;
  }
  push_frame();
  const std::string name = names_.take(with_address(buffer.name, decl->buffer), "buffer");
  scope(
      concise, name, name, [&] { buffer_call(decl->buffer, name, {"decl_buffer", "", BufferRole::kDecl}, true); },
      [&] {
        int frame = static_cast<int>(frames_.size()) - 1;
        define(decl->buffer, name, name, frame);
        define(buffer.data, name + ".data", "", frame);
      },
      decl->body);
  return true;
}

void Printer::allocate(const Allocate& allocate, bool concise) {
  if (allocate_buffer(allocate, concise)) return;
  push_frame();
  const std::string name = names_.take(with_address(allocate.buffer_var->name_hint, allocate.buffer_var), "v");
  scope(
      concise, name, name,
      [&] {
        const PointerType* pointer = allocate.buffer_var->type_annotation.as<PointerType>();
        tir("allocate([");
        exprs(allocate.extents);
        text("], ");
        dtype_string(allocate.dtype);
        text(", ");
        string_literal(pointer && !pointer->storage_scope.empty() ? pointer->storage_scope : "global");
        if (!is_true(allocate.condition)) {
          text(", condition=");
          expr(allocate.condition);
        }
        end_allocation(allocate.annotations);
      },
      [&] { define(allocate.buffer_var, name, name, static_cast<int>(frames_.size()) - 1); }, allocate.body);
}

void Printer::end_allocation(const Annotations& values) {
  if (!values.empty()) {
    text(", annotations=");
    annotations(values);
  }
  text(")");
}

void Printer::allocate_const(const AllocateConst& allocate, bool concise) {
  push_frame();
  const std::string name = names_.take(with_address(allocate.buffer_var->name_hint, allocate.buffer_var), "v");
  scope(
      concise, name, name,
      [&] {
        tir("allocate_const(");
        tensor_data(allocate.data);
        text(", ");
        dtype_string(allocate.dtype);
        text(", [");
        exprs(allocate.extents);
        text("]");
        end_allocation(allocate.annotations);
      },
      [&] { define(allocate.buffer_var, name, name, static_cast<int>(frames_.size()) - 1); }, allocate.body);
}

void Printer::decl_buffer(const DeclBuffer& decl, bool concise) {
  push_frame();
  // Without data it would allocate: a pointer that is defined nowhere is declared.
  line_start_ = out_.size();
  if (!is_defined(decl.buffer->data)) declare_free(decl.buffer->data);
  const std::string name = names_.take(with_address(decl.buffer->name, decl.buffer), "buffer");
  scope(
      concise, name, name, [&] { buffer_call(decl.buffer, name, {"decl_buffer", "", BufferRole::kDecl}); },
      [&] { define(decl.buffer, name, name, static_cast<int>(frames_.size()) - 1); }, decl.body);
}

// ---- dispatch --------------------------------------------------------------------------------------------------

void Printer::stmt(const Stmt& s, bool concise) {
  if (!s.defined()) {
    begin_line();
    return text("None\n");
  }
  Marking mark(*this, s);
  Marking* outer = std::exchange(statement_mark_, &mark);
  switch (s.kind()) {
    case Kind::kLetStmt:
      let_stmt(*s.as<LetStmt>(), concise);
      break;
    case Kind::kAttrStmt:
      attr_stmt(*s.as<AttrStmt>(), concise);
      break;
    case Kind::kAssertStmt:
      assert_stmt(*s.as<AssertStmt>(), concise);
      break;
    case Kind::kBufferStore:
      buffer_store(*s.as<BufferStore>());
      break;
    case Kind::kBufferRealize:
      realize(*s.as<BufferRealize>(), nullptr, concise);
      break;
    case Kind::kAllocate:
      allocate(*s.as<Allocate>(), concise);
      break;
    case Kind::kAllocateConst:
      allocate_const(*s.as<AllocateConst>(), concise);
      break;
    case Kind::kDeclBuffer:
      decl_buffer(*s.as<DeclBuffer>(), concise);
      break;
    case Kind::kSeqStmt: {
      const std::vector<Stmt>& seq = s.as<SeqStmt>()->seq;
      for (size_t i : indices_of(seq)) stmt(seq[i], concise && i + 1 == seq.size());
      break;
    }
    case Kind::kEvaluate: {
      const Expr& value = s.as<Evaluate>()->value;
      begin_line();
      const Call* returned = in_function_ ? as_return(value) : nullptr;
      if (returned) {
        text("return ");
        expr(returned->arg(0));
        out_ += '\n';
        break;
      }
      bool is_call = value.is<Call>();
      if (!is_call) tir("evaluate(");
      expr(value);
      text(is_call ? "\n" : ")\n");
      break;
    }
    case Kind::kIfThenElse:
      if_then_else(*s.as<IfThenElse>());
      break;
    case Kind::kFor:
      for_loop(s.borrow<For>());
      break;
    case Kind::kWhile:
      while_loop(*s.as<While>());
      break;
    case Kind::kBlock:
      block(s.borrow<Block>(), nullptr);
      break;
    case Kind::kBlockRealize:
      block(s.as<BlockRealize>()->block, s.as<BlockRealize>());
      break;
    case Kind::kPrefetch:
      prefetch(*s.as<Prefetch>());
      break;
    case Kind::kSparseIteration:
      sparse_iteration(*s.as<SparseIteration>());
      break;
#define X TW_CASE_UNLESS_STMT
#include "ir/kinds.def"
#undef X
      begin_line();
      inline_node(s);
      end_line();
  }
  statement_mark_ = outer;
}

}  // namespace tilewright::script
