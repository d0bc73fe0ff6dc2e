// Databases of records: the one in SQLite, and those that Python defines.
#include "python/database_objects.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/process_exit.h"
#include "python/search_components.h"
#include "search/database/json_lines.h"
#include "search/database/upkeep.h"

namespace tilewright::python {

using namespace search;

Hash128 hash_from_hex(const std::string& text) {
  auto word = [&](size_t at) { return std::stoull(text.substr(at, 16), nullptr, 16); };
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Exception(argument_error("search/hash", "'" + text + "' is no hash of 32 hexadecimal digits",
                                   "as tw.ir.structural_hash() gives it, in hexadecimal"));
  }
  return {word(0), word(16)};
}

nb::dict record_dict(const Record& record) {
  nb::dict result;
  result["id"] = record.id;
  result["workload"] = record.workload.hex();
  result["target"] = record.target;
  result["trace"] = record.trace;
  result["decisions"] = record.decisions;
  result["seconds"] = record.seconds;
  result["median"] = record.median();
  result["outcome"] = record.outcome;
  result["error"] = record.error;
  result["verification"] = record.verification;
  result["seed"] = record.seed;
  result["round"] = record.round;
  result["index"] = record.index;
  result["host"] = record.host;
  result["versions"] = record.versions;
  result["created"] = record.created;
  return result;
}

namespace {

template <class T>
T item(nb::handle dict, const char* key) {
  return nb::cast<T>(dict[key]);
}

Record record_of(nb::handle row) {
  Record record;
  record.id = item<int64_t>(row, "id");
  record.workload = hash_from_hex(item<std::string>(row, "workload"));
  record.target = item<std::string>(row, "target");
  record.trace = item<std::string>(row, "trace");
  record.decisions = item<std::string>(row, "decisions");
  record.seconds = item<std::vector<double>>(row, "seconds");
  record.outcome = item<std::string>(row, "outcome");
  record.error = item<std::string>(row, "error");
  record.verification = item<std::string>(row, "verification");
  record.seed = item<uint64_t>(row, "seed");
  record.round = item<int64_t>(row, "round");
  record.index = item<int64_t>(row, "index");
  // Databases that were written before records said it know nothing of hosts.
  if (PyMapping_HasKeyString(row.ptr(), "host")) record.host = item<std::string>(row, "host");
  record.versions = item<std::string>(row, "versions");
  record.created = item<std::string>(row, "created");
  return record;
}

/// What a database of Python gave; `database` looks for damage.
std::vector<Record> records_of(Database& database, nb::handle rows) {
  std::vector<Record> records;
  for (nb::handle row : rows) {
    records.push_back(record_of(row));
    database.examine(records.back());
  }
  return records;
}

nb::list record_list(const std::vector<Record>& records) {
  nb::list result;
  for (const Record& record : records) result.append(record_dict(record));
  return result;
}

/// What was found to be damaged, as warnings of who asks.
void tell_damage(Database& database) {
  for (const std::string& remark : database.take_remarks()) {
    if (PyErr_WarnEx(PyExc_UserWarning, remark.c_str(), 2) < 0) throw nb::python_error();
  }
}

nb::list told_list(Database& database, const std::vector<Record>& records) {
  tell_damage(database);
  return record_list(records);
}

struct PythonDatabase final : Database {
  NB_TRAMPOLINE(Database);

