// Postprocessors: what is done to a schedule once all of its decisions are taken.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/postprocs/defaults.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::python {
namespace {

using search::Postproc;
using search::TuneContext;

struct PythonPostproc final : Postproc {
  NB_TRAMPOLINE(Postproc);

  std::string name() const override {
    nb::gil_scoped_acquire gil;
    return class_name(nb::find(static_cast<const Postproc*>(this)));
  }
  Status initialize(const TuneContext& context) override {
    return in_python("postproc/exception", [&]() -> Status {
      if (overrides<Postproc>(this, "initialize")) overridden<Postproc>(this, "initialize")(context_to_python(context));
      return Ok{};
    });
  }
  Result<bool> apply(schedule::Schedule& schedule) const override {
    return in_python("postproc/exception", [&]() -> Result<bool> {
      SchedulePtr object = to_python(schedule);
      nb::object answer = overridden<Postproc>(this, "apply")(object);
      schedule = object->schedule;
      if (answer.is_none()) {
        return argument_error("postproc/answer", name() + ".apply() returned None",
                              "return True for a candidate that is good, False for one that is not");
      }
      return truth_of(answer);
    });
  }
  std::shared_ptr<Postproc> clone() const override { return cloned<Postproc>(this); }
};

bool apply_postproc(const Postproc& postproc, const SchedulePtr& object) {
  if (const auto* python = dynamic_cast<const PythonPostproc*>(&postproc)) not_defined<Postproc>(python, "apply");
  schedule::Schedule changed = taken(object);
  auto answer = [&] {
    GilReleased release;
    return postproc.apply(changed);
  }();
  if (!answer.ok()) fail_in(*object, std::move(answer.error()));
  object->schedule = std::move(changed);
  return *answer;
}

void bind_postproc_base(nb::module_& m) {
  nb::class_<Postproc, PythonPostproc>(
      m, "Postproc",
      "What is done to a schedule once all of its decisions are taken. Subclasses define apply(), and initialize() "
      "where they need to know the target.")
      .def(nb::init<>())
      .def(
          "initialize",
          [](Postproc& self, const TuneContext& context) {
            if (dynamic_cast<PythonPostproc*>(&self)) return;  // by super(): nothing to be done here
            unwrap_status(self.initialize(context));
          },
          nb::arg("context"), "Called once, before the first apply().")
      .def("apply", &apply_postproc, nb::arg("sch"),
           "Change a schedule.\n\nArgs:\n    sch: the schedule.\n\nReturns:\n"
           "    Whether the candidate is good; False refuses it.")
      .def(
          "clone",
          [](const nb::object& self) {
            const auto& postproc = nb::cast<const Postproc&>(self);
            return dynamic_cast<const PythonPostproc*>(&postproc) ? self : nb::cast(postproc.clone());
          },
          "A postprocessor like this one, for another context. A subclass that does not define it is shared.",
          nb::sig("def clone(self) -> Postproc"))
      .def_static(
          "defaults", [](const std::string& kind) { return unwrap(search::default_postprocs(kind)); }, nb::arg("kind"),
          "The postprocessors for a kind of target: \"llvm\", \"avx512\", \"vnni\", \"cuda\", ...")
      .def_static(
          "create", [](const std::string& kind) { return unwrap(search::default_postprocs(kind)); }, nb::arg("kind"),
          "The postprocessors for a kind of target, by the name that TVM has for it: defaults().");
}

}  // namespace

void bind_postprocs(nb::module_& m) {
  bind_postproc_base(m);
  nb::class_<search::DisallowDynamicLoop, Postproc>(m, "DisallowDynamicLoop",
                                                    "Refuse loops whose extent is no constant.")
      .def(nb::init<>());
  nb::class_<search::RewriteParallelVectorizeUnroll, Postproc>(
      m, "RewriteParallelVectorizeUnroll",
      "Carry out what rules wrote on root blocks about parallel, vectorized and unrolled loops.")
      .def(nb::init<>());
  nb::class_<search::RewriteReductionBlock, Postproc>(m, "RewriteReductionBlock",
                                                      "Give each reduction an init block of its own.")
      .def(nb::init<>());
  nb::class_<search::RewriteTensorize, Postproc>(
      m, "RewriteTensorize", "Let blocks be computed by the tensor intrinsics that they name in an annotation.")
      .def(nb::init<bool>(), nb::arg("vectorize_init_loop") = false,
           "Make one.\n\nArgs:\n    vectorize_init_loop: vectorize inits for which there is no intrinsic.");
  nb::class_<search::RewriteLayout, Postproc>(
      m, "RewriteLayout", "Let free parameters (\"layout_free_buffers\") lie in memory in the order they are read.")
      .def(nb::init<>());
  nb::class_<search::RewriteCooperativeFetch, Postproc>(
      m, "RewriteCooperativeFetch", "Let the threads of a block copy together what rules marked so.")
      .def(nb::init<>());
  nb::class_<search::RewriteUnboundBlock, Postproc>(m, "RewriteUnboundBlock",
                                                    "Give the blocks that no rule has bound to blocks and threads.")
      .def(nb::init<int64_t>(), nb::arg("max_threadblocks") = 256,
           "Make one.\n\nArgs:\n    max_threadblocks: how many blocks of threads a loop becomes at most.");
  nb::class_<search::VerifyGPUCode, Postproc>(m, "VerifyGPUCode", "Refuse programs that the target's GPU cannot run.")
      .def(nb::init<>());
  nb::class_<search::VerifyVTCMLimit, Postproc>(m, "VerifyVTCMLimit",
                                                "Refuse programs that need too much tightly coupled memory.")
      .def(nb::init<int64_t>(), nb::arg("vtcm_capacity") = 0,
           "Make one.\n\nArgs:\n    vtcm_capacity: bytes there are in scope \"global.vtcm\"; 0 for no limit.");
  nb::class_<search::DisallowAsyncStridedMemCopy, Postproc>(m, "DisallowAsyncStridedMemCopy",
                                                            "Refuse asynchronous copies between memory with gaps.")
      .def(nb::init<>());
}

}  // namespace tilewright::python
