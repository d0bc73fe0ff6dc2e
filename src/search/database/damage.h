// Detects corrupt text columns of records, such as invalid UTF-8 or truncated JSON after a disk error.
//
// A record with a corrupt column is read with outcome "damaged", and its error names the column. It keeps its id, its
// trial index and the columns that are valid, so that it is listed and counted, but it never counts as a measurement.
// The file is not changed.
#pragma once

#include <string>
#include <string_view>

#include "search/database/database.h"

namespace tilewright::search {

inline constexpr const char* kDamaged = "damaged";

/// Returns the text with invalid UTF-8 replaced by U+FFFD.
std::string readable(std::string text);

/// Whether the text is valid JSON. An empty text is not.
bool is_json(const std::string& text);

/// Marks the record as damaged if one of its columns is corrupt. `unread`: a column that could not be decoded, or
/// empty.
void mark_damage(Record& record, std::string_view unread = {});

}  // namespace tilewright::search
