// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Load.h"

#include "device/api/HostFunctions.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/program/Roles.h"
#include "pipeline/program/VariantRecord.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/torch/Lower.h"
#include "planner/dagfile/DagJson.h"
#include "planner/dagfile/TraceDag.h"
#include "planner/record/PlaceOnDevices.h"
#include "support/Array.h"
#include "support/FileIO.h"
#include "support/FileNames.h"
#include "support/Result.h"
#include "support/Spelling.h"
#include "support/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu::pipeline {

namespace {

// The file that jax.export's serialize() writes: a FlatBuffer with a module in
// bytecode and what JAX needs to call it. The schema is
// jax/_src/export/serialization.fbs of https://github.com/jax-ml/jax; fields
// were only ever added to it, so that files of every version are read.

struct JaxExport {
  std::string function;
  std::string jaxVersion; ///< empty before version 12 of the schema
  std::vector<std::string> platforms;
  uint32_t devices = 0; ///< that it was exported for; 0 where it is not said
  /// It says which arguments of @main stand before the function's own.
  unsigned callingConvention = 0;
  std::span<const std::byte> module; ///< bytecode, in the bytes of the file
};

using std::optional, std::nullopt;

/// The number of a field in the table Exported.
enum Field : size_t {
  FunctionName = 1,
  DevicesShort = 6,
  Platforms = 9,
  Module = 13,
  CallingConvention = 14,
  Devices = 18,
  JaxVersion = 27
};

/// A FlatBuffer's root table. Each position is checked against the file's size
/// before it is read, and no table below the root is: nothing can be cyclic.
class RootTable {
public:
  explicit RootTable(std::span<const std::byte> file) : file(file) {
    root = read<uint32_t>(0).value_or(0);
    const auto back = read<int32_t>(root);
    if (!back || root < 4 || root % 4)
      return;
    const int64_t at = int64_t(root) - *back;
    if (at < 0 || uint64_t(at) >= file.size())
      return;
    fields = size_t(at);
    const size_t size = read<uint16_t>(fields).value_or(0);
    if (size >= 4 && size % 2 == 0 && size <= 4 + 2 * mostFields)
      numFields = (size - 4) / 2;
  }

  bool has(Field field) const { return numFields > 0 && place(field); }

  template <typename T>
  optional<T> scalar(Field field) const {
    const size_t at = place(field);
    return at ? read<T>(at) : T();
  }
  /// The bytes of a vector of them, or of a string; empty where there is none.
  optional<std::span<const std::byte>> bytes(Field field) const {
    const size_t at = place(field);
    return at ? bytesAt(at) : std::span<const std::byte>();
  }
  optional<std::string> text(Field field) const { return asText(bytes(field)); }
  optional<std::vector<std::string>> texts(Field field) const;

private:
  static constexpr size_t mostFields = 256;

  template <typename T>
  optional<T> read(size_t at) const {
    T value;
    if (at > file.size() || file.size() - at < sizeof value)
      return nullopt;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  }
  /// 0 where the table does not have the field.
  size_t place(Field field) const {
    if (field >= numFields)
      return 0;
    const size_t offset = read<uint16_t>(fields + 4 + 2 * field).value_or(0);
    return offset ? root + offset : 0;
  }
  /// Where the offset at `at` leads to.
  optional<size_t> follow(size_t at) const {
    const auto offset = read<uint32_t>(at);
    return offset ? optional(at + *offset) : nullopt;
  }
  optional<std::span<const std::byte>> bytesAt(size_t at) const {
    const auto start = follow(at);
    const auto size = start ? read<uint32_t>(*start) : nullopt;
    if (!size || file.size() - (*start + 4) < *size)
      return nullopt;
    return file.subspan(*start + 4, *size);
  }
  static optional<std::string>
  asText(optional<std::span<const std::byte>> bytes) {
    if (!bytes)
      return nullopt;
    return std::string(reinterpret_cast<const char *>(bytes->data()),
                       bytes->size());
  }

