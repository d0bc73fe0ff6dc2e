#include "target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "target/cpu_models.h"

namespace tilewright {
namespace {

using target::operator==;

bool has_number(const tw_cpu_features& set, int feature) { return tw_has_cpu_feature(&set, feature) != 0; }

int default_vector_bits(const tw_cpu_features& features) {
  if (has_number(features, TW_CPU_avx512f)) return 512;
  return has_number(features, TW_CPU_avx) ? 256 : 128;
}

/// Of registers of that width: AVX-512 has 32, and of the narrower ones too where it has them for these widths.
int count_vector_registers(const tw_cpu_features& features, int bits) {
  if (!has_number(features, TW_CPU_avx512f)) return 16;
  return bits == 512 || has_number(features, TW_CPU_avx512vl) ? 32 : 16;
}

/// Everything that follows from the processor and its features.
Target complete(std::string cpu, const tw_cpu_features& features) {
  Target target;
  target.cpu = std::move(cpu);
  target.features = features;
  target.vector_bits = default_vector_bits(features);
  target.vector_registers = count_vector_registers(features, target.vector_bits);
  target.num_cores = tw_count_cores();
  const tw_host_cpu& host = *tw_host_cpu_info();
  const target::CpuModel* model = target::find_cpu_model(target.cpu);
  bool is_host = target.cpu == target::cpu_name(host, *tw_host_cpu_features());
  target.l1_bytes = is_host && host.l1_bytes ? host.l1_bytes : model->l1_bytes;
  target.l2_bytes = is_host && host.l2_bytes ? host.l2_bytes : model->l2_bytes;
  target.l3_bytes = is_host ? host.l3_bytes : model->l3_bytes;
  return target;
}

Target default_for(const std::string& cpu) { return complete(cpu, target::find_cpu_model(cpu)->features); }

/// "-f" and "+f" entries that turn the features of the model into those of the target; none that others imply.
std::vector<std::string> feature_changes(const Target& t) {
  std::vector<std::string> changes;
  tw_cpu_features set = target::find_cpu_model(t.cpu)->features;
  for (bool enable : {false, true}) {
    for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
      if (has_number(set, i) == has_number(t.features, i) || has_number(t.features, i) != enable) continue;
      std::string name = tw_cpu_feature_name(i);
      enable ? target::enable_feature(set, name) : target::disable_feature(set, name);
      changes.push_back((enable ? "+" : "-") + name);
    }
  }
  return changes;
}

// ---- Parsing
// ------------------------------------------------------------------------------------------------------------

/// The numbers that a target consists of: how they are written, where they are, what they may be. Parsing, printing,
/// equality and hash follow.
struct NumberField {
  std::string_view name;
  std::variant<int Target::*, int64_t Target::*> field;
  int64_t least, most;
  bool always_printed;  ///< else only where the processor and its features do not give it

  int64_t get(const Target& target) const {
    return std::visit([&](auto member) { return static_cast<int64_t>(target.*member); }, field);
  }
  void set(Target& target, int64_t value) const {
    std::visit(
        [&](auto member) { target.*member = static_cast<std::remove_reference_t<decltype(target.*member)>>(value); },
        field);
  }
};
constexpr NumberField kNumbers[] = {
    {"num-cores", &Target::num_cores, 1, 4096, true},
    {"vector-width", &Target::vector_bits, 128, 512, false},
    {"l1-bytes", &Target::l1_bytes, 1024, int64_t{1} << 40, false},
    {"l2-bytes", &Target::l2_bytes, 0, int64_t{1} << 40, false},
    {"l3-bytes", &Target::l3_bytes, 0, int64_t{1} << 40, false},
};

/// The options of a target, whichever way they were written.
struct Options {
  std::string cpu;
  std::vector<std::string> attributes;  // "+avx2"
  std::optional<int64_t> numbers[std::size(kNumbers)];
};

std::string option_names() {
  std::string names = "mcpu, mattr";
  for (const NumberField& number : kNumbers) names += fmt::format(", {}", number.name);
  return names;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    if (i > begin) parts.emplace_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

Status set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "mcpu") {
    options.cpu = value;
    return Ok{};
  }
  if (name == "mattr") {
    options.attributes = split(value, ',');
    return Ok{};
  }
  if (name == "keys" || name == "tag") return Ok{};  // TVM writes them; they repeat the kind
  for (size_t i = 0; i < std::size(kNumbers); ++i) {
    const NumberField& field = kNumbers[i];
    if (name != field.name) continue;
    char* end = nullptr;
    errno = 0;
    int64_t number = std::strtoll(value.c_str(), &end, 10);
    bool valid = !value.empty() && *end == '\0' && errno == 0;
    if (!valid || number < field.least || number > field.most)
      return argument_error("target/value",
                            fmt::format("target option {} is {}, which is not an integer from {} to {}", name,
                                        value.empty() ? "empty" : value, field.least, field.most));
    options.numbers[i] = number;
    return Ok{};
  }
  return argument_error("target/option", fmt::format("target option {} is unknown", name),
                        fmt::format("the options of llvm are {}", option_names()));
}

