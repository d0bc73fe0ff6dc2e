// When two programs count as the same in a search.
#pragma once

#include "ir/stmt.h"
#include "search/database/tuning_database.h"
#include "support/hash.h"

namespace tilewright::search {

/// "structural", "ignore-ndarray", "anchor-block". ArgumentError "search/equality" for other names.
Result<ModuleEquality> parse_module_equality(std::string_view name);

/// Programs that count as the same have the same hash.
Hash128 module_hash(const Ref<Module>& module, ModuleEquality equality);
bool modules_equal(const Ref<Module>& a, const Ref<Module>& b, ModuleEquality equality);

/// A hash that programs of one operator at different shapes share, whatever their names: without integer constants and
/// attributes of functions.
Hash128 operator_hash(const Ref<Module>& module);

/// The block that most of the work is in: the only one with an init; of several, that whose loops do the most
/// operations on numbers; null where none has one.
Ref<Block> find_anchor_block(const Ref<Module>& module);

}  // namespace tilewright::search
