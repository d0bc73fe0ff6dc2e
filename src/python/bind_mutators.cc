// Mutators: small changes of the decisions of a good candidate.
#include <nanobind/trampoline.h>

#include <random>

#include "python/part.h"
#include "search/mutators/defaults.h"
#include "search/mutators/mutators.h"

namespace tilewright::python {
namespace {

using schedule::Random;
using schedule::Trace;
using search::Mutator;

/// A number for Python to seed a generator with.
int64_t sample_seed(Random& random) { return static_cast<int64_t>(1 + random.below((uint64_t{1} << 31) - 1)); }

constexpr char kMutatorException[] = "mutator/exception";

struct PythonMutator final : PythonPart<Mutator, kMutatorException> {
  std::string name() const override {
    nb::gil_scoped_acquire gil;
    return class_of_self();
  }
  Result<std::optional<Trace>> apply(const Trace& trace, Random& random) const override {
    return call("apply", [&](const nb::object& method) -> Result<std::optional<Trace>> {
      nb::object answer = method(PyTrace{trace}, sample_seed(random));
      if (answer.is_none()) return std::optional<Trace>();
      if (!nb::isinstance<PyTrace>(answer)) {
        return argument_error("mutator/answer",
                              name() + ".apply() returned a '" + class_name(answer) + "', neither a trace nor None",
                              "such as trace.with_decision(step, decision), or None where there is nothing to change");
      }
      return std::optional<Trace>(nb::cast<const PyTrace&>(answer).trace.without_postproc());
    });
  }
};

nb::object apply_mutator(const Mutator& mutator, const PyTrace& trace, std::optional<int64_t> seed) {
  require_native(mutator, "apply");
  Random random(seed ? static_cast<uint64_t>(*seed) : std::random_device{}());
  std::optional<Trace> mutated = unwrap(gil_released([&] { return mutator.apply(trace.trace, random); }));
  if (!mutated) return nb::none();
  return nb::cast(PyTrace{std::move(*mutated), trace.owner, false, trace.own_numbers});
}

void bind_mutator_base(nb::module_& m) {
  nb::class_<Mutator, PythonMutator>(m, "Mutator",
                                     "A small change of the decisions of a good candidate. Subclasses define apply(), "
                                     "and initialize() where they need "
                                     "to know the program or the target.")
      .def(nb::init<>())
      .def("initialize", &initialize_part<Mutator>, "context"_a, "Called once, before the first apply().")
      .def("apply", &apply_mutator, "trace"_a, "seed"_a = nb::none(),
           "Change a decision.\n\nArgs:\n    trace: of a candidate.\n"
           "    seed: determines all samples; None: a random one.\n\nReturns:\n"
           "    The trace without postprocessing steps, with one decision changed; None if there is nothing to change.",
           nb::sig("def apply(self, trace: Trace, seed: int | None = None) -> Trace | None"))
      .def("clone", &clone_part<Mutator>,
           "Return a copy of this mutator for another context. A subclass that does not define it is shared.",
           nb::sig("def clone(self) -> Mutator"))
      .def_static("defaults", &search::default_mutators, "kind"_a,
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
          "kind"_a, "defaults() as a dict, as mutator_probs are written.",
          nb::sig("def create(kind: str) -> dict[Mutator, float]"));
}

}  // namespace

void bind_mutators(nb::module_& m) {
  bind_mutator_base(m);
  part<search::MutateTileSize>(m, "Move a factor from one tile of a loop to another.");
  part<search::MutateUnroll>(m, "Sample another limit for unrolling.");
  part<search::MutateParallel>(
      m, "Sample another number of parallel jobs.",
      "Create the mutator.\n\nArgs:\n    max_jobs_per_core: maximum number of jobs per core of the target.");
  part<search::MutateComputeLocation>(m, "Sample another compute location for a block.");
  part<search::MutateThreadBinding>(m, "Sample another number of threads.");
}

}  // namespace tilewright::python
