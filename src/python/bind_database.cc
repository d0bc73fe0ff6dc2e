// Databases of records, and the connection to a server, which a driver of Python has.
#include "python/database_objects.h"

#include "python/process_exit.h"
#include "python/search_components.h"

namespace tilewright::python {

using namespace search;

Hash128 hash_from_hex(const std::string& text) {
  auto word = [&](size_t at) { return std::stoull(text.substr(at, 16), nullptr, 16); };
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Exception(argument_error("search/hash", "'" + text + "' is not a hash of 32 hexadecimal digits",
                                   "as tw.ir.structural_hash() gives it, in hexadecimal"));
  }
  return {word(0), word(16)};
}

namespace {

constexpr const char* kCode = "database/exception";

nb::object value_to_python(const sql::Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return nb::int_(*number);
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* blob = std::get_if<sql::Blob>(&value)) return nb::bytes(blob->bytes.data(), blob->bytes.size());
  const auto* text = std::get_if<std::string>(&value);  // messages quote what kernels wrote
  return text ? nb::steal(PyUnicode_DecodeUTF8(text->data(), std::ssize(*text), "replace")) : nb::none();
}

sql::Value from_python(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (!nb::isinstance<nb::bytes>(value)) return nb::cast<std::string>(value);
  const auto bytes = nb::cast<nb::bytes>(value);
  return sql::Blob{{bytes.c_str(), bytes.size()}};
}

/// A server: a driver is called with a text and values, and gives rows.
class Server final : public sql::Connection {
 public:
  Server(std::string path, nb::callable driver)
      : Connection(sql::kPostgres, std::move(path)), driver_(std::move(driver)) {}
  void close() override { driver_.callable.attr("close")(); }

 private:
  Result<std::vector<sql::Row>> run_here(const std::string& text, const sql::Row& values) override {
    return in_python(kCode, [&]() -> Result<std::vector<sql::Row>> {
      nb::list given;
      for (const sql::Value& value : values) given.append(value_to_python(value));
      std::vector<sql::Row> rows;
      for (nb::handle row : driver_.callable(text, given)) {
        sql::Row& columns = rows.emplace_back();
        for (nb::handle value : row) columns.push_back(from_python(value));
      }
      return rows;
    });
  }
  HeldCallable driver_;
};

/// Runs database work without the GIL: it may wait for another process or a server.
template <class Work>
auto without_gil(Work&& work) {
  GilReleased release;
  return work();
}

/// Reports damaged records as warnings of the caller.
void warn_of_damage(Database& database) {
  for (const std::string& remark : without_gil([&] { return database.take_warnings(); })) {
    if (PyErr_WarnEx(PyExc_UserWarning, remark.c_str(), 2) < 0) throw nb::python_error();
  }
}

/// A method of the database for Python.
template <class T, class... Args>
auto asked(Result<T> (Database::*method)(Args...)) {
  return [method](Database& self, std::decay_t<Args>... args) {
    auto answer = without_gil([&] { return (self.*method)(args...); });
    warn_of_damage(self);
    if constexpr (std::is_same_v<T, Ok>) {
      unwrap_status(std::move(answer));
    } else {
      return unwrap(std::move(answer));
    }
  };
}

/// A class of what has a list of fields.
template <class T, auto... members>
nb::class_<T> bind_fields(nb::module_& m, const char* name, const char* doc, Fields<members...>) {
  nb::class_<T> cls(m, name, doc);
  const auto bind = [&]<class Field>(const std::string& field, Field T::* member) {
    if constexpr (std::is_same_v<Field, std::vector<double>>) {
      cls.def_prop_ro(field.c_str(), [member](const T& self) { return nb::tuple(nb::cast(self.*member)); });
    } else {
      cls.def_ro(field.c_str(), member);
    }
  };
  (bind(std::string(tilewright::detail::kMemberName<members>), members), ...);
  cls.attr("fields") = nb::make_tuple(std::string(tilewright::detail::kMemberName<members>)...);
  return cls;
}