  std::span<const std::byte> file;
  size_t root = 0, fields = 0, numFields = 0;
};

optional<std::vector<std::string>> RootTable::texts(Field field) const {
  std::vector<std::string> all;
  const size_t at = place(field);
  if (!at)
    return all;
  const auto start = follow(at);
  const auto count = start ? read<uint32_t>(*start) : nullopt;
  if (!count || *count > mostFields)
    return nullopt;
  for (size_t k = 0; k < *count; ++k) {
    auto text = asText(bytesAt(*start + 4 + 4 * k));
    if (!text)
      return nullopt;
    all.push_back(std::move(*text));
  }
  return all;
}

/// Whether a file begins as such a file does.
bool isJaxExport(std::span<const std::byte> file) {
  return RootTable(file).has(Module);
}

/// Invalid where a part of it lies outside the file; `name` is what the error
/// calls the file.
Result<JaxExport> readJaxExport(std::span<const std::byte> file,
                                const std::string &name) {
  const RootTable table(file);
  const auto function = table.text(FunctionName), jax = table.text(JaxVersion);
  const auto platforms = table.texts(Platforms);
  const auto module = table.bytes(Module);
  const auto devices = table.scalar<uint32_t>(Devices);
  const auto before = table.scalar<uint16_t>(DevicesShort);
  const auto convention = table.scalar<uint16_t>(CallingConvention);
  if (!function || !jax || !platforms || !module || !devices || !before ||
      !convention)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' begins as jax.export's files do, but a part "
                            "of it lies outside the file: it is cut or "
                            "damaged; export it again",
                            name));
  return JaxExport{*function,   *jax,
                   *platforms,  *devices ? *devices : *before,
                   *convention, *module};
}

/// Every --arg names an argument, and no two name the same one.
Result<void> checkArgumentKeys(const planner::Program &program,
                               const LoadOptions &options) {
  std::map<const planner::ProgramArgument *, std::string> given;
  for (const auto &[key, value] : options.arguments) {
    MGPU_TRY_ASSIGN(const planner::ProgramArgument *argument,
                    findArgument(program, key, "--arg", false));
    auto [earlier, isNew] = given.try_emplace(argument, key);
    if (!isNew)
      return fail(ErrorKind::Usage,
                  fmt::format("--arg {} and --arg {} are the same argument",
                              earlier->second, key));
  }
  return {};
}

/// Whether the user's `text` is the scalar that `value` is.
bool isSameScalar(const std::string &text, const std::string &value,
                  ElementType type) {
  std::byte given[8] = {}, made[8] = {};
  return text == value ||
         (storeText(text, type, given) && storeText(value, type, made) &&
          std::equal(given, given + sizeof given, made));
}

/// Refuses options that would decide again what the file has decided.
/// A bundle takes functions for the calls that it was made to ask for.
Result<void> checkFunctions(const LoadedProgram &program,
                            const LoadOptions &options) {
  std::vector<std::string> asked;
  for (const planner::KernelSpec &kernel : program.dag.kernels)
    if (const planner::CudaFile *file = kernel.cudaFile(); file && file->call)
      asked.push_back(file->call->name);
  for (const auto &[name, custom] : options.customs)
    if (!libraryFunction(name, custom))
      return fail(ErrorKind::Usage,
                  fmt::format("--custom {}={}: a bundle takes functions alone, "
                              "LIB.so:FUNCTION; its kernels are made: make it "
                              "again from {}",
                              name, custom, program.bundle->origin().source));
    else if (std::ranges::find(asked, name) == asked.end())
      return fail(ErrorKind::Usage,
                  fmt::format("--custom {}: the bundle asks for no function of "
                              "this name{}",
                              name, didYouMean(name, asked)));
  return {};
}

Result<void> checkMadeFor(const LoadedProgram &program,
                          const LoadOptions &options) {
  MGPU_TRY(checkFunctions(program, options));
  const db::ProgramRecord &origin = program.bundle->origin();
  for (const char *option : {"--role", "--resident-except"})
    if (options.given.contains(option))
      return fail(ErrorKind::Usage,
                  fmt::format("{}: the roles of a bundle are fixed: make it "
                              "again from {}",
                              option, origin.source));
  if (!options.fuse)
    return fail(ErrorKind::Usage,
                fmt::format("--no-fusion: the kernels of a bundle are made: "
                            "make it again from {}",
                            origin.source));
  for (const char *option :
       {"--node-limit", "--roll-from", "--devices", "--assign", "--schedule",
        "--remat", "--grid", "--mesh", "--shard", "--shardings", "--one-device",
        "--exact"})
    if (options.given.count(option))
      return fail(ErrorKind::Usage,
                  fmt::format("{}: the nodes of a bundle are made: make it "
                              "again from {}",
                              option, origin.source));
  if (options.entry != "main" && options.entry != origin.entry)
    return fail(ErrorKind::Usage,
                fmt::format("--entry {}: the bundle is of @{}: make one of @{} "
                            "from {}",
                            options.entry, origin.entry, options.entry,
                            origin.source));
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const planner::ProgramArgument &argument = program.arguments[k];
    if (argument.buffer)
      continue;
    for (const std::string &key : {argument.name, std::to_string(k)})
      if (auto given = options.arguments.find(key);
          given != options.arguments.end() &&
          !isSameScalar(given->second, argument.value, argument.elementType))
        return fail(
            ErrorKind::Usage,
            fmt::format("--arg {0}={1}: the bundle was made for {2}={3},"
                        " which decided its shape: leave it out, or "
                        "make a bundle for {2}={1} from {4}",
                        key, given->second, argument.name, argument.value,
                        origin.source));
  }
  return {};
}

