// The task that components of a search are initialized with.

#include "python/search_components.h"
#include "search/space/space_generator.h"
#include "search/strategy/search_strategy.h"

namespace tilewright::python {

using search::TuneContext;

void bind_tune_context(nb::module_& m) {
  nb::class_<TuneContext>(m, "TuneContext", "One task of a search: a program, a target, and the components for it.")
      .def(nb::init<>())
      .def_rw("module", &TuneContext::module, nb::arg().none(), "The program.")
      .def_rw("mod", &TuneContext::module, nb::arg().none(), "The program, by its name in TVM.")
      .def_rw("target", &TuneContext::target, nb::arg().none(), "What it is compiled for.")
      .def_rw("space_generator", &TuneContext::space_generator, nb::arg().none(), "Where schedules come from.")
      .def_rw("search_strategy", &TuneContext::search_strategy, nb::arg().none(),
              nb::for_getter(nb::sig("def search_strategy(self) -> SearchStrategy")),
              nb::for_setter(nb::sig("def search_strategy(self, value: SearchStrategy | None, /) -> None")),
              "Which ones are measured.")
      .def_rw("task_name", &TuneContext::task_name, "What the task is called in logs.")
      .def_rw("seed", &TuneContext::seed, "Determines all samples.")
      .def_rw("rand_state", &TuneContext::seed, "The seed, by its name in TVM.")
      .def_rw("num_threads", &TuneContext::num_threads, "Threads that sample candidates.")
      .def("initialize", &TuneContext::initialize, "Initialize the space generator, then the strategy.");
}

nb::object context_to_python(const TuneContext& context) {
  nb::handle known = nb::find(&context);
  return known.is_valid() ? nb::borrow(known) : nb::cast(context, nb::rv_policy::copy);
}

}  // namespace tilewright::python
