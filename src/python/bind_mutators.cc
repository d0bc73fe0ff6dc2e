// Mutators: small changes of the decisions of a good candidate.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include <random>

#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/mutators/defaults.h"
#include "search/mutators/mutators.h"

namespace tilewright::python {
namespace {

using schedule::Random;
using schedule::Trace;
using search::Mutator;
using search::TuneContext;

/// A number for Python to seed a generator with.
int64_t draw_seed(Random& random) { return static_cast<int64_t>(1 + random.below((uint64_t{1} << 31) - 1)); }

struct PythonMutator final : Mutator {
  NB_TRAMPOLINE(Mutator);

  Status initialize(const TuneContext& context) override {
    return in_python("mutator/exception", [&]() -> Status {
      if (overrides<Mutator>(this, "initialize")) overridden<Mutator>(this, "initialize")(context_to_python(context));
      return Ok{};
    });
  }
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override {
    return in_python("mutator/exception", [&]() -> Result<std::optional<Trace>> {
      nb::object answer = overridden<Mutator>(this, "apply")(PyTrace{trace}, draw_seed(random));
      if (answer.is_none()) return std::optional<Trace>();
      if (!nb::isinstance<PyTrace>(answer)) {
        return argument_error("mutator/answer",
                              class_name(nb::find(static_cast<const Mutator*>(this))) + ".apply() returned a '" +
                                  class_name(answer) + "', neither a trace nor None",
                              "such as trace.with_decision(draw, decision), or None where there is nothing to change");
      }
      return std::optional<Trace>(nb::cast<const PyTrace&>(answer).trace.without_postproc());
    });
  }
  std::shared_ptr<Mutator> clone() const override { return cloned<Mutator>(this); }
};

nb::object apply_mutator(const Mutator& mutator, const PyTrace& trace, std::optional<int64_t> seed) {
  if (const auto* python = dynamic_cast<const PythonMutator*>(&mutator)) not_defined<Mutator>(python, "apply");
  Random random(seed ? static_cast<uint64_t>(*seed) : std::random_device{}());
  auto answer = [&] {
    GilReleased release;
    return mutator.apply(trace.trace, random);
  }();
  std::optional<Trace> mutated = unwrap(std::move(answer));
  if (!mutated) return nb::none();
  return nb::cast(PyTrace{std::move(*mutated), trace.owner, false, trace.own_numbers});
}

void bind_mutator_base(nb::module_& m) {
  nb::class_<Mutator, PythonMutator>(m, "Mutator",
                                     "A small change of the decisions of a good candidate. Subclasses define apply(), "
                                     "and initialize() where they need "
                                     "to know the program or the target.")
      .def(nb::init<>())
      .def(
          "initialize",
          [](Mutator& self, const TuneContext& context) {
            if (dynamic_cast<PythonMutator*>(&self)) return;  // by super(): nothing to be done here
            unwrap_status(self.initialize(context));
          },
          nb::arg("context"), "Called once, before the first apply().")
      .def("apply", &apply_mutator, nb::arg("trace"), nb::arg("seed").none() = nb::none(),
           "Change a decision.\n\nArgs:\n    trace: of a candidate.\n"
           "    seed: all that is drawn follows from it; None: a random one.\n\nReturns:\n"
           "    The trace, without what postprocessors did, with a decision changed; None where there is nothing to "
           "change.",
           nb::sig("def apply(self, trace: Trace, seed: int | None = None) -> Trace | None"))
      .def(
          "clone",
          [](const nb::object& self) {
            const auto& mutator = nb::cast<const Mutator&>(self);
            return dynamic_cast<const PythonMutator*>(&mutator) ? self : nb::cast(mutator.clone());
          },
          "A mutator like this one, for another context. A subclass that does not define it is shared.",
          nb::sig("def clone(self) -> Mutator"))
      .def_static(
          "defaults", [](const std::string& kind) { return unwrap(search::default_mutators(kind)); }, nb::arg("kind"),
          "The mutators for a kind of target (\"llvm\", \"avx512\", \"vnni\", \"cuda\", ...), each with its "
          "probability.")
      .def_static(
          "create",
          [](const std::string& kind) {
            nb::dict probabilities;
            for (const auto& [mutator, probability] : unwrap(search::default_mutators(kind))) {
              probabilities[nb::cast(mutator)] = probability;
            }
            return probabilities;
          },
          nb::arg("kind"), "defaults() as a dict, as mutator_probs are written.",
          nb::sig("def create(kind: str) -> dict[Mutator, float]"));
}

}  // namespace

void bind_mutators(nb::module_& m) {
  bind_mutator_base(m);
  nb::class_<search::MutateTileSize, Mutator>(m, "MutateTileSize", "Move a factor from one tile of a loop to another.")
      .def(nb::init<>());
  nb::class_<search::MutateUnroll, Mutator>(m, "MutateUnroll", "Draw another limit for unrolling.").def(nb::init<>());
  nb::class_<search::MutateParallel, Mutator>(m, "MutateParallel", "Ask for another number of parallel jobs.")
      .def(nb::init<int64_t>(), nb::arg("max_jobs_per_core"),
           "Make one.\n\nArgs:\n    max_jobs_per_core: how many jobs a core of the target gets at most.");
  nb::class_<search::MutateComputeLocation, Mutator>(m, "MutateComputeLocation", "Compute a block elsewhere.")
      .def(nb::init<>());
  nb::class_<search::MutateThreadBinding, Mutator>(m, "MutateThreadBinding", "Draw another number of threads.")
      .def(nb::init<>());
}

}  // namespace tilewright::python