bool isBundle(const std::string &file) {
  return file != "-" && db::isDatabaseFile(file);
}

Result<LoadedProgram> openBundle(const LoadOptions &options,
                                 std::vector<Message> *) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(options.file));
  LoadedProgram program;
  static_cast<planner::Program &>(program) = bundle.program();
  program.bundle = std::make_shared<capture::Bundle>(std::move(bundle));
  MGPU_TRY(checkMadeFor(program, options));
  return program;
}

bool isNamedBundle(const std::string &file) { return file.ends_with(".mgpu"); }

Result<LoadedProgram> refuseBundle(const LoadOptions &options,
                                   std::vector<Message> *) {
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' is not a bundle: `mgpu-tune bundle` makes them",
                          options.file));
}

bool isJson(const std::string &file) {
  return file.ends_with(".json") || file.ends_with(".json.gz");
}

/// A recorded trace or an mgpu-dag/2 file, by what it says of itself.
Result<LoadedProgram> openJson(const LoadOptions &options,
                               std::vector<Message> *) {
  const std::string &path = options.file;
  static constexpr uint64_t limit = uint64_t(4) << 30;
  LoadedProgram program;
  MGPU_TRY_ASSIGN(std::string text, readText(path, limit));
  if (!planner::isTrace(text)) {
    MGPU_TRY_ASSIGN(program.dag, planner::parseDagJson(text, path));
    return program;
  }
  MGPU_TRY_ASSIGN(auto events,
                  planner::readTraceEvents(text, path, options.step));
  MGPU_TRY_ASSIGN(auto trace, planner::traceDag(std::move(events), path));
  fmt::print(
      stderr, "mgpu-tune: {}: {} of {} on {}, {:.3f} us\n", path,
      counted(trace.dag.nodes.size(), "kernel or copy", "kernels and copies"),
      counted(trace.dag.numDevices, "device"), counted(trace.streams, "stream"),
      trace.recordedUs);
  for (const std::string &note : trace.notes)
    fmt::print(stderr, "mgpu-tune: note: {}\n", note);
  program.dag = std::move(trace.dag);
  program.recordedUs = trace.recordedUs;
  return program;
}

bool isSource(const std::string &) { return true; }

void sayExport(const JaxExport &jax, const std::string &path) {
  fmt::print(stderr,
             "mgpu-tune: {}: '{}', which JAX{}{} exported for {} on {}\n", path,
             jax.function, jax.jaxVersion.empty() ? "" : " ", jax.jaxVersion,
             fmt::join(jax.platforms, ", "), counted(jax.devices, "device"));
  // jax.export: a module for several platforms is told which one it runs on.
  if (jax.platforms.size() > 1)
    fmt::print(stderr,
               "mgpu-tune: note: its first argument is the number of the "
               "platform in this list, from 0\n");
}

/// Says which variants are on because they have passed.
void sayDefaults(const LoadedProgram &program) {
  const bool isNarrow = std::ranges::any_of(
      program.dag.kernels, [](const planner::KernelSpec &kernel) {
        return kernel.product() && kernel.product()->isNarrow();
      });
  std::string names;
  for (const VariantFacts &each : variantTable)
    if (each.rule != DefaultRule::WhereThere &&
        !program.variants.isAsked(each.variant) &&
        program.variants.uses(each.variant) &&
        (isNarrow || each.variant == Variant::Pdl))
      names += (names.empty() ? "" : ", ") + std::string(each.name);
  if (!names.empty())
    fmt::print(stderr,
               "mgpu-tune: variants that the database says have passed on this "
               "GPU: {}\n",
               names);
}