Diagnostic unknown_kind(const std::string& kind) {
  return argument_error("target/kind", fmt::format("target kind {} is unknown", kind.empty() ? "(empty)" : kind),
                        "write \"native\", \"llvm -mcpu=NAME\" or \"interpreter\"");
}

Result<Target> resolve(const Options& options) {
  Target target = options.cpu == "native" ? Target::host() : Target{};
  if (options.cpu != "native") {
    std::string cpu = options.cpu.empty() ? "x86-64" : options.cpu;
    if (!target::find_cpu_model(cpu))
      return argument_error("target/cpu", fmt::format("processor {} is unknown", cpu),
                            fmt::format("known are native, {}", fmt::join(known_cpus(), ", ")));
    target = default_for(cpu);
  }
  tw_cpu_features features = target.features;
  for (const std::string& attribute : options.attributes) {
    bool remove = attribute[0] == '-';
    std::string name = attribute[0] == '+' || remove ? attribute.substr(1) : attribute;
    if (!(remove ? target::disable_feature(features, name) : target::enable_feature(features, name)))
      return argument_error("target/feature", fmt::format("instruction set {} is unknown", name),
                            "write it as LLVM does: avx2, avx512f, amx-int8, ...");
  }
  int cores = target.num_cores;
  target = complete(target.cpu, features);
  target.num_cores = cores;
  int widest = target.vector_bits;
  for (size_t i = 0; i < std::size(kNumbers); ++i) {
    if (options.numbers[i]) kNumbers[i].set(target, *options.numbers[i]);
  }
  int bits = target.vector_bits;
  if ((bits & (bits - 1)) != 0 || bits > widest)
    return argument_error(
        "target/value",
        fmt::format("target option vector-width is {}, but the processor has registers of up to {} bits", bits, widest),
        "write 128, 256 or 512, and enable the instruction set with -mattr");
  target.vector_registers = count_vector_registers(features, bits);
  return target;
}

Result<Target> parse_text(std::string_view text) {
  std::vector<std::string> words = split(text, ' ');
  std::string kind = words.empty() ? "" : words[0];
  if (kind != "llvm" && kind != "native" && kind != "interpreter") return unknown_kind(kind);
  Options options;
  if (kind == "native") options.cpu = "native";
  for (size_t i = 1; i < words.size(); ++i) {
    // "-name value" means "-name=value".
    bool named = words[i].starts_with('-') && words[i].find('=') == std::string::npos;
    if (named && i + 1 < words.size() && !words[i + 1].starts_with('-')) {
      words[i] += "=" + words[i + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    size_t begin = words[i].find_first_not_of('-');
    size_t equals = words[i].find('=');
    if (begin == 0 || begin == std::string::npos || equals == std::string::npos || kind == "interpreter" ||
        (kind == "native" && words[i].substr(begin, equals - begin) == "mcpu"))
      return argument_error("target/option", fmt::format("target {} does not take {}", kind, words[i]),
                            fmt::format("options are written -name=value; those of llvm are {}", option_names()));
    TW_RETURN_IF_ERROR(set_option(options, words[i].substr(begin, equals - begin), words[i].substr(equals + 1)));
  }
  return kind == "interpreter" ? Target::interpreter() : resolve(options);
}

Result<Target> parse_json(std::string_view text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return argument_error("target/json", "the target looks like JSON but is not a JSON object");
  auto kind = object.find("kind");
  if (kind == object.end() || !kind->is_string()) return argument_error("target/json", "the target has no \"kind\"");
  if (*kind == "interpreter") return Target::interpreter();
  if (*kind != "llvm" && *kind != "native") return unknown_kind(*kind);
  Options options;
  if (*kind == "native") options.cpu = "native";
  for (auto& [name, value] : object.items()) {
    if (name == "kind") continue;
    std::string written;
    if (value.is_string()) {
      written = value.get<std::string>();
    } else if (value.is_number_integer()) {
      written = value.dump();
    } else if (value.is_array() && std::all_of(value.begin(), value.end(), [](auto& v) { return v.is_string(); })) {
      written = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ","));
    } else {
      return argument_error("target/json", fmt::format("target option {} is {}", name, value.dump()),
                            "values are text, integers, or lists of text");
    }
    TW_RETURN_IF_ERROR(set_option(options, name, written));
  }
  return resolve(options);
}

}  // namespace

