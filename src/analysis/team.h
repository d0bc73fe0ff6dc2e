// Where the threads of a team wait for one another in a program of blocks: between statements, one of which writes what
// the other one reads or writes, in memory that threads share. Blocks say what belongs together, not when; programs
// without blocks have barriers of their own, and a missing one is a race.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Pointers to memory that threads share, by what a statement does to it. Those of views count as what they show.
struct Touched {
  std::unordered_set<const NodeBase*> read, written;

  static Touched by(const Stmt& s);
  void add(const Touched& other);
  /// The order of the two matters.
  bool depends_on(const Touched& other) const;
};

bool has_blocks(const Stmt& s);
/// Somewhere in the statement, the threads that run it wait for one another.
bool has_waits(const Stmt& s);

}  // namespace tilewright::analysis