Result<LoadedProgram> importSource(const LoadOptions &options,
                                   std::vector<Message> *messages) {
  ImportOptions import = options;
  import.variants = withEvidence(options);
  MGPU_TRY_ASSIGN(LoadedProgram program,
                  options.compiler->importProgram(import, messages));
  program.variants = import.variants;
  if (options.replicas > 0 && isCudaTarget(options.target))
    MGPU_TRY(planner::placeOnDevices(program,
                                     options.replicas * options.partitions));
  sayDefaults(program);
  return program;
}

/// Takes the target's machine, for its times of exchanges. GPUs that are here
/// are not asked for yet: one that is known stands for them.
Result<void> takeMachine(LoadOptions &options) {
  if (!options.machine) {
    const std::string &target = options.target;
    MGPU_TRY_ASSIGN(planner::Machine machine,
                    openMachine(isCudaTarget(target) ? "sim:dgx-h100" : target,
                                1, "", options.database));
    options.machine =
        std::make_shared<const planner::Machine>(std::move(machine));
  }
  options.times = options.machine;
  return {};
}

/// An option that a format has no use for, and the sentence that refuses it,
/// in which {0} is the option and {1} the file.
struct RefusedOption {
  const char *option, *sentence;
};

/// A .pt2 file becomes a program in StableHLO, with the file's own values of
/// its weights where the user gives none.
Result<void> takeArchive(LoadOptions &options) {
  MGPU_TRY_ASSIGN(torch::Lowered lowered,
                  torch::lowerProgram(options.file, options.dims));
  options.text = std::make_shared<const std::string>(std::move(lowered.text));
  for (const auto &[number, argument, tensor] : lowered.weights)
    if (!options.arguments.contains(std::to_string(number)))
      options.arguments.try_emplace(argument,
                                    fmt::format("{}:{}", options.file, tensor));
  return {};
}

struct Format {
  const char *name;
  bool (*accepts)(const std::string &file);
  std::vector<RefusedOption> refused;
  Result<LoadedProgram> (*load)(const LoadOptions &, std::vector<Message> *);
};

constexpr const char *isBuilt =
    "{0}: the kernels of the bundle '{1}' are built; give it to `bundle`, with "
    "the program";
constexpr const char *holdsNodes =
    "{0} is of .mlir programs: '{1}' holds nodes";

/// The first format that accepts a file loads it.
const Format formats[] = {
    {"bundle", isBundle, {{"--variant", isBuilt}}, openBundle},
    {"damaged bundle", isNamedBundle, {}, refuseBundle},
    {"DAG or trace",
     isJson,
     {{"--entry", holdsNodes},
      {"--role", holdsNodes},
      {"--resident-except", holdsNodes},
      {"--node-limit", holdsNodes},
      {"--devices", holdsNodes},
      {"--assign", holdsNodes},
      {"--custom", holdsNodes},
      {"--schedule", holdsNodes},
      {"--remat", holdsNodes},
      {"--grid", holdsNodes},
      {"--mesh", holdsNodes},
      {"--shard", holdsNodes},
      {"--shardings", holdsNodes},
      {"--one-device", holdsNodes},
      {"--roll-from", holdsNodes},
      {"--no-fusion", holdsNodes},
      {"--exact", holdsNodes},
      {"--variant", holdsNodes}},
     openJson},
    {"program", isSource, {}, importSource},
};

} // namespace