  using Database::commit_workload;
  std::string path() const override {
    nb::gil_scoped_acquire gil;
    return nb::cast<std::string>(overridden<Database>(this, "path"));
  }
  Status commit_workload(const Hash128& hash, const std::string& name, const std::string& script,
                         const std::string& sizes) override {
    return told("commit_workload", hash.hex(), name, script, sizes);
  }
  Result<std::vector<Workload>> workloads() override {
    return in_python(kCode, [&]() -> Result<std::vector<Workload>> {
      std::vector<Workload> all;
      for (nb::handle row : overridden<Database>(this, "workloads")()) {
        all.push_back({hash_from_hex(item<std::string>(row, "hash")), item<std::string>(row, "name"),
                       item<std::string>(row, "script"), item<std::string>(row, "created"),
                       item<std::string>(row, "sizes")});
      }
      return all;
    });
  }
  Result<std::vector<Record>> records(const Hash128& workload, const std::string& target) override {
    return in_python(kCode, [&]() -> Result<std::vector<Record>> {
      return records_of(*this, overridden<Database>(this, "records")(workload.hex(), target));
    });
  }
  Status erase(const std::vector<int64_t>& ids) override { return told("erase", ids); }
  Status commit_finals(const Hash128& workload, const std::string& target, const Finals& finals) override {
    return told("commit_finals", workload.hex(), target, finals.winner, finals.seconds, finals.last_record);
  }
  Result<std::optional<Finals>> finals(const Hash128& workload, const std::string& target) override {
    return in_python(kCode, [&]() -> Result<std::optional<Finals>> {
      nb::object row = overridden<Database>(this, "finals")(workload.hex(), target);
      if (row.is_none()) return std::optional<Finals>();
      return std::optional<Finals>(
          {item<int64_t>(row, "winner"), item<std::vector<double>>(row, "seconds"), item<int64_t>(row, "last_record")});
    });
  }
  Result<std::optional<Session>> session(const SessionKey& key) override {
    TW_TRY(records, session_records(key));
    return in_python(kCode, [&]() -> Result<std::optional<Session>> {
      nb::object state = asked("session", key);
      if (state.is_none()) return std::optional<Session>();
      Session session;
      session.state = nb::cast<std::string>(state);
      session.trials = static_cast<int64_t>(records.size());
      for (const Record& record : records) session.indices.push_back(record.index);
      return std::optional<Session>(std::move(session));
    });
  }
  Result<std::vector<Record>> session_records(const SessionKey& key) override {
    return in_python(kCode,
                     [&]() -> Result<std::vector<Record>> { return records_of(*this, asked("session_records", key)); });
  }
  Status save_session(const SessionKey& key, const std::string& state) override {
    return in_python(kCode, [&]() -> Status {
      asked("save_session", key, state);
      return Ok{};
    });
  }
  Status forget_session(const SessionKey& key) override {
    return in_python(kCode, [&]() -> Status {
      asked("forget_session", key);
      return Ok{};
    });
  }
  Status set_meta(const std::string& key, const std::string& value) override { return told("set_meta", key, value); }
  Result<std::optional<std::string>> meta(const std::string& key) override {
    return in_python(kCode, [&]() -> Result<std::optional<std::string>> {
      nb::object value = overridden<Database>(this, "meta")(key);
      if (value.is_none()) return std::optional<std::string>();
      return std::optional<std::string>(nb::cast<std::string>(value));
    });
  }

 private:
  static constexpr const char* kCode = "database/exception";

