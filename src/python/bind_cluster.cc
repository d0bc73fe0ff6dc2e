// Measuring on other machines. What a session submits goes to an object of Python, which has it built and measured
// somewhere; there, on a worker, a pipeline without a session does so. Between the two, results travel as bytes.
#include "python/bind_cluster.h"

#include <nanobind/stl/unique_ptr.h>

#include <cmath>

#include "python/measured_arguments.h"
#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/measure/candidate.h"
#include "search/measure/frame.h"
#include "search/measure/messages.h"
#include "support/ranges.h"

namespace tilewright::python {

using namespace search;

namespace {

constexpr const char* kFailed = "cluster/exception";

nb::object bytes_or_none(const std::shared_ptr<const std::string>& text) {
  return text ? nb::object(nb::bytes(text->data(), text->size())) : nb::none();
}
std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
std::shared_ptr<const std::string> object_of(const nb::object& bytes) {
  if (bytes.is_none()) return nullptr;
  return std::make_shared<const std::string>(text_of(nb::cast<nb::bytes>(bytes)));
}

nb::bytes encoded(const Measured& measured) {
  Encoder encoder;
  const_cast<Measured&>(measured).fields(encoder);  // an Encoder only reads
  const std::string bytes = encoder.take();
  return nb::bytes(bytes.data(), bytes.size());
}

/// Bytes from a worker are untrusted: if they cannot be decoded, the candidate is recorded as a failure.
Measured decoded(const nb::bytes& bytes) {
  Measured measured;
  Decoder decoder({bytes.c_str(), bytes.size()});
  measured.fields(decoder);
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds > 0; };
  const bool are_times = all_of(measured.seconds, is_time) &&
                         (measured.incumbent_seconds == 0 || is_time(measured.incumbent_seconds)) &&
                         (measured.build_seconds == 0 || is_time(measured.build_seconds));
  if (decoder.ok() && static_cast<int>(measured.outcome) < kNumOutcomes && are_times) return measured;
  Measured garbage;
  garbage.outcome = Outcome::kRunCrash;
  garbage.error = resource_error("cluster/garbage", "a worker answered with bytes that are not a result");
  return garbage;
}

Diagnostic diagnostic_from(const nb::tuple& parts) {
  return resource_error(nb::cast<std::string>(parts[0]), nb::cast<std::string>(parts[1]),
                        nb::cast<std::string>(parts[2]));
}

int64_t milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1000); }

/// The session's side: forwards each call to a Python object.
class PythonMeasurer final : public Measurer {
 public:
  PythonMeasurer(nb::object object, std::shared_ptr<Arguments> arguments, int threads)
      : object_(std::move(object)), arguments_(std::move(arguments)), plan_(plan_cpus(usable_processors(), threads)) {
    plan_.exclusive = false;  // nothing need be measured here
  }
  ~PythonMeasurer() override {
    nb::gil_scoped_acquire gil;
    (void)call([&] { object_.attr("close")(); });
    object_.reset();
  }

  void submit(Candidate candidate) override {
    ++outstanding_;
    const bool given = call([&] {
      object_.attr("submit")(candidate.id, nb::bytes(candidate.module.data(), candidate.module.size()),
                             nb::bytes(candidate.options.data(), candidate.options.size()), candidate.entry,
                             candidate.reference, candidate.check_only, candidate.is_baseline, candidate.known_seconds);
    });
    if (given) return;
    Measured canceled;
    canceled.id = candidate.id;
    canceled.outcome = Outcome::kCanceled;
    canceled.error = *failure_;
    refused_.push_back(std::move(canceled));
  }

  size_t outstanding() const override { return outstanding_; }

  std::vector<Measured> poll(std::chrono::milliseconds timeout) override {
    std::vector<Measured> done = std::exchange(refused_, {});
    const double seconds = done.empty() ? 1e-3 * static_cast<double>(timeout.count()) : 0.0;
    call([&] {
      for (nb::handle item : object_.attr("poll")(seconds)) done.push_back(taken(item));
    });
    outstanding_ -= std::min(outstanding_, done.size());
    return done;
  }

  void begin_finals(FinalsRequest request) override {
    call([&] {
      nb::list objects, entries;
      for (const FinalsRequest::Kernel& kernel : request.kernels) {
        objects.append(bytes_or_none(kernel.object));
        entries.append(kernel.entry);
      }
      object_.attr("begin_finals")(objects, entries, request.baselines, request.rounds, request.slice_seconds,
                                   request.budget_seconds);
    });
  }

