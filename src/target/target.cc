#include "target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <variant>

#include "support/closest.h"
#include "support/ranges.h"
#include "target/cpu_models.h"

namespace tilewright {
namespace {

using target::operator==;

bool has_feature(const tw_cpu_features& set, int feature) { return tw_has_cpu_feature(&set, feature) != 0; }

int default_vector_bits(const tw_cpu_features& features) {
  if (has_feature(features, TW_CPU_avx512f) && has_feature(features, TW_CPU_evex512)) return 512;
  return has_feature(features, TW_CPU_avx) ? 256 : 128;
}

/// The number of vector registers of `bits` bits. Arm has 32. AVX-512 has 32 of 512 bits, and with AVX512VL also 32 of
/// 128 and 256 bits.
int count_vector_registers(const tw_cpu_features& features, int bits) {
  if (has_feature(features, TW_CPU_neon)) return 32;
  if (!has_feature(features, TW_CPU_avx512f)) return 16;
  return bits == 512 || has_feature(features, TW_CPU_avx512vl) ? 32 : 16;
}

/// Sets the fields that are derived from the processor and its features.
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

/// Applies an entry of "-mattr=". AVX-512 features also enable LLVM's separate feature for 512-bit vectors.
void change_feature(tw_cpu_features& set, const std::string& name, bool enable) {
  enable ? target::enable_feature(set, name) : target::disable_feature(set, name);
  if (enable && name.starts_with("avx512")) target::enable_feature(set, "evex512");
}

/// Returns the "+f" and "-f" entries that convert the features of the processor model to those of the target, without
/// implied features. Implied features that the target lacks are removed at the end.
std::vector<std::string> feature_changes(const Target& t) {
  std::vector<std::string> changes;
  tw_cpu_features set = target::find_cpu_model(t.cpu)->features;
  for (bool enable : {false, true, false}) {
    for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
      if (has_feature(set, i) == has_feature(t.features, i) || has_feature(t.features, i) != enable) continue;
      const std::string name = tw_cpu_feature_name(i);
      change_feature(set, name, enable);
      changes.push_back((enable ? "+" : "-") + name);
    }
  }
  return changes;
}

// ---- Parsing

/// Describes a field that is set by an option of the same name: its member and its valid values. Parsing, printing,
/// equality and hash of targets are derived from lists of these.
struct Field {
  std::string_view name;
  std::variant<int Target::*, int64_t Target::*, std::string Target::*> member;
  int64_t least = 0, most = 0;  ///< range of a number
  bool always_printed = false;  ///< whether it is printed even if it has its derived default

