// Equality of programs in a search: which programs share records and measurements.
#pragma once

#include "ir/stmt.h"
#include "search/database/tuning_database.h"
#include "support/hash.h"

namespace tilewright::search {

/// "structural", "ignore-ndarray", "anchor-block". ArgumentError "search/equality" for other names.
Result<ModuleEquality> parse_module_equality(std::string_view name);

/// Returns a hash that is the same for equal programs.
Hash128 module_hash(const Ref<Module>& module, ModuleEquality equality);
bool modules_equal(const Ref<Module>& a, const Ref<Module>& b, ModuleEquality equality);

/// A hash that programs of one operator at different shapes share, whatever their names: without integer constants and
/// attributes of functions.
Hash128 operator_hash(const Ref<Module>& module);

/// Returns the anchor block: the block with an init, or of several the one with the most arithmetic operations in its
/// loops. Null if no block has an init.
Ref<Block> find_anchor_block(const Ref<Module>& module);

}  // namespace tilewright::search