  std::optional<FinalsResult> poll_finals(std::chrono::milliseconds timeout) override {
    std::optional<FinalsResult> result;
    const bool answered = call([&] {
      nb::object answer = object_.attr("poll_finals")(1e-3 * static_cast<double>(timeout.count()));
      if (answer.is_none()) return;
      FinalsResult& found = result.emplace();
      found.host = nb::cast<std::string>(answer[0]);
      found.seconds = nb::cast<std::vector<std::vector<double>>>(answer[1]);
      found.disturbed = nb::cast<std::vector<std::vector<bool>>>(answer[2]);
      if (!answer[3].is_none()) found.error = diagnostic_from(nb::cast<nb::tuple>(answer[3]));
    });
    if (!answered) result.emplace().error = *failure_;
    return result;
  }

  void drop() override {
    call([&] { object_.attr("drop")(); });
  }
  void cancel() override {
    call([&] { object_.attr("cancel")(); });
  }

  std::optional<Diagnostic> failure() const override {
    call([&] {
      nb::object why = object_.attr("failure")();
      if (failure_ || why.is_none()) return;  // else an error of tilewright.errors
      failure_ = diagnostic_from(nb::make_tuple(why.attr("code"), why.attr("message"), why.attr("hint")));
    });
    return failure_;
  }

  Activities activities() const override {
    Activities result;
    call([&] {
      const auto seconds = nb::cast<std::vector<double>>(object_.attr("activities")());
      std::copy_n(seconds.begin(), std::min(seconds.size(), kNumActivities), result.seconds.begin());
      if (seconds.size() > kNumActivities) result.building = seconds[kNumActivities];
    });
    return result;
  }

  const CpuPlan& cpu_plan() const override { return plan_; }

 private:
  /// Runs the body with the GIL held. An exception becomes the failure that ends the search; returns false then.
  template <class Body>
  bool call(const Body& body) const {
    const Status status = in_python(kFailed, [&]() -> Status {
      body();
      return Ok{};
    });
    if (!status.ok() && !failure_) failure_ = status.error();
    return status.ok();
  }

  /// `item`: (id, encoded result, object code, host, time of the incumbent, note, outputs of the reference or None)
  Measured taken(nb::handle item) const {
    Measured measured = decoded(nb::cast<nb::bytes>(item[1]));
    measured.id = nb::cast<uint64_t>(item[0]);
    measured.object = object_of(item[2]);
    measured.host = nb::cast<std::string>(item[3]);
    measured.incumbent_reference = nb::cast<double>(item[4]);
    measured.note = nb::cast<std::string>(item[5]);
    if (item[6].is_none()) return measured;
    size_t index = 0;
    for (nb::handle output : item[6]) {
      while (index < arguments_->specs().size() && arguments_->specs()[index].role == ArgumentRole::kInput) ++index;
      unwrap(arguments_->set_expected(index, bytes_of(nb::cast<nb::bytes>(output)), arguments_->tolerance(index)));
      ++index;
    }
    return measured;
  }

  nb::object object_;
  std::shared_ptr<Arguments> arguments_;
  CpuPlan plan_;
  size_t outstanding_ = 0;
  std::vector<Measured> refused_;
  mutable std::optional<Diagnostic> failure_;
};

/// The worker's side: builds, or measures what was built elsewhere, with the arguments of one program.
class WorkerPipeline {
 public:
  WorkerPipeline(const nb::object& arguments, int64_t reduction_length, const PipelineOptions& options) {
    arguments_ = unwrap(make_arguments(arguments, reduction_length));
    GilReleased release;
    pipeline_ = unwrap(MeasurePipeline::start(arguments_, options));
  }

  uint64_t build(const nb::bytes& module, const nb::bytes& options) {
    Candidate candidate{.id = next_, .module = text_of(module), .options = text_of(options), .entry = {}};
    candidate.build_only = true;
    return submit(std::move(candidate));
  }

  uint64_t measure(const nb::bytes& object, std::string entry, const nb::object& incumbent, bool reference,
                   bool check_only, bool is_baseline) {
    Candidate candidate{.id = next_, .module = {}, .options = {}, .entry = std::move(entry)};
    candidate.reference = reference;
    candidate.check_only = check_only;
    candidate.is_baseline = is_baseline;
    candidate.object = object_of(object);
    candidate.incumbent = object_of(incumbent);
    return submit(std::move(candidate));
  }

