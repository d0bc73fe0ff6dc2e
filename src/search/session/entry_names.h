// Traces in a database name the blocks of its entry of the program. A program is equal to the entry whatever its blocks
// are called, so a session that tunes one with other names translates what it reads and what it writes.
//
//   entry     with T.block("C"):       get_block("C")          "C_local"       as every record of the entry has it
//   session   with T.block("prod"):    get_block("prod")       "prod_local"    as the user's program has it
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/stmt.h"
#include "search/database/database.h"

namespace tilewright::search {

class EntryNames {
 public:
  /// `entry` is null where both have the same names: then nothing is changed.
  EntryNames(Ref<Module> program, Ref<Module> entry) : program_(std::move(program)), entry_(std::move(entry)) {}

  /// Returns the record as the database keeps it.
  Record to_entry(Record record) const { return renamed(std::move(record), entry_, program_); }
  /// Returns a record of the database with the names of the session's program.
  Record of_entry(Record record) const { return renamed(std::move(record), program_, entry_); }
  std::vector<Record> of_entry(std::vector<Record> records) const;

 private:
  /// A trace that cannot be read stays as it is.
  Record renamed(Record record, const Ref<Module>& now, const Ref<Module>& was) const;

  Ref<Module> program_, entry_;
};

}  // namespace tilewright::search