  Result<int64_t> store(const Record& record, const SessionStep* step) override {
    return in_python(kCode, [&]() -> Result<int64_t> {
      nb::object space = step ? nb::cast(step->space.hex()) : nb::none();
      return nb::cast<int64_t>(
          overridden<Database>(this, "store")(record_dict(record), space, step ? step->state : std::string()));
    });
  }
  template <class... Args>
  Status told(const char* method, const Args&... args) {
    return in_python(kCode, [&]() -> Status {
      overridden<Database>(this, method)(args...);
      return Ok{};
    });
  }
  /// What the method says of a session.
  template <class... Args>
  nb::object asked(const char* method, const SessionKey& key, const Args&... args) {
    return overridden<Database>(this, method)(key.workload.hex(), key.target, key.space.hex(), key.seed, args...);
  }
};

/// What may wait for another process, while other threads of Python go on.
template <class Work>
auto without_gil(Work&& work) {
  GilReleased release;
  return work();
}

SessionKey session_key(const std::string& workload, const std::string& target, const std::string& space,
                       uint64_t seed) {
  return {hash_from_hex(workload), target, hash_from_hex(space), seed};
}

int64_t commit(Database& self, const std::string& hash, const std::string& target, const std::string& trace,
               const std::vector<double>& seconds, const std::string& outcome, const std::string& error,
               const std::string& host, const std::string& versions) {
  Record record;
  record.workload = hash_from_hex(hash);
  record.target = target;
  record.trace = trace;
  record.seconds = seconds;
  record.outcome = outcome;
  record.error = error;
  record.host = host;
  record.versions = versions;
  return unwrap(without_gil([&] { return self.commit(record); }));
}

nb::dict workload_dict(const Workload& workload) {
  nb::dict result;
  result["hash"] = workload.hash.hex();
  result["name"] = workload.name;
  result["script"] = workload.script;
  result["created"] = workload.created;
  result["sizes"] = workload.sizes;
  return result;
}

nb::list workload_list(Database& self) {
  nb::list result;
  for (const Workload& workload : unwrap(self.workloads())) result.append(workload_dict(workload));
  return result;
}

using Class = nb::class_<Database, PythonDatabase>;

void bind_records(Class& database) {
  database.def("workloads", &workload_list)
      .def("top_k",
           [](Database& self, const std::string& hash, const std::string& target, size_t count) {
             return told_list(self, unwrap(self.top_k(hash_from_hex(hash), target, count)));
           })
      .def(
          "records",
          [](Database& self, const std::string& hash, const std::string& target) {
            return told_list(self, unwrap(self.records(hash_from_hex(hash), target)));
          },
          "All of a program in the order of their commits, failures included; an empty target means any.")
      .def(
          "examined", [](Database& self, const nb::list& rows) { return told_list(self, records_of(self, rows)); },
          nb::arg("rows"),
          "Records as they are given to who asks: those that cannot be read have the outcome \"damaged\", which is "
          "told.",
          nb::sig("def examined(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]"))
      .def("tell_damage", &tell_damage, "Warns of each damaged record that was met since the last warning.")
      .def("count_outcomes",
           [](Database& self, const std::string& hash, const std::string& target) {
             nb::dict result;
             for (const auto& [name, count] : unwrap(self.count_outcomes(hash_from_hex(hash), target)))
               result[name.c_str()] = count;
             return result;
           })
      .def(
          "commit_workload",
          [](Database& self, const std::string& hash, const std::string& name, const std::string& script,
             const std::string& sizes) {
            const Hash128 workload = hash_from_hex(hash);
            unwrap_status(without_gil([&] { return self.commit_workload(workload, name, script, sizes); }));
          },
          nb::arg("hash"), nb::arg("name"), nb::arg("script"), nb::arg("sizes") = "")
      .def("commit", &commit, nb::arg("hash"), nb::arg("target"), nb::arg("trace"), nb::arg("seconds"),
           nb::arg("outcome"), nb::arg("error"), nb::arg("host") = "", nb::arg("versions") = "",
           "Keeps a record of a program that was committed, of no session; gives its number.")
      .def(
          "erase",
          [](Database& self, const std::vector<int64_t>& ids) {
            unwrap_status(without_gil([&] { return self.erase(ids); }));
          },
          nb::arg("ids"), "Forgets records by their numbers.")
      .def("meta",
           [](Database& self, const std::string& key) -> nb::object {
             std::optional<std::string> value = unwrap(self.meta(key));
             return value ? nb::object(nb::str(value->c_str(), value->size())) : nb::none();
           })
      .def("set_meta",
           [](Database& self, const std::string& key, const std::string& value) {
             unwrap_status(without_gil([&] { return self.set_meta(key, value); }));
           })
      .def(
          "flush", [](Database& self) { unwrap_status(without_gil([&] { return self.flush(); })); },
          "Moves what was committed from the log into the file, so that a copy of the file alone has it.");
}

/// What sessions ask; subclasses define all of these.
void bind_sessions(Class& database) {
  database
      .def(
          "store",
          [](Database& self, const nb::dict& record, const nb::object& space, const std::string& state) {
            const Record row = record_of(record);
            if (space.is_none()) return unwrap(without_gil([&] { return self.commit(row); }));
            const SessionStep step{hash_from_hex(nb::cast<std::string>(space)), state};
            return unwrap(without_gil([&] { return self.commit(row, step); }));
          },
          nb::arg("record"), nb::arg("space").none(), nb::arg("state"),
          nb::sig("def store(self, record: dict[str, Any], space: str | None, state: str) -> int"),
          "Keeps a record, of a session where a space says which; gives its number, or that of the one that has its "
          "place in the session already.")
      .def(
          "commit_finals",
          [](Database& self, const std::string& hash, const std::string& target, int64_t winner,
             const std::vector<double>& seconds, int64_t last_record) {
            const Hash128 workload = hash_from_hex(hash);
            const Finals finals{winner, seconds, last_record};
            unwrap_status(without_gil([&] { return self.commit_finals(workload, target, finals); }));
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("winner"), nb::arg("seconds"), nb::arg("last_record"))
      .def(
          "finals",
          [](Database& self, const std::string& hash, const std::string& target) -> nb::object {
            std::optional<Finals> finals = unwrap(self.finals(hash_from_hex(hash), target));
            if (!finals) return nb::none();
            nb::dict row;
            row["winner"] = finals->winner;
            row["seconds"] = finals->seconds;
            row["last_record"] = finals->last_record;
            return row;
          },
          nb::arg("hash"), nb::arg("target"))
      .def(
          "session",
          [](Database& self, const std::string& hash, const std::string& target, const std::string& space,
             uint64_t seed) -> nb::object {
            std::optional<Session> session = unwrap(self.session(session_key(hash, target, space, seed)));
            return session ? nb::object(nb::str(session->state.c_str(), session->state.size())) : nb::none();
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("space"), nb::arg("seed"), "Its state; None without one.")
      .def(
          "session_records",
          [](Database& self, const std::string& hash, const std::string& target, const std::string& space,
             uint64_t seed) {
            return told_list(self, unwrap(self.session_records(session_key(hash, target, space, seed))));
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("space"), nb::arg("seed"), "By index.")
      .def(
          "save_session",
          [](Database& self, const std::string& hash, const std::string& target, const std::string& space,
             uint64_t seed, const std::string& state) {
            const SessionKey key = session_key(hash, target, space, seed);
            unwrap_status(without_gil([&] { return self.save_session(key, state); }));
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("space"), nb::arg("seed"), nb::arg("state"))
      .def(
          "forget_session",
          [](Database& self, const std::string& hash, const std::string& target, const std::string& space,
             uint64_t seed) {
            const SessionKey key = session_key(hash, target, space, seed);
            unwrap_status(without_gil([&] { return self.forget_session(key); }));
          },
          nb::arg("hash"), nb::arg("target"), nb::arg("space"), nb::arg("seed"));
}

void bind_upkeep(Class& database) {
  database
      .def(
          "merge",
          [](Database& self, Database& from) {
            MergeCount count = unwrap(without_gil([&] { return merge(self, from); }));
            return nb::make_tuple(count.workloads, count.records);
          },
          nb::arg("other"), "Adds what the other one has and this one has not; how many programs and records.",
          nb::sig("def merge(self, other: Database) -> tuple[int, int]"))
      .def(
          "prune", [](Database& self, size_t keep) { return unwrap(without_gil([&] { return prune(self, keep); })); },
          nb::arg("keep"), "Keeps of each program and target so many records, the best; how many were forgotten.")
      .def(
          "forget_damaged", [](Database& self) { return unwrap(without_gil([&] { return forget_damaged(self); })); },
          "Forgets the records that cannot be read; how many.")
      .def(
          "export_json_lines",
          [](Database& self, const std::string& folder, const nb::callable& write_workload) {
            WorkloadLines lines;
            lines.write = [&](const Workload& workload) -> Result<std::string> {
              return in_python("database/exception", [&]() -> Result<std::string> {
                return nb::cast<std::string>(write_workload(workload_dict(workload)));
              });
            };
            ExchangeCount count = unwrap(export_json_lines(self, folder, lines));
            return nb::make_tuple(count.workloads, count.records);
          },
          nb::arg("folder"), nb::arg("write_workload"),
          "Writes the two files of TVM's layout; how many programs and records.",
          nb::sig("def export_json_lines(self, folder: str, write_workload: Callable[[dict[str, Any]], str]) -> "
                  "tuple[int, int]"))
      .def(
          "import_json_lines",
          [](Database& self, const std::string& folder, const nb::callable& read_workload) {
            WorkloadLines lines;
            lines.read = [&](const std::string& line) -> Result<Workload> {
              return in_python("database/exception", [&]() -> Result<Workload> {
                nb::object row = read_workload(line);
                return Workload{hash_from_hex(item<std::string>(row, "hash")), item<std::string>(row, "name"),
                                item<std::string>(row, "script"), "", item<std::string>(row, "sizes")};
              });
            };
            ExchangeCount count = unwrap(import_json_lines(self, folder, lines));
            return nb::make_tuple(count.workloads, count.records);
          },
          nb::arg("folder"), nb::arg("read_workload"), "Adds what the two files have; how many programs and records.",
          nb::sig("def import_json_lines(self, folder: str, read_workload: Callable[[str], dict[str, Any]]) -> "
                  "tuple[int, int]"));
}

}  // namespace

void bind_database(nb::module_& m) {
  Class database(m, "Database", "Records of what was measured: in one SQLite file, or where a subclass keeps them.");
  database.def(nb::init<>())
      .def_static(
          "open",
          [](const std::string& path, bool read_only, double busy_timeout) {
            DatabaseOptions options;
            options.read_only = read_only;
            options.busy_timeout = std::chrono::milliseconds(static_cast<int64_t>(1e3 * busy_timeout));
            return std::shared_ptr<Database>(unwrap(without_gil([&] { return Database::open(path, options); })));
          },
          nb::arg("path"), nb::arg("read_only") = false, nb::arg("busy_timeout") = 5.0)
      .def_static(
          "in_memory",
          [](const std::string& path) { return std::shared_ptr<Database>(unwrap(Database::in_memory(path))); },
          nb::arg("path") = ":memory:")
      .def_prop_ro("path", &Database::path);
  bind_records(database);
  bind_sessions(database);
  bind_upkeep(database);
}

}  // namespace tilewright::python