  /// (number, result as bytes, object) of what is done.
  nb::list poll(double seconds) {
    const auto done = gil_released(
        [held = pipeline(), seconds] { return held->poll(std::chrono::milliseconds(milliseconds(seconds))); });
    raise_if_process_ends();
    nb::list results;
    for (const Measured& each : done)
      results.append(nb::make_tuple(each.id, encoded(each), bytes_or_none(each.object)));
    if (auto failure = pipeline()->failure()) throw Exception(*failure);
    return results;
  }

  void begin_finals(const nb::list& objects, const std::vector<std::string>& entries, size_t baselines, int rounds,
                    double slice_seconds, double budget_seconds) {
    FinalsRequest request;
    request.baselines = baselines;
    request.rounds = rounds;
    request.slice_seconds = slice_seconds;
    request.budget_seconds = budget_seconds;
    for (size_t i : indices_of(entries)) request.kernels.push_back({object_of(objects[i]), entries[i]});
    pipeline()->begin_finals(std::move(request));
  }

  nb::object poll_finals(double seconds) {
    const auto done = gil_released(
        [held = pipeline(), seconds] { return held->poll_finals(std::chrono::milliseconds(milliseconds(seconds))); });
    raise_if_process_ends();
    if (!done) return nb::none();
    nb::object error = nb::none();
    if (done->error) error = nb::make_tuple(done->error->code, done->error->message, done->error->hint);
    return nb::make_tuple(done->seconds, done->disturbed, error);
  }

  /// Returns the expected contents of outputs and in-out arguments, in order, after a call of the reference.
  nb::list expected() const {
    nb::list outputs;
    for (size_t i = 0; i < arguments_->specs().size(); ++i) {
      if (arguments_->specs()[i].role == ArgumentRole::kInput) continue;
      const std::vector<std::byte>* values = arguments_->expected(i);
      if (values) outputs.append(nb::bytes(values->data(), values->size()));
    }
    return outputs;
  }
  void loosen(const std::string& name, double absolute) {
    for (size_t i = 0; i < arguments_->specs().size(); ++i) {
      if (arguments_->specs()[i].name == name) arguments_->loosen(i, absolute);
    }
  }

  void drop() { pipeline()->drop(); }
  /// Closes the pipeline. If another thread waits in poll(), that returns.
  void close() {
    std::shared_ptr<MeasurePipeline> ending = std::move(pipeline_);
    if (!ending) return;
    GilReleased release;
    ending->cancel();
    ending.reset();
  }
  std::vector<int> pids() const { return pipeline_ ? pipeline_->helper_pids() : std::vector<int>(); }

 private:
  std::shared_ptr<MeasurePipeline> pipeline() const {
    if (!pipeline_) throw Exception(resource_error("measure/canceled", "the measurement was canceled"));
    return pipeline_;
  }
  uint64_t submit(Candidate candidate) {
    pipeline()->submit(std::move(candidate));
    return next_++;
  }

  std::shared_ptr<Arguments> arguments_;
  std::shared_ptr<MeasurePipeline> pipeline_;  ///< null once it is closed
  uint64_t next_ = 0;
};

void bind_worker_pipeline(nb::module_& m) {
  nb::class_<WorkerPipeline>(m, "WorkerPipeline",
                             "Builds, or measures what was built elsewhere, in helper processes of a worker.")
      .def(nb::init<const nb::object&, int64_t, const PipelineOptions&>(), nb::kw_only(), "arguments"_a,
           "reduction_length"_a, "options"_a)
      .def("build", &WorkerPipeline::build, "module"_a, "options"_a, "Takes a build on; gives its number.")
      .def("measure", &WorkerPipeline::measure, "object"_a, "entry"_a, "incumbent"_a.none(), "reference"_a = false,
           "check_only"_a = false, "is_baseline"_a = false, "Takes a kernel on; gives its number.")
      .def("poll", &WorkerPipeline::poll, "seconds"_a,
           "(number, result as bytes, object code) of what is done; waits for the first at most so long.",
           nb::sig("def poll(self, seconds: float) -> list[tuple[int, bytes, bytes | None]]"))
      .def("begin_finals", &WorkerPipeline::begin_finals, "objects"_a, "entries"_a, "baselines"_a, "rounds"_a,
           "slice_seconds"_a, "budget_seconds"_a)
      .def("poll_finals", &WorkerPipeline::poll_finals, "seconds"_a,
           "(seconds, whether disturbed, error), each of the first two by kernel and round; None: not yet.",
           nb::sig("def poll_finals(self, seconds: float) -> "
                   "tuple[list[list[float]], list[list[bool]], tuple[str, str, str] | None] | None"))
      .def("expected", &WorkerPipeline::expected, nb::sig("def expected(self) -> list[bytes]"),
           "What outputs have to hold, once a reference was called.")
      .def("loosen", &WorkerPipeline::loosen, "name"_a, "absolute"_a)
      .def("drop", &WorkerPipeline::drop, "What is under way comes back as canceled.")
      .def("close", &WorkerPipeline::close, "Ends the helper processes.")
      .def_prop_ro("pids", &WorkerPipeline::pids);
}

}  // namespace

