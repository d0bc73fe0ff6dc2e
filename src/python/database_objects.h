// Records and databases as Python sees them.
#pragma once

#include "python/module.h"
#include "search/database/database.h"

namespace tilewright::python {

/// Of 32 hexadecimal digits.
Hash128 hash_from_hex(const std::string& text);

nb::dict record_dict(const search::Record& record);

void bind_database(nb::module_& m);

}  // namespace tilewright::python
