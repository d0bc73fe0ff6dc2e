// Checks at the entry of a block that buffers satisfy its declarations: ranges, order and disjointness of values.

#include "analysis/brief.h"
#include "interpreter/compile.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "support/ranges.h"

namespace tilewright::interpreter {

/// Returns the array of a sparse buffer's elements, to which declarations about the buffer refer.
Ref<Buffer> Compiler::array_of(const Ref<Buffer>& buffer) {
  if (!buffer.defined() || buffer->axes.empty()) return buffer;
  Buffer array = *buffer;
  array.axes.clear();
  array.default_value = {};
  Ref<Buffer> made = make(std::move(array), buffer.span());
  kept_.push_back(made);
  return made;
}

/// Checks a declaration, unless an enclosing block has the same one: no block inside may write the buffer.
void Compiler::declare_domain(const BufferDomain& domain, const NodeRef& node) {
  const bool is_checked = any_of(declared_, [&](const BufferDomain& known) { return is_same(known, domain); });
  if (!is_checked) {
    BufferDomain of_array = domain;
    of_array.buffer = array_of(domain.buffer);
    of_array.segments = array_of(domain.segments);
    check_domain(of_array, node);
  }
  declared_.push_back(domain);
}

/// Checks all elements. Indices are variables that are bound to the slots of the loop counters, so that loads compile
/// like those of a program.
void Compiler::check_domain(const BufferDomain& domain, const NodeRef& node) {
  const Ref<Buffer>& buffer = domain.buffer;
  int declared = site(node, buffer,
                      "the values of '" + buffer->name + "' are in [" + analysis::brief(domain.min) + ", " +
                          analysis::brief(domain.end) + ")");
  std::vector<Expr> indices;
  auto compare = [&](int position) {
    Expr value = make<BufferLoad>({.buffer = buffer, .indices = indices, .predicate = {}});
    int holds = expr(logical_and(le(domain.min, value), lt(value, domain.end)));
    require_declared(holds, position, expr(value), declared);
  };
  auto nest = [&](auto&& self, size_t dimension) -> void {
    scoped([&] {
      each_position(constant(0), expr(buffer->shape[dimension]), [&](int position) {
        Ref<Var> index = var("i", DataType::int_(64));
        indices.push_back(index);
        with_definition(index, position, [&] {
          if (dimension + 1 == buffer->shape.size()) {
            compare(position);
          } else {
            self(self, dimension + 1);
          }
        });
        indices.pop_back();
      });
    });
  };
  if (!buffer->shape.empty()) nest(nest, 0);
  if (domain.order == ValueOrder::kDistinct) {
    check_distinct(domain, node);
  } else if (domain.order != ValueOrder::kNone) {
    check_order(domain, node);
  }
  if (domain.longest.defined()) check_longest(domain, node);
}

void Compiler::check_longest(const BufferDomain& domain, const NodeRef& node) {
  const Ref<Buffer>& buffer = domain.buffer;
  const int declared = site(
      node, buffer,
      "no value of '" + buffer->name + "' exceeds the one before it by more than " + analysis::brief(domain.longest));
  auto to_int64 = [](const Expr& e) { return tilewright::cast(DataType::int_(64), e); };
  scoped([&] {
    each_position(constant(1), expr(buffer->shape[0]), [&](int position) {
      Ref<Var> index = var("i", DataType::int_(64));
      with_definition(index, position, [&] {
        auto load = [&](const Expr& at) {
          return to_int64(make<BufferLoad>({.buffer = buffer, .indices = {at}, .predicate = {}}));
        };
        const Expr value = load(index);
        const int holds = expr(le(value - load(Expr(index) - 1), to_int64(domain.longest)));
        require_declared(holds, position, expr(value), declared);
      });
    });
  });
}

void Compiler::check_order(const BufferDomain& domain, const NodeRef& node) {
  const Ref<Buffer>& buffer = domain.buffer;
  std::string where;
  if (domain.segments.defined()) where = " in each segment of '" + domain.segments->name + "'";
  if (domain.segment_length.defined()) where = " in each segment of length " + analysis::brief(domain.segment_length);
  int declared =
      site(node, buffer, "the values of '" + buffer->name + "' are " + std::string(order_name(domain.order)) + where);
  auto load = [](const Ref<Buffer>& of, const Expr& index) -> Expr {
    return make<BufferLoad>({.buffer = of, .indices = {index}, .predicate = {}});
  };
  auto ascends = [&](int begin, int end) {
    each_position(begin, end, [&](int position) {
      Ref<Var> index = var("i", DataType::int_(64));
      with_definition(index, position, [&] {
        Expr value = load(buffer, index), before = load(buffer, Expr(index) - 1);
        int holds = expr(domain.order == ValueOrder::kIncreasing ? lt(before, value) : le(before, value));
        require_declared(holds, position, expr(value), declared);
      });
    });
  };
  auto require_value = [&](const Expr& begin, const Expr& end, const Expr& wanted) {
    each_position(expr(begin), expr(end), [&](int position) {
      Ref<Var> index = var("i", DataType::int_(64));
      with_definition(index, position, [&] {
        Expr value = load(buffer, index);
        emit({.op = Op::kAssume, .a = expr(eq(value, wanted)), .b = position, .c = expr(value), .extra = declared});
      });
    });
  };
  scoped([&] {
    if (domain.order == ValueOrder::kOffsets) {
      const Expr count = tilewright::cast(DataType::int_(64), buffer->shape[0]);
      require_value(i64(0), min(count, Expr(i64(1))), domain.min);
      require_value(max(count - 1, Expr(i64(0))), count, domain.end - 1);
    }
    if (!domain.has_segments()) return ascends(constant(1), expr(buffer->shape[0]));
    if (domain.segment_length.defined()) {
      const Expr count = tilewright::cast(DataType::int_(64), buffer->shape[0]);
      const Expr length = tilewright::cast(DataType::int_(64), domain.segment_length);
      // There are no segments if their length is 0, and no division by it.
      return each_position(constant(0), expr(ceildiv(count, max(length, Expr(i64(1))))), [&](int segment) {
        Ref<Var> index = var("s", DataType::int_(64));
        with_definition(index, segment, [&] {
          const Expr begin = Expr(index) * length;
          ascends(expr(begin + 1), expr(min(begin + length, count)));
        });
      });
    }
    each_position(constant(1), expr(domain.segments->shape[0]), [&](int segment) {
      Ref<Var> index = var("s", DataType::int_(64));
      with_definition(index, segment, [&] {
        Expr begin = tilewright::cast(DataType::int_(64), load(domain.segments, Expr(index) - 1)) + 1;
        ascends(expr(begin), expr(load(domain.segments, index)));
      });
    });
  });
}

/// Checks that no value of `one` occurs in `other`; if they are the same buffer, at a later position.
void Compiler::check_absent(const Ref<Buffer>& one, const Ref<Buffer>& other, int declared, const NodeRef& node) {
  scoped([&] {
    each_position(constant(0), expr(one->shape[0]), [&](int position) {
      Ref<Var> index = var("i", DataType::int_(64)), probe = var("p", DataType::int_(64));
      kept_.insert(kept_.end(), {index, probe});
      const int place = take(2);
      with_definition(index, position, [&] {
        const int value = expr(make<BufferLoad>({.buffer = one, .indices = {index}, .predicate = {}}));
        const int begin = one == other ? expr(Expr(index) + 1) : constant(0);
        with_definition(probe, place, [&] {
          emit({.op = Op::kSearch,
                .dst = place,
                .a = access(other, {probe}, {}, node),
                .b = begin,
                .c = expr(other->shape[0]),
                .extra = value});
        });
        require_declared(computed(Op::kLtInt, place, constant(0)), position, value, declared);
      });
    });
  });
}

void Compiler::check_distinct(const BufferDomain& domain, const NodeRef& node) {
  const Ref<Buffer>& buffer = domain.buffer;
  check_absent(buffer, buffer, site(node, buffer, "no value of '" + buffer->name + "' occurs twice"), node);
}

void Compiler::check_disjoint(const DisjointBuffers& group, const NodeRef& node) {
  for (size_t first : indices_of(group)) {
    for (size_t second = first + 1; second < group.size(); ++second) {
      const Ref<Buffer> one = array_of(group[first]), other = array_of(group[second]);
      check_absent(one, other, site(node, one, "no value of '" + one->name + "' is in '" + other->name + "'"), node);
    }
  }
}

}  // namespace tilewright::interpreter