void bind_rows(nb::module_& m) {
  bind_fields<Workload>(m, "Workload", "A program as databases know it.", Workload::Members());
  bind_fields<Finals>(m, "Finals", "What was found when the best were timed in interleaved rounds.", Finals::Members());
  bind_fields<Record>(m, "Record",
                      R"(One measured candidate, or one that failed.

Attributes:
    trace: its schedule as JSON.
    seconds: per call, one number a slice.
    median: of these; infinity where there are none.
    index: of the candidate in its session.
    verification: the tolerance of the result check, and the share of it that was used.
    outcome: "ok", or how it failed, which `error` says.)",
                      Record::Members())
      .def(nb::new_([](const nb::kwargs& given) {
        Record record;
        size_t num_known = 0;
        for_each_field(record, [&]<class Field>(std::string_view name, Field& field) {
          const std::string key(name);
          if (!given.contains(key.c_str())) return;
          ++num_known;
          // A text that is no hash raises an error of its own, which try_cast() may not.
          std::conditional_t<std::is_same_v<Field, Hash128>, std::string, Field> value;
          if (!nb::try_cast(given[key.c_str()], value)) throw nb::type_error((key + " is of another type").c_str());
          if constexpr (std::is_same_v<Field, Hash128>) {
            field = hash_from_hex(value);
          } else {
            field = std::move(value);
          }
        });
        if (num_known < given.size()) throw nb::type_error("there is no such field");
        return record;
      }))
      .def_prop_ro("median", &Record::median)
      .def_prop_ro(
          "verification",
          [](const Record& self) {
            const std::string& text = self.verification;
            return nb::module_::import_("json").attr("loads")(text.empty() ? "{}" : text);
          },
          nb::sig("def verification(self) -> dict[str, Any]"))
      .def(
          "__eq__", [](const Record& self, const Record& other) { return self == other; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"));
}

using Class = nb::class_<Database>;

void bind_records(Class& database) {
  database.def("workloads", asked(&Database::workloads))
      .def("top_k", asked(&Database::top_k), nb::arg("hash"), nb::arg("target"), nb::arg("count"))
      .def("records", asked(&Database::records), nb::arg("hash"), nb::arg("target"),
           "All of a program in the order of their commits, failures included; an empty target means any.")
      .def("warn_of_damage", &warn_of_damage, "Warns of each damaged record that was met since the last warning.")
      .def("__len__", asked(&Database::size), "How many records there are.")
      .def("commit_workload", asked(&Database::commit_workload), nb::arg("hash"), nb::arg("name"), nb::arg("script"),
           nb::arg("sizes") = "")
      .def(
          "commit",
          [](Database& self, const Record& record) { return unwrap(without_gil([&] { return self.commit(record); })); },
          nb::arg("record"), "Keeps a record of a program that was committed, of no session; gives its number.")
      .def(
          "on_commit",
          [](Database& self, nb::callable given) {
            self.on_commit = [held = std::make_shared<HeldCallable>(std::move(given))](const Workload& workload,
                                                                                       const Record& record) {
              return in_python(kCode, [&]() -> Status {
                held->callable(workload, record);
                return Ok{};
              });
            };
          },
          nb::arg("function"), "Calls a function with each record after its commit, behind its program.",
          nb::sig("def on_commit(self, function: Callable[[Workload, Record], object]) -> None"))
      .def("erase", asked(&Database::erase), nb::arg("ids"), "Forgets records by their numbers.")
      .def(
          "commit_finals",
          [](Database& self, const Hash128& hash, const std::string& target, int64_t winner,
             const std::vector<double>& seconds, int64_t last_record) {
            unwrap_status(
                without_gil([&] { return self.commit_finals(hash, target, {winner, seconds, last_record}); }));
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("winner"), nb::arg("seconds"), nb::arg("last_record"))
      .def("finals", asked(&Database::finals), nb::arg("hash"), nb::arg("target"))
      .def("meta", asked(&Database::meta), nb::arg("key"))
      .def("set_meta", asked(&Database::set_meta), nb::arg("key"), nb::arg("value"))
      .def("replace_meta", asked(&Database::replace_meta), nb::arg("key"), nb::arg("before").none(), nb::arg("value"),
           "Sets a value if it is `before`, None if there is none yet; gives whether it was.")
      .def("flush", asked(&Database::flush),
           "Moves what was committed from the log into the file, so that a copy of the file alone has it.")
      .def("close", &Database::close, "Ends the connection to a server.");
}

}  // namespace

void bind_database(nb::module_& m) {
  bind_rows(m);
  Class database(m, "Database", "Records of what was measured: in one SQLite file, in memory, or on a server.");
  database
      .def_static(
          "open",
          [](const std::string& path, bool read_only, double busy_timeout) {
            const DatabaseOptions options{read_only,
                                          std::chrono::milliseconds(static_cast<int64_t>(1e3 * busy_timeout))};
            return std::shared_ptr<Database>(unwrap(without_gil([&] { return Database::open(path, options); })));
          },
          nb::arg("path"), nb::arg("read_only") = false, nb::arg("busy_timeout") = 5.0)
      .def_static(
          "in_memory",
          [](const std::string& path) { return std::shared_ptr<Database>(unwrap(Database::in_memory(path))); },
          nb::arg("path") = ":memory:")
      .def_static(
          "on_server",
          [](const std::string& path, nb::callable driver) {
            auto server = std::make_unique<Server>(path, std::move(driver));
            return std::shared_ptr<Database>(unwrap(without_gil([&] { return Database::over(std::move(server)); })));
          },
          nb::arg("path"), nb::arg("driver"),
          "Tables of PostgreSQL behind a driver, which is called with a text and values, gives rows, and has close().",
          nb::sig("def on_server(path: str, driver: Callable[[str, list[Any]], list[tuple[Any, ...]]]) -> Database"))
      .def_prop_ro("path", &Database::path);
  bind_records(database);
}

}  // namespace tilewright::python