std::vector<std::string> known_cpus() {
  std::vector<std::string> names;
  for (auto& model : target::cpu_models()) names.push_back(model.name);
  return names;
}

Target Target::host() {
  tw_cpu_features features = *tw_host_cpu_features();
  target::drop_unsupported_features(features);
  return complete(target::cpu_name(*tw_host_cpu_info(), features), features);
}

Target Target::interpreter() {
  Target target = host();
  target.kind = TargetKind::kInterpreter;
  return target;
}

Result<Target> Target::parse(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\n");
  bool json = begin != std::string_view::npos && text[begin] == '{';
  return json ? parse_json(text) : parse_text(text);
}

std::string Target::str() const {
  if (kind == TargetKind::kInterpreter) return "interpreter";
  std::string text = "llvm -mcpu=" + cpu;
  std::vector<std::string> changes = feature_changes(*this);
  if (!changes.empty()) text += fmt::format(" -mattr={}", fmt::join(changes, ","));
  Target usual = complete(cpu, features);
  for (const NumberField& number : kNumbers) {
    bool printed = number.always_printed || number.get(*this) != number.get(usual);
    if (printed) text += fmt::format(" -{}={}", number.name, number.get(*this));
  }
  return text;
}

std::string Target::json() const {
  if (kind == TargetKind::kInterpreter) return R"({"kind":"interpreter"})";
  nlohmann::ordered_json object = {{"kind", "llvm"}, {"mcpu", cpu}};
  if (auto changes = feature_changes(*this); !changes.empty()) object["mattr"] = changes;
  for (const NumberField& number : kNumbers) object[std::string(number.name)] = number.get(*this);
  return object.dump();
}

bool Target::has(std::string_view feature) const {
  int number = tw_cpu_feature_from_name(feature.data(), static_cast<int>(feature.size()));
  return number >= 0 && has_number(features, number);
}

std::vector<std::string> Target::feature_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    if (has_number(features, i)) names.push_back(tw_cpu_feature_name(i));
  }
  return names;
}

std::string Target::llvm_features() const {
  std::string list;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    list += fmt::format("{}{}{}", i ? "," : "", has_number(features, i) ? '+' : '-', tw_cpu_feature_name(i));
  }
  return list;
}

Target Target::with_num_cores(int cores) const {
  Target target = *this;
  target.num_cores = cores;
  return target;
}

Hash128 Target::hash() const {
  Hasher hasher;
  hasher.word(static_cast<uint64_t>(kind));
  hasher.bytes(cpu);
  for (uint64_t word : features.words) hasher.word(word);
  for (const NumberField& number : kNumbers) hasher.word(static_cast<uint64_t>(number.get(*this)));
  return hasher.finish();
}

bool operator==(const Target& a, const Target& b) {
  return a.kind == b.kind && a.cpu == b.cpu && a.features == b.features &&
         std::all_of(std::begin(kNumbers), std::end(kNumbers),
                     [&](const NumberField& number) { return number.get(a) == number.get(b); });
}

}  // namespace tilewright