  bool is_text() const { return std::holds_alternative<std::string Target::*>(member); }
  /// Returns the value as in the text of a target.
  std::string get(const Target& target) const {
    return std::visit([&](auto m) { return fmt::format("{}", target.*m); }, member);
  }
  void set(Target& target, const std::string& text, int64_t number) const {
    std::visit(
        [&](auto m) {
          using Value = std::remove_reference_t<decltype(target.*m)>;
          if constexpr (std::is_same_v<Value, std::string>) {
            target.*m = text;
          } else {
            target.*m = static_cast<Value>(number);
          }
        },
        member);
  }
};
constexpr int64_t kMostBytes = int64_t{1} << 40;
/// The options of CPUs besides mcpu and mattr, from which their defaults are derived.
constexpr Field kCpuFields[] = {
    {"num-cores", &Target::num_cores, 1, 4096, true},  {"vector-width", &Target::vector_bits, 128, 512},
    {"l1-bytes", &Target::l1_bytes, 1024, kMostBytes}, {"l2-bytes", &Target::l2_bytes, 0, kMostBytes},
    {"l3-bytes", &Target::l3_bytes, 0, kMostBytes},
};
constexpr Field kGpuFields[] = {
    {"arch", &Target::arch},
    {"max_threads_per_block", &Target::max_threads_per_block, 0, 1 << 16},
    {"max_num_threads", &Target::max_num_threads, 1, 1 << 16},
    {"thread_warp_size", &Target::thread_warp_size, 1, 1 << 10},
    {"max_shared_memory_per_block", &Target::max_shared_memory_per_block, 0, kMostBytes},
    {"registers_per_block", &Target::registers_per_block, 0, kMostBytes},
    {"l2_cache_size_bytes", &Target::l2_cache_size_bytes, 0, kMostBytes},
};

constexpr Field kHexagonFields[] = {
    {"mcpu", &Target::cpu},
    {"num-cores", &Target::num_cores, 1, 4096, true},
    {"vtcm-capacity", &Target::vtcm_bytes, 0, kMostBytes},
};

/// The properties of a kind of target, in the order of TargetKind.
struct KindRow {
  std::string_view name;
  std::span<const Field> fields;  ///< its options
  TargetSet set;
  bool has_cpu;   ///< whether it has the options mcpu and mattr
  bool has_code;  ///< whether programs can be compiled for it
  std::vector<std::string> keys;
};
const KindRow& row_of(TargetKind kind) {
  static const KindRow rows[] = {
      {"llvm", kCpuFields, TargetSet::kCpu, true, true, {"cpu"}},
      {"interpreter", {}, TargetSet::kInterpreter, false, true, {"cpu"}},
      {"c", kCpuFields, TargetSet::kCpu, true, false, {"cpu"}},
      {"cuda", kGpuFields, TargetSet::kGpu, false, true, {"cuda", "gpu"}},
      {"hexagon", kHexagonFields, TargetSet::kCpu, false, false, {"hexagon", "cpu"}},
      {"opencl", kGpuFields, TargetSet::kGpu, false, true, {"opencl", "gpu"}},
  };
  return rows[static_cast<int>(kind)];
}
constexpr TargetKind kKinds[] = {TargetKind::kCpu,  TargetKind::kInterpreter, TargetKind::kC,
                                 TargetKind::kCuda, TargetKind::kHexagon,     TargetKind::kOpenCl};

constexpr std::span<const Field> kFieldLists[] = {kCpuFields, kGpuFields, kHexagonFields};

struct Tag {
  std::string_view name, text;
};
constexpr Tag kTags[] = {
#define TW_TARGET_TAG(vendor, product, text) {#vendor "/" #product, text},
#include "target/tags.def"
#undef TW_TARGET_TAG
};

/// The options of a target, parsed from text or JSON.
struct Options {
  TargetKind kind = TargetKind::kCpu;
  bool native = false;
  std::string triple, cpu;
  std::vector<std::string> attributes;  // "+avx2"
  std::vector<std::string> keys;
  std::string device;  // also a key
  std::vector<std::pair<const Field*, std::string>> fields;
  std::shared_ptr<const Target> host;
};

std::string option_names(const KindRow& kind) {
  std::vector<std::string_view> names;
  if (kind.has_cpu) names = {"mtriple", "mcpu", "mattr"};
  for (const Field& field : kind.fields) names.push_back(field.name);
  return fmt::format("{}", fmt::join(names, ", "));
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

/// Parses the number of a field; returns an error if it is invalid or out of range.
Result<int64_t> number_of(const Field& field, const std::string& value) {
  char* end = nullptr;
  errno = 0;
  int64_t number = std::strtoll(value.c_str(), &end, 10);
  bool valid = !value.empty() && end == value.c_str() + value.size() && errno == 0;
  if (valid && number >= field.least && number <= field.most) return number;
  return argument_error("target/value",
                        fmt::format("target option {} is {}, which is not an integer from {} to {}", field.name,
                                    value.empty() ? "empty" : value, field.least, field.most),
                        "tilewright info shows what this machine has");
}

/// Refuses values with spaces, which would be several options in the text of a target.
Status require_word(const std::string& name, const std::string& value, const char* hint) {
  const bool is_word = none_of(value, [](unsigned char c) { return std::isspace(c) != 0; });
  if (is_word) return Ok{};
  return argument_error("target/value", fmt::format("target option {} is '{}', which is not a word", name, value),
                        hint);
}

Status set_option(Options& options, const std::string& name, const std::string& value) {
  const KindRow& kind = row_of(options.kind);
  if (name == "tag" || name == "model") return Ok{};  // options of TVM without effect here
  if (name == "keys" || name == "device") {
    TW_RETURN_IF_ERROR(require_word(name, value, "keys are words with commas between: -keys=arm_cpu,cpu"));
    if (name == "device" && value.find(',') != std::string::npos) {
      return argument_error("target/value", fmt::format("target option device is '{}', which is not a word", value),
                            "a device is one key; -keys= takes several");
    }
    if (name == "keys") options.keys = split(value, ',');
    if (name == "device") options.device = value;
    return Ok{};
  }
  if (name == "mtriple" && kind.has_cpu) {
    options.triple = value;
    return Ok{};
  }
  if (name == "mcpu" && kind.has_cpu) {
    options.cpu = value;
    return Ok{};
  }
  if (name == "mattr" && kind.has_cpu) {
    options.attributes = split(value, ',');
    return Ok{};
  }
  for (const Field& field : kind.fields) {
    if (name != field.name) continue;
    if (field.is_text()) {
      TW_RETURN_IF_ERROR(
          require_word(name, value, "write the name of the processor or architecture: -mcpu=hexagonv68"));
    } else {
      TW_RETURN_IF_ERROR(number_of(field, value));
    }
    options.fields.emplace_back(&field, value);
    return Ok{};
  }
  return argument_error("target/option", fmt::format("target option {} is unknown", name),
                        fmt::format("the options of {} are {}", kind.name, option_names(kind)));
}

Diagnostic unknown_cpu(const std::string& cpu) {
  const std::string meant = closest_name(cpu, known_cpus());
  return argument_error("target/cpu", fmt::format("processor {} is unknown", cpu),
                        fmt::format("{}known are native, {}", meant.empty() ? "" : "did you mean " + meant + "? ",
                                    fmt::join(known_cpus(), ", ")));
}

Diagnostic unknown_kind(const std::string& kind) {
  return argument_error(
      "target/kind", fmt::format("target kind {} is unknown", kind.empty() ? "(empty)" : kind),
      "write \"native\", \"llvm -mcpu=NAME\", \"interpreter\", \"opencl\", \"cuda -arch=sm_80\" or a tag "
      "(nvidia/nvidia-a100)");
}

/// Returns the options of a kind, all unset; nothing for an unknown kind.
std::optional<Options> options_of(std::string_view kind) {
  Options options;
  if (kind == "native") {
    options.native = true;
    return options;
  }
  for (TargetKind known : kKinds) {
    if (row_of(known).name != kind) continue;
    options.kind = known;
    return options;
  }
  return std::nullopt;
}

constexpr std::string_view kArm = "aarch64", kX86 = "x86_64";

/// Returns the architecture of a target triple: all of what precedes the first hyphen, since "aarch64" is also a prefix
/// of the different architecture "aarch64_be".
std::string_view architecture_of(std::string_view triple) { return triple.substr(0, triple.find('-')); }

/// Whether the triple names an ABI with 32-bit pointers on a 64-bit processor.
bool has_short_pointers(std::string_view triple) { return triple.ends_with("x32") || triple.ends_with("ilp32"); }

/// Returns an error for a target triple of an unsupported processor or operating system.
Status check_triple(const std::string& triple, const Target& target) {
  if (triple.empty()) return Ok{};
  const std::string_view architecture = architecture_of(triple);
  bool known = (architecture == kArm || architecture == kX86) && !has_short_pointers(triple);
  if (known && triple.find("linux") != std::string::npos) {
    if (architecture == (target.is_arm() ? kArm : kX86)) return Ok{};
    return argument_error("target/triple", fmt::format("processor {} is none of {}", target.cpu, triple),
                          "name one of that architecture; without -mcpu it is the baseline");
  }
  return argument_error("target/triple", fmt::format("there is no code for {}", triple),
                        "there is for x86_64-linux-gnu and aarch64-linux-gnu");
}

/// Returns the CPU target for the options: fills in the processor's features and the defaults that depend on them.
Result<Target> resolve_cpu(const Options& options) {
  bool native = options.native || options.cpu == "native";
  Target target = native ? Target::host() : Target{};
  if (!native) {
    std::string cpu = options.cpu;
    if (cpu.empty()) cpu = architecture_of(options.triple) == kArm ? "generic" : "x86-64";
    if (!target::find_cpu_model(cpu)) return unknown_cpu(cpu);
    target = default_for(cpu);
  }
  TW_RETURN_IF_ERROR(check_triple(options.triple, target));
  tw_cpu_features features = target.features;
  for (const std::string& attribute : options.attributes) {
    bool remove = attribute[0] == '-';
    std::string name = attribute[0] == '+' || remove ? attribute.substr(1) : attribute;
    if (name == "v8.2a" && target.is_arm() && !remove) {  // known features that it includes
      for (const char* part : {"crc", "lse", "rdm"}) target::enable_feature(features, part);
      continue;
    }
    int number = tw_cpu_feature_from_name(name.data(), static_cast<int>(name.size()));
    if (number < 0 || (tw_is_arm_feature(number) != 0) != target.is_arm())
      return argument_error("target/feature",
                            fmt::format("instruction set {} is {}", name,
                                        number < 0 ? "unknown" : fmt::format("none of {}", target.triple())),
                            "write it as LLVM does: avx2, avx512f, amx-int8, ...; of Arm dotprod, sve, ...");
    change_feature(features, name, !remove);
  }
  int cores = target.num_cores;
  target = complete(target.cpu, features);
  target.num_cores = cores;
  return target;
}

/// Returns the keys of the target, then those of its kind, without duplicates; empty if they are those of the kind.
std::vector<std::string> merged_keys(const std::vector<std::string>& of_kind, const Options& options) {
  std::vector<std::string> keys;
  auto add = [&](const std::string& key) {
    if (!key.empty() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  std::ranges::for_each(options.keys, add);
  add(options.device);
  std::ranges::for_each(of_kind, add);
  return keys == of_kind ? std::vector<std::string>() : keys;
}

/// The GPU architectures of CUDA 11 and later, without suffixes.
constexpr int kNvidiaArchs[] = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80, 86,
                                87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

/// Whether the text is "sm_" and the number of a known or future architecture; from 90 on, a suffix "a" or "f" may
/// follow.
Status check_arch(const std::string& arch) {
  int number = 0;
  const char* const begin = arch.data() + std::min<size_t>(arch.size(), 3);
  const auto [end, error] = std::from_chars(begin, arch.data() + arch.size(), number);
  const std::string_view suffix(end, arch.data() + arch.size());
  const bool is_number = arch.starts_with("sm_") && error == std::errc{} && *begin != '0';
  const bool is_there =
      std::ranges::find(kNvidiaArchs, number) != std::end(kNvidiaArchs) || number > *std::rbegin(kNvidiaArchs);
  if (is_number && is_there && (suffix.empty() || (number >= 90 && (suffix == "a" || suffix == "f")))) return Ok{};
  return argument_error("target/arch", fmt::format("architecture {} is unknown", arch),
                        fmt::format("known are sm_{}; from sm_90 on also with a suffix, such as sm_90a",
                                    fmt::join(kNvidiaArchs, ", sm_")));
}

Result<Target> resolve(const Options& options) {
  const KindRow& kind = row_of(options.kind);
  Target target;
  if (options.kind == TargetKind::kInterpreter) target = Target::interpreter();
  if (kind.has_cpu) {
    TW_TRY(processor, resolve_cpu(options));
    target = std::move(processor);
  }
  target.kind = options.kind;
  target.launcher = options.host;
  target.named_keys = merged_keys(kind.keys, options);
  int widest = target.vector_bits;
  for (const auto& [field, value] : options.fields) {
    if (field->is_text()) {
      field->set(target, value, 0);
      continue;
    }
    TW_TRY(number, number_of(*field, value));
    field->set(target, {}, number);
  }
  if (!target.arch.empty()) TW_RETURN_IF_ERROR(check_arch(target.arch));
  if (!kind.has_cpu) return target;
  int bits = target.vector_bits;
  if ((bits & (bits - 1)) != 0 || bits > widest)
    return argument_error(
        "target/value",
        fmt::format("target option vector-width is {}, but the processor has registers of up to {} bits", bits, widest),
        "write 128, 256 or 512, and enable the instruction set with -mattr");
  target.vector_registers = count_vector_registers(target.features, bits);
  return target;
}

Result<Target> parse_text(std::string_view text) {
  std::vector<std::string> words = split(text, ' ');
  std::string kind = words.empty() ? "" : words[0];
  if (words.size() == 1 && kind.find('/') != std::string::npos) {
    for (const Tag& tag : kTags) {
      if (tag.name == kind) return parse_text(tag.text);
    }
    return argument_error("target/tag", fmt::format("there is no target named {}", kind),
                          fmt::format("known are {}", fmt::join(known_target_tags(), ", ")));
  }
  std::optional<Options> options = options_of(kind);
  if (!options) return unknown_kind(kind);
  const KindRow& row = row_of(options->kind);
  for (size_t i = 1; i < words.size(); ++i) {
    // "-name value" means "-name=value".
    bool named = words[i].starts_with('-') && words[i].find('=') == std::string::npos;
    if (named && i + 1 < words.size() && !words[i + 1].starts_with('-')) {
      words[i] += "=" + words[i + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    size_t begin = words[i].find_first_not_of('-');
    size_t equals = words[i].find('=');
    if (begin == 0 || begin == std::string::npos || equals == std::string::npos || row.fields.empty() ||
        (options->native && words[i].substr(begin, equals - begin) == "mcpu"))
      return argument_error("target/option", fmt::format("target {} does not take {}", kind, words[i]),
                            fmt::format("options are written -name=value; those of {} are {}", row.name,
                                        row.fields.empty() ? "none" : option_names(row)));
    TW_RETURN_IF_ERROR(set_option(*options, words[i].substr(begin, equals - begin), words[i].substr(equals + 1)));
  }
  return resolve(*options);
}

Diagnostic host_of_host() {
  return argument_error("target/host", "the host of a target has a host itself",
                        "name the first one alone: nothing launches the code around kernels");
}

/// `is_host`: whether the options are those of another target's host.
Result<Target> parse_object(const nlohmann::json& object, bool is_host = false) {
  auto kind = object.find("kind");
  if (kind == object.end() || !kind->is_string())
    return argument_error("target/json", "the target has no \"kind\"", "such as {\"kind\": \"llvm\"}");
  std::optional<Options> options = options_of(kind->get<std::string>());
  if (!options) return unknown_kind(*kind);
  for (auto& [name, value] : object.items()) {
    if (name == "kind") continue;
    if (name == "host" && (value.is_object() || value.is_string())) {
      if (is_host) return host_of_host();
      TW_TRY(host, value.is_object() ? parse_object(value, true) : Target::parse(value.get<std::string>()));
      options->host = std::make_shared<Target>(std::move(host));
      continue;
    }
    std::string written;
    if (value.is_string()) {
      written = value.get<std::string>();
    } else if (value.is_number_integer()) {
      written = value.dump();
    } else if (value.is_array() && all_of(value, [](auto& v) { return v.is_string(); })) {
      written = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ","));
    } else {
      // dump() recurses once per nesting level: text of 200,000 brackets would overflow the stack.
      const bool is_nested = value.is_structured() && any_of(value, [](auto& v) { return v.is_structured(); });
      const std::string found = is_nested ? std::string("a nested ") + value.type_name() : value.dump();
      return argument_error("target/json", fmt::format("target option {} is {}", name, found),
                            "values are text, integers, or lists of text");
    }
    TW_RETURN_IF_ERROR(set_option(*options, name, written));
  }
  TW_TRY(target, resolve(*options));
  if (!target.launcher) return target;
  return target.with_host(*target.launcher);
}

Result<Target> parse_json(std::string_view text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object())
    return argument_error("target/json", "the target looks like JSON but is not a JSON object",
                          "such as {\"kind\": \"llvm\", \"mcpu\": \"znver4\"}");
  return parse_object(object);
}

/// Returns the target with all fields at the defaults of its kind, processor and instruction sets.
Target with_defaults(const Target& target) {
  return row_of(target.kind).has_cpu ? complete(target.cpu, target.features) : Target{};
}

nlohmann::ordered_json object_of(const Target& target) {
  const KindRow& row = row_of(target.kind);
  nlohmann::ordered_json object = {{"kind", row.name}};
  if (!target.named_keys.empty()) object["keys"] = target.named_keys;
  if (row.has_cpu) {
    if (target.is_arm()) object["mtriple"] = target.triple();
    object["mcpu"] = target.cpu;
    if (auto changes = feature_changes(target); !changes.empty()) object["mattr"] = changes;
  }
  for (const Field& field : row.fields) {
    std::visit(
        [&](auto member) {
          using Value = std::remove_cvref_t<decltype(target.*member)>;
          if constexpr (std::is_same_v<Value, std::string>) {
            if ((target.*member).empty()) return;
          }
          object[std::string(field.name)] = target.*member;
        },
        field.member);
  }
  if (target.launcher) object["host"] = object_of(*target.launcher);
  return object;
}

}  // namespace

std::vector<std::string> known_target_tags() {
  std::vector<std::string> names;
  for (const Tag& tag : kTags) names.emplace_back(tag.name);
  return names;
}

std::vector<std::string> known_target_kinds() {
  std::vector<std::string> names;
  for (TargetKind kind : kKinds) names.emplace_back(row_of(kind).name);
  return names;
}

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
  if (launcher) return json();  // the text form cannot contain a host
  const KindRow& row = row_of(kind);
  std::string text(row.name);
  if (!named_keys.empty()) text += fmt::format(" -keys={}", fmt::join(named_keys, ","));
  if (row.has_cpu) {
    if (is_arm()) text += fmt::format(" -mtriple={}", triple());
    text += " -mcpu=" + cpu;
    std::vector<std::string> changes = feature_changes(*this);
    if (!changes.empty()) text += fmt::format(" -mattr={}", fmt::join(changes, ","));
  }
  Target other = with_defaults(*this);
  for (const Field& field : row.fields) {
    bool printed = field.always_printed || field.get(*this) != field.get(other);
    if (printed) text += fmt::format(" -{}={}", field.name, field.get(*this));
  }
  return text;
}

std::string Target::json() const { return object_of(*this).dump(); }

std::string_view Target::kind_name() const { return row_of(kind).name; }

bool Target::is_in(TargetSet set) const {
  return (static_cast<uint8_t>(set) & static_cast<uint8_t>(row_of(kind).set)) != 0;
}

std::vector<std::string> Target::keys() const { return named_keys.empty() ? row_of(kind).keys : named_keys; }

Target Target::host_target() const { return launcher ? *launcher : host(); }

Status Target::check_has_code() const {
  if (row_of(kind).has_code) return Ok{};
  return argument_error(
      "target/no-code", fmt::format("programs cannot be compiled for {}", kind_name()),
      "compile for \"native\", another target of kind llvm, \"opencl\" or \"cuda\"; schedules may name any target");
}

Result<Target> Target::with_host(const Target& host) const {
  if (host.launcher) return host_of_host();
  if (host.kind != TargetKind::kCpu && host.kind != TargetKind::kC && host.kind != TargetKind::kHexagon)
    return argument_error("target/host", fmt::format("a target of kind {} cannot be a host", host.kind_name()),
                          "the host is a processor: \"llvm\" or \"c\"");
  Target target = *this;
  target.launcher = std::make_shared<Target>(host);
  return target;
}

bool Target::has(std::string_view feature) const {
  int number = tw_cpu_feature_from_name(feature.data(), static_cast<int>(feature.size()));
  return number >= 0 && has_feature(features, number);
}

bool Target::is_arm() const {
  const target::CpuModel* model = target::find_cpu_model(cpu);
  return model && has_feature(model->features, TW_CPU_neon);
}

std::string_view Target::triple() const { return is_arm() ? "aarch64-linux-gnu" : "x86_64-linux-gnu"; }

bool Target::runs_here() const { return is_arm() == (has_feature(*tw_host_cpu_features(), TW_CPU_neon)); }

std::vector<std::string> Target::feature_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    if (has_feature(features, i)) names.push_back(tw_cpu_feature_name(i));
  }
  return names;
}

std::string Target::llvm_features() const {
  std::string list;
  const bool arm = is_arm();
  for (int i = 0; i < TW_NUM_CPU_FEATURES; ++i) {
    if ((tw_is_arm_feature(i) != 0) != arm) continue;
    list +=
        fmt::format("{}{}{}", list.empty() ? "" : ",", has_feature(features, i) ? '+' : '-', tw_cpu_feature_name(i));
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
  for (std::span<const Field> fields : kFieldLists) {
    for (const Field& field : fields) hasher.bytes(field.get(*this));
  }
  if (launcher) hasher.bytes(launcher->str());
  for (const std::string& key : named_keys) hasher.bytes(key);
  return hasher.finish();
}

bool operator==(const Target& a, const Target& b) {
  auto same = [&](std::span<const Field> fields) {
    return all_of(fields, [&](const Field& f) { return f.get(a) == f.get(b); });
  };
  if (a.named_keys != b.named_keys || a.kind != b.kind || a.cpu != b.cpu || !(a.features == b.features)) return false;
  if ((a.launcher == nullptr) != (b.launcher == nullptr)) return false;
  if (a.launcher && !(*a.launcher == *b.launcher)) return false;
  return all_of(kFieldLists, same);
}

}  // namespace tilewright
