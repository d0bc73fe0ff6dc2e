// Postprocessors: what is done to a schedule once all of its decisions are taken.
#include <nanobind/trampoline.h>

#include "python/part.h"
#include "search/postprocs/defaults.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::python {
namespace {

using search::Postproc;

constexpr char kPostprocException[] = "postproc/exception";

struct PythonPostproc final : PythonPart<Postproc, kPostprocException> {
  std::string name() const override {
    nb::gil_scoped_acquire gil;
    return class_of_self();
  }
  Result<bool> apply(schedule::Schedule& schedule) const override {
    return call("apply", [&](const nb::object& method) -> Result<bool> {
      SchedulePtr object = to_python(schedule);
      nb::object answer = method(object);
      schedule = object->schedule;
      if (answer.is_none()) {
        return argument_error("postproc/answer", name() + ".apply() returned None",
                              "return True for a candidate that is good, False for one that is not");
      }
      return truth_of(answer);
    });
  }
};

bool apply_postproc(const Postproc& postproc, const SchedulePtr& object) {
  require_native(postproc, "apply");
  schedule::Schedule changed = taken(object);
  const bool answer = unwrap_in(*object, gil_released([&] { return postproc.apply(changed); }));
  object->schedule = std::move(changed);
  return answer;
}

void bind_postproc_base(nb::module_& m) {
  nb::class_<Postproc, PythonPostproc>(
      m, "Postproc",
      "What is done to a schedule once all of its decisions are taken. Subclasses define apply(), and initialize() "
      "where they need to know the target.")
      .def(nb::init<>())
      .def("initialize", &initialize_part<Postproc>, "context"_a, "Called once, before the first apply().")
      .def("apply", &apply_postproc, "sch"_a,
           "Change a schedule.\n\nArgs:\n    sch: the schedule.\n\nReturns:\n"
           "    Whether the candidate is good; False refuses it.")
      .def("clone", &clone_part<Postproc>,
           "A postprocessor like this one, for another context. A subclass that does not define it is shared.",
           nb::sig("def clone(self) -> Postproc"))
      .def_static("defaults", &search::default_postprocs, "kind"_a,
                  "The postprocessors for a kind of target: \"llvm\", \"avx512\", \"vnni\", \"cuda\", ...")
      .def_static("create", &search::default_postprocs, "kind"_a,
                  "The postprocessors for a kind of target, by the name that TVM has for it: defaults().");
}

}  // namespace

void bind_postprocs(nb::module_& m) {
  bind_postproc_base(m);
  part<search::DisallowDynamicLoop>(m, "Refuse loops whose extent is not a constant.");
  part<search::RewriteParallelVectorizeUnroll>(
      m, "Carry out what rules wrote on root blocks about parallel, vectorized and unrolled loops.");
  part<search::RewriteReductionBlock>(m, "Give each reduction an init block of its own.");
  part<search::RewriteTensorize>(
      m, "Let blocks be computed by the tensor intrinsics that they name in an annotation.",
      "Make one.\n\nArgs:\n    vectorize_init_loop: vectorize inits for which there is no intrinsic.");
  part<search::RewriteLayout>(m,
                              "Store free parameters (\"layout_free_buffers\") in the order in which they are read.");
  part<search::RewriteCooperativeFetch>(m, "Let the threads of a block copy together what rules marked so.");
  part<search::RewriteUnboundBlock>(
      m, "Give the blocks that no rule has bound to blocks and threads.",
      "Make one.\n\nArgs:\n    max_threadblocks: how many blocks of threads a loop becomes at most.");
  part<search::VerifyGPUCode>(m, "Refuse programs that the target's GPU cannot run.",
                              "Make one.\n\nArgs:\n    open_grids: accept loops over blocks of threads whose lengths "
                              "only calls say.");
  part<search::VerifyVTCMLimit>(
      m, "Refuse programs that need too much tightly coupled memory.",
      "Make one.\n\nArgs:\n    vtcm_capacity: bytes there are in scope \"global.vtcm\"; 0 for no limit.");
  part<search::DisallowAsyncStridedMemCopy>(m, "Refuse asynchronous copies that are not contiguous.");
}

}  // namespace tilewright::python
