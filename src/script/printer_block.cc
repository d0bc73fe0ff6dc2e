// Blocks: axes, predicate, regions, annotations, buffers, init, body, in this order.
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

std::string_view axis_function(IterType type) {
  switch (type) {
    case IterType::kDataPar:
      return "axis.spatial(";
    case IterType::kCommReduce:
      return "axis.reduce(";
    case IterType::kOrdered:
      return "axis.scan(";
    case IterType::kOpaque:
      return "axis.opaque(";
    // No block may have the kinds below (ir/verify.h); they print so that the error can be shown.
    case IterType::kThreadIndex:
      return "axis.thread_index(";
    case IterType::kUnrolled:
      return "axis.unrolled(";
    case IterType::kVectorized:
      return "axis.vectorized(";
    case IterType::kParallelized:
      return "axis.parallelized(";
    case IterType::kTensorized:
      return "axis.tensorized(";
  }
  return "axis.opaque(";
}

}  // namespace

/// Whether the axis is the loop it is bound to, over the same domain.
bool Printer::is_remapped(const IterVar& iter_var, const Expr& binding) const {
  if (!options_.syntax_sugar || !iter_var.dom.defined()) return false;
  if (iter_var.iter_type != IterType::kDataPar && iter_var.iter_type != IterType::kCommReduce) return false;
  if (!binding.is<Var>() || iter_var.var.dtype() != binding.dtype()) return false;
  auto* loop = find_value(loops_, binding.get());
  return loop && same_expr((*loop)->min, iter_var.dom->min) && same_expr((*loop)->extent, iter_var.dom->extent);
}

void Printer::axis(const IterVar& iter_var, const Expr* binding) {
  begin_line();
  const std::string& name = names_.take(with_address(iter_var.var->name_hint, iter_var.var), "v");
  {
    Marking mark(*this, iter_var.var);
    text(name);
  }
  text(" = ");
  tir(axis_function(iter_var.iter_type));
  if (!iter_var.dom.defined()) {
    text("None");
  } else if (iter_var.dom->min.is<IntImm>() && is_const_int(iter_var.dom->min, 0)) {
    expr(iter_var.dom->extent);
  } else {
    out_ += '(';
    bounds(iter_var.dom->min, iter_var.dom->extent, ", ");
    out_ += ')';
  }
  if (binding) {
    text(", ");
    expr(*binding);
  }
  text(")");
  end_line();
  define(iter_var.var, name, name, static_cast<int>(frames_.size()) - 1);
}

void Printer::axes(const Block& block, const BlockRealize* realize) {
  size_t count = block.iter_vars.size();
  auto binding = [&](size_t i) {
    return realize && i < realize->iter_values.size() ? &realize->iter_values[i] : nullptr;
  };
  for (size_t i = 0; i < count;) {
    size_t end = i;
    while (end < count && binding(end) && is_remapped(*block.iter_vars[end], *binding(end))) ++end;
    if (end - i < 2) {
      Marking mark(*this, block.iter_vars[i]);
      axis(*block.iter_vars[i], binding(i));
      ++i;
      continue;
    }
    begin_line();
    std::vector<std::string> names;
    std::string kinds;
    for (size_t j = i; j < end; ++j) {
      const Ref<IterVar>& iter_var = block.iter_vars[j];
      if (j > i) text(", ");
      names.push_back(names_.take(with_address(iter_var->var->name_hint, iter_var->var), "v"));
      kinds += iter_var->iter_type == IterType::kDataPar ? 'S' : 'R';
      Marking mark(*this, iter_var);
      Marking var_mark(*this, iter_var->var);
      text(names.back());
    }
    text(" = ");
    tir("axis.remap(\"" + kinds + "\", [");
    for (size_t j = i; j < end; ++j) {
      if (j > i) text(", ");
      expr(*binding(j));
    }
    text("])");
    end_line();
    for (size_t j = i; j < end; ++j) {
      define(block.iter_vars[j]->var, names[j - i], names[j - i], static_cast<int>(frames_.size()) - 1);
    }
    i = end;
  }
}

void Printer::block_regions(std::string_view name, const std::vector<Ref<BufferRegion>>& regions) {
  begin_line();
  tir(name);
  out_ += '(';
  list(regions, [&](const Ref<BufferRegion>& r) {
    Marking mark(*this, r);
    region(*r);
  });
  text(")\n");
}

void Printer::block_buffers(const Block& block) {
  for (const Ref<Buffer>& buffer : block.alloc_buffers) {
    buffer_line(buffer, {"alloc_buffer", "", BufferRole::kAlloc});
  }
  for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
    Marking mark(*this, match);
    line_start_ = out_.size();
    std::string source = captured([&] { region(*match->source); });
    buffer_line(match->buffer, {"match_buffer", source, BufferRole::kMatch});
  }
}

void Printer::buffer_domains(const Block& block) {
  for (const BufferDomain& domain : tilewright::buffer_domains(block)) {
    begin_line();
    tir("assume_buffer_domain(");
    text(name_of(domain.buffer));
    text(", [");
    expr(domain.min);
    text(", ");
    expr(domain.end);
    text("]");
    if (domain.order != ValueOrder::kNone) {
      text(", order=");
      string_literal(order_name(domain.order));
    }
    if (domain.segments.defined()) {
      text(", segments=");
      text(name_of(domain.segments));
    }
    if (domain.segment_length.defined()) {
      text(", segments=");
      expr(domain.segment_length);
    }
    if (domain.longest.defined()) {
      text(", longest=");
      expr(domain.longest);
    }
    text(")\n");
  }
  for (const DisjointBuffers& group : disjoint_buffers(block)) {
    begin_line();
    tir("assume_disjoint(");
    for (size_t i : indices_of(group)) text((i > 0 ? ", " : "") + name_of(group[i]));
    text(")\n");
  }
}

void Printer::block(const Ref<Block>& block, const BlockRealize* realize) {
  begin_line();
  {
    Marking mark(*this, block);
    text("with ");
    tir("block(");
    string_literal(block->name_hint);
    text(realize ? "):" : ", no_realize=True):");
  }
  end_header();
  ++indent_;
  push_frame();
  axes(*block, realize);
  mark_body();
  if (realize && !is_true(realize->predicate)) {
    begin_line();
    tir("where(");
    expr(realize->predicate);
    text(")\n");
  }
  block_regions("reads", block->reads);
  block_regions("writes", block->writes);
  Annotations others = block->annotations;
  if (declares_domains(others)) others.erase(kBufferDomains);
  if (declares_disjoint(others)) others.erase(kDisjointBuffers);
  if (!others.empty()) {
    begin_line();
    tir("block_attr(");
    annotations(others);
    text(")\n");
  }
  block_buffers(*block);
  mark_body();
  buffer_domains(*block);
  if (block->init.defined()) {
    begin_line();
    text("with ");
    tir("init():\n");
    body(block->init);
  }
  stmt(block->body, true);
  pop_frame();
  --indent_;
}

}  // namespace tilewright::script