static bool isBytecode(std::span<const std::byte> bytes) {
  constexpr std::string_view magic = "ML\xefR";
  return bytes.size() >= magic.size() &&
         std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

/// Whether a file of `size` bytes, with `head` as its first four, may be what
/// decodeProgram() decodes. In an export of JAX's the four say where its table
/// is; the letters of a text would place it behind the end of the file.
static bool mayBeDecoded(std::span<const std::byte> head, uint64_t size) {
  uint32_t table = 0;
  std::memcpy(&table, head.data(), sizeof table);
  return isBytecode(head) || table < size;
}

/// Gives a program that is bytecode, or an export of JAX's, its text.
static Result<void> decodeProgram(LoadOptions &options) {
  std::vector<std::byte> file;
  std::span<const std::byte> bytes;
  if (options.text) {
    bytes = std::as_bytes(std::span(*options.text));
  } else {
    std::error_code error;
    if (!std::filesystem::is_regular_file(options.file, error) ||
        isBundle(options.file) || isJson(options.file))
      return {};
    MGPU_TRY_ASSIGN(const uint64_t size, fileSize(options.file));
    if (size >= sizeof(uint32_t)) {
      MGPU_TRY_ASSIGN(file, readFileRange(options.file, 0, sizeof(uint32_t)));
      if (!mayBeDecoded(file, size))
        return {};
    }
    MGPU_TRY_ASSIGN(file, readFile(options.file));
    bytes = file;
  }
  if (isJaxExport(bytes)) {
    MGPU_TRY_ASSIGN(JaxExport jax, readJaxExport(bytes, options.file));
    sayExport(jax, options.file);
    bytes = jax.module;
  }
  if (!isBytecode(bytes))
    return {};
  MGPU_TRY_ASSIGN(std::string text,
                  options.compiler->decode(bytes, options.file));
  options.text = std::make_shared<const std::string>(std::move(text));
  return {};
}

static void findNeeded(LoadedProgram &program) {
  const std::vector<bool> reads = planner::readsFirst(program.dag);
  for (const planner::ProgramArgument &argument : program.arguments)
    program.needsValue.push_back(argument.buffer &&
                                 reads[argument.buffer->value]);
}

static Result<LoadedProgram> loadAgain(const LoadedProgram &program,
                                       LoadOptions options) {
  ImportOptions import = options;
  import.variants = program.variants;
  import.isQuiet = true;
  MGPU_TRY_ASSIGN(LoadedProgram ordered,
                  options.compiler->importProgram(import, nullptr));
  ordered.variants = import.variants;
  ordered.from = std::move(options);
  MGPU_TRY(applyRoles(ordered));
  findNeeded(ordered);
  return ordered;
}

Result<LoadedProgram> loadOrder(const LoadedProgram &program,
                                const std::string &schedule, bool remat) {
  LoadOptions options = program.from;
  options.schedule = schedule;
  options.remat |= remat;
  return loadAgain(program, std::move(options));
}

Result<LoadedProgram>
loadSplits(const LoadedProgram &program,
           const std::map<std::string, planner::Split> &splits) {
  LoadOptions options = program.from;
  options.shardings.splits = splits;
  return loadAgain(program, std::move(options));
}

Result<LoadedProgram> loadProgram(const LoadOptions &given,
                                  std::vector<Message> *messages) {
  LoadOptions options = given;
  if (options.file != "-")
    MGPU_TRY(checkReadable(options.file));
  else // It may be read more than once.
    options.text = std::make_shared<const std::string>(
        std::istreambuf_iterator<char>(std::cin),
        std::istreambuf_iterator<char>());
  if (torch::isArchive(options.file))
    MGPU_TRY(takeArchive(options));
  else if (!options.dims.empty())
    return fail(
        ErrorKind::Usage,
        fmt::format("--dim {}: '{}' is no .pt2 file, which alone leaves "
                    "sizes open",
                    options.dims.begin()->first, options.file));
  MGPU_TRY(decodeProgram(options));
  const Format &format =
      *std::find_if(std::begin(formats), std::end(formats),
                    [&](const Format &f) { return f.accepts(options.file); });
  for (const RefusedOption &each : format.refused)
    if (options.given.contains(each.option))
      return fail(ErrorKind::Usage, fmt::format(fmt::runtime(each.sentence),
                                                each.option, options.file));
  for (const auto &[name, custom] : options.customs)
    if (const auto from = libraryFunction(name, custom))
      MGPU_TRY(device::registerFromLibrary(name, from->file, from->symbol));
  MGPU_TRY(takeMachine(options));
  MGPU_TRY_ASSIGN(LoadedProgram program, format.load(options, messages));
  if (!options.step.empty() && program.recordedUs <= 0)
    return fail(ErrorKind::Usage,
                fmt::format("--step {}: '{}' is no recorded trace",
                            options.step, options.file));
  program.from = options;
  program.from.entry = program.dag.name; // it may be the only public one
  MGPU_TRY(applyRoles(program));
  findNeeded(program);
  MGPU_TRY(checkArgumentKeys(program, options));
  return program;
}

} // namespace mgpu::pipeline
