#include "search/session/final_round.h"

#include <algorithm>

#include "ir/structural.h"
#include "lower/pipeline.h"
#include "search/measure/candidate.h"
#include "search/session/known_results.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// The unscheduled program takes part in the finals if its first call, with cold caches, took at most this many times
/// as long as the best candidate, or at most this many seconds.
constexpr double kFirstCallFactor = 4, kShortFirstCall = 2e-3;
/// The unscheduled program is delivered if the best candidate takes this many times as long.
constexpr double kClearlySlower = 1.02;
/// Like kClearlySlower, but for the first candidate, if only times of the search are known.
constexpr double kFarSlower = 1.25;
/// The share of the time of the finals that one call of the unscheduled program may take to be timed in them.
constexpr double kBaselineCallShare = 0.1;
/// Ids that no other candidate has.
constexpr uint64_t kFirstId = uint64_t{1} << 63, kHeuristicId = UINT64_MAX - 1;

}  // namespace

bool FinalRound::is_finalist(uint64_t id) { return id >= kFirstId; }

void FinalRound::add(Finalist added) {
  const auto is_it = [&](const Finalist& other) { return other.record == added.record; };
  if (none_of(finalists_, is_it)) finalists_.push_back(std::move(added));
}

/// Builds the finalists that this session has not built and checked, as they would be delivered: a record may come from
/// another version.
Result<bool> FinalRound::begin(std::vector<Finalist> fastest, const Finalist* first) {
  finalists_ = std::move(fastest);
  if (first) add(*first);
  const Hash128& workload = task_.written.workload;
  const std::string& target = task_.written.target;
  TW_TRY(before, database_->best(workload, target));
  if (before) add({before->id, before->median(), task_.names.of_entry(*before).trace, {}});
  TW_TRY(earlier, database_->finals(workload, target));
  if (earlier) {
    TW_TRY(records, database_->records(workload, target));
    for (const Record& record : records) {
      if (record.id != earlier->winner || !record.is_ok()) continue;
      standing_.push_back(record.id);
      add({record.id, record.median(), task_.names.of_entry(record).trace, {}});
    }
  }
  if (first) standing_.push_back(first->record);
  for (size_t i : indices_of(finalists_)) {
    if (finalists_[i].object) continue;
    auto again = replayed(task_.module, finalists_[i].trace);
    if (again.ok()) build(kFirstId + i, again->module());
  }
  build_heuristic();
  return is_building() ? Result<bool>(true) : begin_turns();
}

/// A finalist that cannot be built takes no part.
void FinalRound::build(uint64_t id, const Ref<Module>& module) {
  lower::LowerOptions lowering;
  lowering.check_races = false;
  auto made = lower::lower(module, task_.target, lowering);
  if (!made.ok()) return;
  Candidate candidate = make_candidate(id, *made, task_.target, task_.function);
  candidate.check_only = true;
  pipeline_.submit(std::move(candidate));
  ++unbuilt_;
}

/// Unless one of the finalists is the same program.
void FinalRound::build_heuristic() {
  if (task_.heuristic.empty() || finalists_.empty()) return;
  auto schedule = replayed(task_.module, task_.heuristic);
  if (!schedule.ok()) return;
  for (const Finalist& finalist : finalists_) {
    auto other = replayed(task_.module, finalist.trace);
    if (other.ok() && structural_equal(schedule->module(), other->module())) heuristic_record_ = finalist.record;
  }
  if (!heuristic_record_) build(kHeuristicId, schedule->module());
}

Result<bool> FinalRound::take(const Measured& measured) {
  if (measured.id == kHeuristicId) {
    if (measured.is_ok()) heuristic_object_ = measured.object;
  } else if (measured.is_ok()) {
    finalists_[measured.id - kFirstId].object = measured.object;
  } else if (measured.outcome != Outcome::kCanceled) {
    note_failure_(measured.error);
  }
  return --unbuilt_ ? Result<bool>(true) : begin_turns();
}

bool FinalRound::written_may_win() const {
  const double first_call = task_.written_seconds;
  return task_.written_object && (first_call < kShortFirstCall || first_call < kFirstCallFactor * task_.best_seconds);
}

Result<bool> FinalRound::begin_turns() {
  std::erase_if(finalists_, [](const Finalist& finalist) { return !finalist.object; });
  if (finalists_.empty()) return false;
  FinalsRequest request;
  request.budget_seconds = task_.budget_seconds;
  const auto add = [&](const std::shared_ptr<const std::string>& object) {
    request.kernels.push_back({object, task_.function});
    return request.kernels.size() - 1;
  };
  for (const Finalist& finalist : finalists_) add(finalist.object);
  if (written_may_win()) written_place_ = add(task_.written_object);
  const size_t contestants = request.kernels.size();
  if (heuristic_object_) heuristic_place_ = add(heuristic_object_);
  if (!written_place_ && task_.written_object && task_.written_seconds < kBaselineCallShare * request.budget_seconds) {
    written_place_ = add(task_.written_object);
  }
  request.baselines = request.kernels.size() - contestants;
  if (request.kernels.size() < 2) return false;
  pipeline_.begin_finals(std::move(request));
  return true;
}

Status FinalRound::end(const FinalsResult& result) {
  if (result.error) note_failure_(*result.error);
  if (finalists_.empty()) return Ok{};
  const bool timed = !result.error && result.seconds.size() >= finalists_.size();
  std::vector<size_t> standing;
  for (const int64_t record : standing_) {
    for (size_t i : indices_of(finalists_)) {
      if (finalists_[i].record == record) standing.push_back(i);
    }
  }
  size_t winner = 0;  // in the order of the search
  if (standing.empty()) standing.push_back(winner);
  if (timed) {
    winner = winner_of(result, standing, finalists_.size());
  } else if (finalists_[standing.front()].seconds < kFarSlower * finalists_[winner].seconds) {
    winner = standing.front();
  }
  object_ = finalists_[winner].object;
  Finals finals{finalists_[winner].record, {finalists_[winner].seconds}, task_.last_record};
  if (timed) finals.seconds = seconds_in_finals(result, winner);
  if (timed && written_place_ == finalists_.size() && written_may_win() &&
      ratio_in_finals(result, winner, *written_place_).low > kClearlySlower) {
    winner = *written_place_;
    task_.written.seconds = finals.seconds = seconds_in_finals(result, winner);
    if (!result.host.empty()) task_.written.host = result.host;
    TW_TRY(id, database_->commit(task_.written));
    finals.winner = id;
    finals.last_record = task_.last_record = std::max(task_.last_record, id);
    object_ = task_.written_object;
  }
  if (timed) keep_times(result, winner, finals.winner);
  return database_->commit_finals(task_.written.workload, task_.written.target, finals);
}

/// Records the times of the finals: of the winner, of the others in the order of the search, and of the baselines.
void FinalRound::keep_times(const FinalsResult& result, size_t winner, int64_t winner_record) {
  const auto keep = [&](const char* kind, int64_t record, size_t kernel) {
    times_.push_back(time_in_finals(result, kind, record, kernel, winner));
  };
  keep(written_place_ == winner ? "written" : "trial", winner_record, winner);
  for (size_t i : indices_of(finalists_)) {
    if (i != winner) keep("trial", finalists_[i].record, i);
    if (heuristic_record_ == finalists_[i].record) heuristic_place_ = i;
  }
  if (heuristic_place_) keep("heuristic", heuristic_record_.value_or(0), *heuristic_place_);
  if (written_place_ && written_place_ != winner) keep("written", 0, *written_place_);
}

}  // namespace tilewright::search
