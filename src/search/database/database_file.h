// Operations on a path before SQLite opens it: recognizing our files, and creating a new one.
//
// SQLite takes an empty file for a new database and may write beside a file that it only reads, so foreign files are
// recognized by their first bytes, before any statement.
#pragma once

#include <string>

#include "support/result.h"

namespace tilewright::search {

/// Whether there is a file with something in it; an error when there is one that is not ours, or not all of it.
Result<bool> recognize_database(const std::string& path);

/// Makes an empty database under `path`, where there is nothing or an empty file. In one step: nobody ever sees a
/// half-made file, and of several processes that create it at once the first wins and the others find it there.
Status create_database(const std::string& path);

}  // namespace tilewright::search
