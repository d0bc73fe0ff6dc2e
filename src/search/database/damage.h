// Texts of a file that was harmed: by a bad disk, a copy that broke off, an editor.
//
// A record of which a text cannot be read keeps its number, its place and what can be printed of it; its outcome is
// "damaged", its error says which text it is. So it is found and counted, and taken for nothing that was measured. The
// file stays as it is.
#pragma once

#include <string>
#include <string_view>

#include "search/database/database.h"

namespace tilewright::search {

inline constexpr const char* kDamaged = "damaged";

/// The text, with U+FFFD for what is no UTF-8.
std::string readable(std::string text);

/// Whether it is JSON; an empty text is none.
bool is_json(const std::string& text);

/// Makes a record that cannot be read a damaged one, as above. `unread`: its field that could not be read already, or
/// an empty name.
void mark_damage(Record& record, std::string_view unread = {});

}  // namespace tilewright::search
