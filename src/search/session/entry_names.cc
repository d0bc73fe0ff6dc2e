#include "search/session/entry_names.h"

#include "search/renamed_trace.h"

namespace tilewright::search {

std::vector<Record> EntryNames::of_entry(std::vector<Record> records) const {
  for (Record& record : records) record = of_entry(std::move(record));
  return records;
}

Record EntryNames::renamed(Record record, const Ref<Module>& now, const Ref<Module>& was) const {
  if (!entry_.defined()) return record;
  auto trace = schedule::Trace::from_json(record.trace);
  if (trace.ok()) record.trace = as_named_in(now, was, *trace).as_json();
  return record;
}

}  // namespace tilewright::search
