#include "search/candidate_source.h"

#include <fmt/format.h>

namespace tilewright::search {
namespace {

using schedule::Random;
using schedule::ReplayOptions;
using schedule::Schedule;
using schedule::Trace;
using schedule::Value;

/// Streams of one attempt.
constexpr uint64_t kDecisions = 0, kWhichDecision = 1;

Trace up_to_last_draw(const Trace& trace) {
  size_t size = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (schedule::kind_info(trace[i].instruction).family == schedule::Family::kSample) size = i + 1;
  }
  return trace.prefix(size);
}

void append_text(const Value& value, std::string& text) {
  if (const auto* list = value.as<std::vector<Value>>()) {
    text += '[';
    for (const Value& item : *list) append_text(item, text);
    text += ']';
  } else if (const auto* number = value.as<int64_t>()) {
    text += fmt::format("{},", *number);
  }
}

}  // namespace

Result<std::vector<Value>> given_decisions(const Draw& request) {
  std::vector<Value> given;
  if (request.parent.empty()) return given;
  TW_TRY(parent, Trace::from_json(request.parent));
  given = parent.decisions();
  if (!given.empty()) given[Random::derive(request.seed, kWhichDecision, request.attempt).below(given.size())] = {};
  return given;
}

TraceSource::TraceSource(Ref<Module> module, Trace trace)
    : module_(std::move(module)), trace_(std::move(trace)), draws_(up_to_last_draw(trace_)) {}

Result<std::optional<Drawn>> TraceSource::draw(const Draw& request) {
  TW_TRY(given, given_decisions(request));
  ReplayOptions options;
  options.fresh = true;
  options.decide = [&](size_t draw, const auto&, const auto&) { return draw < given.size() ? given[draw] : Value{}; };

  // What was drawn before is known as soon as all is drawn, which is mostly early.
  TW_TRY(sketch, Schedule::make(module_));
  sketch.seed(Random::derive(request.seed, kDecisions, request.attempt));
  TW_RETURN_IF_ERROR(schedule::replay(draws_, sketch, options));
  const std::vector<Value> decisions = sketch.trace().decisions();
  std::string text;
  for (const Value& decision : decisions) append_text(decision, text);
  if (!drawn_.insert(text).second) return std::optional<Drawn>();

  if (draws_.size() == trace_.size()) return std::optional<Drawn>({sketch.module(), sketch.trace().as_json()});
  TW_TRY(whole, Schedule::make(module_));
  options.decide = [&](size_t draw, const auto&, const auto&) { return decisions[draw]; };
  TW_RETURN_IF_ERROR(schedule::replay(trace_, whole, options));
  return std::optional<Drawn>({whole.module(), whole.trace().as_json()});
}

Result<Drawn> redraw(const Ref<Module>& module, const std::string& trace) {
  TW_TRY(steps, Trace::from_json(trace));
  TW_TRY(schedule, Schedule::make(module));
  TW_RETURN_IF_ERROR(schedule::replay(steps, schedule));
  return Drawn{schedule.module(), trace};
}

}  // namespace tilewright::search
