// Handles of loops, blocks and sampled values.

#include <atomic>

#include "python/schedule_objects.h"
#include "schedule/sparse_nest.h"
#include "script/printer.h"

namespace tilewright::python {

using namespace schedule;

int64_t read(const PyExpr& expr) {
  if (!expr.owner) {
    fail(argument_error("schedule/handle", "nothing has been sampled for this value: no schedule has given it",
                        "read the values that sample_categorical() and sample_perfect_tile() give"));
  }
  expr.owner->decisions_read = true;
  return expr.owner->schedule.state().value(expr.rv);
}

bool same_row(const Handle& a, const Handle& b) {
  if (a.target.index() != b.target.index()) return false;
  if (auto* loop = std::get_if<Ref<Var>>(&a.target)) return *loop == std::get<Ref<Var>>(b.target);
  if (auto* block = std::get_if<Handle::BlockId>(&a.target)) {
    const auto& other = std::get<Handle::BlockId>(b.target);
    return block->identity == other.identity && block->variable == other.variable;
  }
  return a.value_number() == b.value_number();
}

uint32_t own_numbers(uint32_t count) {
  static std::atomic<uint32_t> next = uint32_t{1} << 31;
  return next.fetch_add(count);
}

nb::object make_handle(const SchedulePtr& self, uint32_t number) {
  if (number == LoopRV::kNone) return nb::none();
  const Handle& row = self->schedule.state().handle(number);
  if (std::holds_alternative<Ref<Var>>(row.target)) return nb::cast(PyLoop{self, {number}});
  if (std::holds_alternative<int64_t>(row.target)) return nb::cast(PyExpr{self, {number}});
  return nb::cast(PyBlock{self, {number}});
}

namespace {

std::string show_handle(const PyLoop& loop) {
  if (!loop.owner) return "Loop(of no schedule)";
  if (loop.row().is_inline_mark()) return "Loop(inline the block)";
  if (loop.row().is_root_mark()) return "Loop(leave the block in place)";
  const schedule::State& state = loop.owner->schedule.state();
  if (auto nest = find_nest(state, {loop.rv}, ""); nest.ok()) {
    return "Loop(" + nest->iteration->iter_vars[nest->at[0]]->var->name_hint + " of iteration " +
           nest->iteration->name_hint + ")";
  }
  auto place = state.find(loop.rv);
  const std::string& name = std::get<Ref<Var>>(loop.row().target)->name_hint;
  if (!place.ok()) return "Loop(" + name + ", expired)";
  std::string extent = script::print(place->loop().extent);
  return "Loop(" + name + ", extent=" + extent + ")";
}
std::string show_handle(const PyBlock& block) {
  if (!block.owner) return "Block(of no schedule)";
  const schedule::State& state = block.owner->schedule.state();
  if (auto nest = find_iteration(state, block.rv, ""); nest.ok())
    return "Iteration(" + nest->iteration->name_hint + ")";
  auto place = state.find(block.rv);
  if (!place.ok()) return "Block(" + std::get<Handle::BlockId>(block.row().target).name + ", expired)";
  return "Block(" + place->block().name_hint + ")";
}
std::string show_handle(const PyExpr& expr) {
  if (!expr.owner) return "Expr(of no schedule)";
  return "Expr(v" + std::to_string(expr.rv.index) + "=" + std::to_string(expr.row().value_number()) + ")";
}

template <class RV>
PyHandle<RV> stray_handle() {
  return {nullptr, {own_numbers(1)}};
}

template <class RV>
bool is_same(const PyHandle<RV>& self, nb::handle other) {
  return nb::isinstance<PyHandle<RV>>(other) && same_handle(self, nb::cast<const PyHandle<RV>&>(other));
}

template <class RV>
void bind_handle(nb::module_& m, const char* name, const char* doc) {
  nb::class_<PyHandle<RV>>(m, name, doc)
      .def(nb::new_(&stray_handle<RV>), "A handle of no schedule, for traces that are built manually.")
      .def("same_as", &is_same<RV>, "other"_a, "Whether it is the same handle.")
      .def("__eq__", &is_same<RV>, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const PyHandle<RV>& self) { return show_handle(self); })
      .def("__hash__", [](const PyHandle<RV>& self) { return self.rv.index; });
}

/// Reading a value gives a plain integer: the operators of int do the rest.
void bind_expr(nb::module_& m) {
  nb::class_<PyExpr> cls(
      m, "ExprRV",
      "A sampled integer. Passing it on keeps it symbolic in the trace; int() and the operators read "
      "it, which Schedule.decisions_read then says.");
  cls.def(nb::new_(&stray_handle<ExprRV>), "A handle of no schedule, for traces that are built manually.");
  cls.def("same_as", &is_same<ExprRV>, "other"_a, "Whether it is the same handle, not only the same value.");
  cls.def("__repr__", [](const PyExpr& self) { return show_handle(self); });
  cls.def("__int__", &read).def("__index__", &read).def("__hash__", &read);
  cls.def("__bool__", [](const PyExpr& self) { return read(self) != 0; });
  cls.def("__float__", [](const PyExpr& self) { return static_cast<double>(read(self)); });
  nb::object op = nb::module_::import_("operator");
  auto plain = [](nb::handle other) -> nb::object {
    if (nb::isinstance<PyExpr>(other)) return nb::int_(read(nb::cast<const PyExpr&>(other)));
    return nb::borrow(other);
  };
  static constexpr const char* kBinary[] = {"add", "sub", "mul", "floordiv", "mod", "truediv", "pow"};
  static constexpr const char* kCompare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  auto define = [&](const char* name) {
    nb::object function = op.attr(name);
    cls.def((std::string("__") + name + "__").c_str(),
            [function, plain](const PyExpr& self, nb::handle other) -> nb::object {
              return function(nb::int_(read(self)), plain(other));
            },
            nb::is_operator(), "other"_a.none());
    return function;
  };
  for (const char* name : kCompare) define(name);
  for (const char* name : kBinary) {
    nb::object function = define(name);
    const std::string reflected = std::string("__r") + name + "__";
    cls.def(
        reflected.c_str(),
        [function, plain](const PyExpr& self, nb::handle other) -> nb::object {
          return function(plain(other), nb::int_(read(self)));
        },
        nb::is_operator(), "other"_a.none());
  }
}

}  // namespace

void bind_handles(nb::module_& m) {
  bind_handle<LoopRV>(m, "LoopRV", "A handle of a loop. It stays valid while the loop exists.");
  bind_handle<BlockRV>(m, "BlockRV", "A handle of a block. It stays valid while the block exists.");
  bind_expr(m);
}

}  // namespace tilewright::python