MakeMeasurer measurer_by(const nb::object& function) {
  return
      [held = std::make_shared<HeldCallable>(nb::cast<nb::callable>(function))](std::shared_ptr<Arguments> arguments) {
        return in_python(kFailed, [&]() -> Result<std::unique_ptr<Measurer>> {
          nb::object measurer = held->callable();
          const int threads = nb::cast<int>(measurer.attr("threads"));
          return std::unique_ptr<Measurer>(
              std::make_unique<PythonMeasurer>(std::move(measurer), std::move(arguments), threads));
        });
      };
}

void bind_cluster(nb::module_& m) {
  bind_worker_pipeline(m);
  m.def(
      "measured_facts",
      [](const nb::bytes& bytes) {
        const Measured measured = decoded(bytes);
        nb::dict facts;
        facts["outcome"] = std::string(outcome_name(measured.outcome));
        facts["seconds"] = measured.seconds;
        facts["median"] = measured.median();
        facts["contender"] = measured.contender;
        facts["noisy"] = measured.noisy;
        facts["rejected"] = measured.rejected;
        facts["incumbent_seconds"] = measured.incumbent_seconds;
        facts["build_seconds"] = measured.build_seconds;
        facts["code"] = measured.error.code;
        facts["message"] = measured.error.message;
        facts["hint"] = measured.error.hint;
        return facts;
      },
      "result"_a, "What a result says that travels as bytes.");
  m.def(
      "raise_reference_failure",
      [](const std::string& name, const nb::bytes& result) {
        throw Exception(reference_failure(name, decoded(result)));
      },
      "name"_a, "result"_a, "Raises why nothing can be compared with a program, whose own measurement has failed.",
      nb::sig("def raise_reference_failure(name: str, result: bytes) -> typing.NoReturn"));
  m.def(
      "failed_measurement",
      [](const std::string& outcome, const std::string& code, const std::string& message, const std::string& hint) {
        Measured failed;
        failed.outcome = Outcome::kRunCrash;
        for (int kind = 0; kind < kNumOutcomes; ++kind) {
          if (outcome_name(static_cast<Outcome>(kind)) == outcome) failed.outcome = static_cast<Outcome>(kind);
        }
        failed.error = resource_error(code, message, hint);
        return encoded(failed);
      },
      "outcome"_a, "code"_a, "message"_a, "hint"_a = "", "Bytes of a result that is a failure.");
  m.def(
      "plan_processors",
      [](int threads) {
        const CpuPlan plan = plan_cpus(usable_processors(), threads);
        return nb::make_tuple(plan.measure, plan.build, plan.exclusive);
      },
      "threads"_a, "(processors of a kernel of so many threads, those of builds, whether they are the same).",
      nb::sig("def plan_processors(threads: int) -> tuple[list[int], list[int], bool]"));
  m.def(
      "candidate_parts",
      [](const Ref<Module>& scheduled, const Target& target, bool as_written) {
        const Candidate candidate = as_written
                                        ? unwrap(reference_candidate(0, scheduled, target, ""))
                                        : make_candidate(0, unwrap(lower_candidate(scheduled, target)), target, "");
        return nb::make_tuple(nb::bytes(candidate.module.data(), candidate.module.size()),
                              nb::bytes(candidate.options.data(), candidate.options.size()));
      },
      "scheduled"_a, "target"_a, "as_written"_a = false,
      "(lowered module, options): what :meth:`WorkerPipeline.build` takes.",
      nb::sig("def candidate_parts(scheduled: Module, target: Target, as_written: bool = False) -> "
              "tuple[bytes, bytes]"));
  m.attr("ABI_VERSION") = std::to_string(TW_ABI_VERSION) + "." + std::to_string(kProtocolVersion);
}

}  // namespace tilewright::python
