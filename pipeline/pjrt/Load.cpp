// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiling and loading: from a program or a bundle to an executable.
#include "pipeline/pjrt/Compile.h"
#include "pipeline/pjrt/Executable.h"
#include "pipeline/pjrt/Handlers.h"
#include "support/FileIO.h"

#include <cstring>
#include <fmt/format.h>

namespace mgpu::pipeline::pjrt {

namespace {

struct CloseProgram {
  void operator()(mgt_program *program) const { mgt_close(program); }
};
using Program = std::unique_ptr<mgt_program, CloseProgram>;

Result<void> check(mgt_status status) {
  if (status == MGT_OK)
    return {};
  const bool isKnown = status >= MGT_INVALID && status <= MGT_UNSUPPORTED;
  return fail(isKnown ? ErrorKind(int(status)) : ErrorKind::Internal,
              mgt_error());
}

/// Opens a bundle on a target.
Result<Program> openProgram(const device::Blob &bundle,
                            const std::string &target) {
  MGPU_TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  const std::string file = folder.file("executable.mgpu");
  const std::span<const std::byte> parts[] = {bundle};
  MGPU_TRY(writeFileAtomic(file, parts));
  mgt_program *program = nullptr;
  MGPU_TRY(check(mgt_open(file.c_str(), target.c_str(), &program)));
  return Program(program);
}

/// The places of each device's arguments or results from number `first` on,
/// which have these shapes.
Result<std::vector<Place>> placesOf(mgt_program *program, size_t first,
                                    const std::vector<PJRT_Device *> &devices,
                                    const std::vector<Shape> &shapes) {
  std::vector<Place> places;
  for (const PJRT_Device *device : devices)
    for (const Shape &shape : shapes) {
      mgt_argument argument{};
      int32_t lies = MGT_HOST;
      const size_t index = first + places.size();
      MGPU_TRY(check(mgt_get_argument(program, index, &argument)));
      MGPU_TRY(check(mgt_argument_device(program, index, &lies)));
      Place place;
      place.bytes = argument.bytes;
      if (lies == MGT_HOST) {
        void *data = nullptr;
        MGPU_TRY(
            check(mgt_memory(program, argument.name, &data, &place.bytes)));
        place.own = std::make_shared<Storage>(data, nullptr, nullptr);
      } else {
        place.gpu = device->gpu;
      }
      if (place.bytes != shape.bytes())
        return fail(ErrorKind::Invalid,
                    fmt::format("the bundle's argument '{}' has {} bytes, and "
                                "a buffer {} has {}",
                                argument.name, place.bytes, shape.text(),
                                shape.bytes()));
      place.name = argument.name;
      places.push_back(std::move(place));
    }
  return places;
}

void fillOutputs(Compiled &out) {
  for (const Shape &shape : out.signature.results) {
    out.outputTypes.push_back(shape.type);
    out.outputRanks.push_back(shape.dims.size());
    out.outputDims.insert(out.outputDims.end(), shape.dims.begin(),
                          shape.dims.end());
  }
  out.inputLayouts = layoutsOf(out.signature.arguments);
  out.outputLayouts = layoutsOf(out.signature.results);
  for (Layout &layout : out.inputLayouts)
    out.inputLayoutPointers.push_back(&layout);
  for (Layout &layout : out.outputLayouts)
    out.outputLayoutPointers.push_back(&layout);
  const char *kind = memoryKinds[deviceMemory];
  out.inputKinds.assign(out.signature.arguments.size(), kind);
  out.outputKinds.assign(out.signature.results.size(), kind);
  out.inputKindSizes.assign(out.inputKinds.size(), std::strlen(kind));
  out.outputKindSizes.assign(out.outputKinds.size(), std::strlen(kind));
}

/// Reads what an open bundle says of itself.
Result<std::shared_ptr<Compiled>> describe(mgt_program *program,
                                           device::Blob bundle,
                                           const CompileOptions *options,
                                           std::string_view serialized) {
  mgt_facts facts{};
  facts.size = sizeof facts;
  MGPU_TRY(check(mgt_get_facts(program, &facts)));
  auto out = std::make_shared<Compiled>();
  MGPU_TRY_ASSIGN(out->signature, Signature::parse(facts.options));
  const Signature &signature = out->signature;
  if (options && (options->replicas != signature.replicas ||
                  options->partitions != signature.partitions))
    return fail(ErrorKind::Usage,
                fmt::format("the compile options say {} replicas of {} "
                            "partitions, and the executable has {} of {}",
                            options->replicas, options->partitions,
                            signature.replicas, signature.partitions));
  if (facts.num_devices != signature.processes() && facts.num_devices > 1)
    return fail(ErrorKind::Invalid,
                fmt::format("the bundle is for {} devices, and says {}",
                            facts.num_devices, signature.processes()));
  out->bundle = std::move(bundle);
  if (options)
    out->options = *options;
  out->options.replicas = signature.replicas;
  out->options.partitions = signature.partitions;
  out->serializedOptions =
      serialized.empty() ? out->options.serialized() : std::string(serialized);
  out->hash = facts.hash;
  out->deviceBytes = facts.device_bytes + facts.host_bytes;
  mgt_figures figures{};
  figures.size = sizeof figures;
  MGPU_TRY(check(mgt_get_figures(program, &figures)));
  out->costs.add("optimal_seconds", float(figures.bound_us / 1e6));
  out->costs.add("predicted_seconds", float(figures.replay_us / 1e6));
  fillOutputs(*out);
  return out;
}

/// The devices of an executable, or those from 0 on.
Result<std::vector<PJRT_Device *>> devicesOf(PJRT_Client &client,
                                             const CompileOptions &options) {
  const uint32_t processes = options.replicas * options.partitions;
  std::vector<PJRT_Device *> devices;
  for (uint32_t k = 0; k < processes; ++k) {
    const int64_t id =
        options.devices.empty() ? int64_t(k) : options.devices[k];
    PJRT_Device *device = client.find(id);
    if (!device ||
        std::find(devices.begin(), devices.end(), device) != devices.end())
      return fail(ErrorKind::Usage,
                  fmt::format("the program is for {} devices, and device {} is "
                              "not there or there twice: the client has {} "
                              "(MGPU_PJRT_TARGET=host:{})",
                              processes, id, client.list.size(), processes));
    devices.push_back(device);
  }
  return devices;
}

/// The target of a program that is said to run on these devices; else all of
/// the client's.
std::string targetOf(const ClientOptions &client,
                     const CompileOptions *options) {
  if (!client.gpus)
    return "host"; // takes as many as the bundle is for
  return options ? client.targetOf(options->devicesUsed()) : client.target();
}

/// Opens a bundle. `options` may be null.
Result<std::unique_ptr<PJRT_LoadedExecutable>>
load(PJRT_Client &client, device::Blob bundle, const CompileOptions *options,
     std::string_view serialized) {
  MGPU_TRY_ASSIGN(Program program,
                  openProgram(bundle, targetOf(client.options(), options)));
  auto out = std::make_unique<PJRT_LoadedExecutable>();
  MGPU_TRY_ASSIGN(auto compiled, describe(program.get(), std::move(bundle),
                                          options, serialized));
  const Signature &signature = compiled->signature;
  MGPU_TRY_ASSIGN(out->devices, devicesOf(client, compiled->options));
  const uint32_t processes = signature.processes();
  const size_t taken = signature.arguments.size() * processes;
  const size_t count = mgt_num_arguments(program.get());
  if (count != taken + signature.results.size() * processes)
    return fail(ErrorKind::Unsupported,
                fmt::format("the program has {} arguments and results, and its "
                            "function {}: constants whose values are left out "
                            "(__elided__) cannot be given in a call",
                            count,
                            taken + signature.results.size() * processes));
  MGPU_TRY_ASSIGN(out->arguments, placesOf(program.get(), 0, out->devices,
                                           signature.arguments));
  MGPU_TRY_ASSIGN(out->results, placesOf(program.get(), taken, out->devices,
                                         signature.results));
  if (!client.options().gpus) {
    MGPU_TRY(check(mgt_load(program.get())));
    out->isLoaded = true;
  }
  for (uint32_t k = 0; k < processes; ++k)
    out->logical.push_back(
        {int(k / signature.partitions), int(k % signature.partitions)});
  out->client = &client;
  out->program = program.release();
  out->of = std::move(compiled);
  return out;
}

/// The text of a program's format.
PJRT_Error *checkFormat(const PJRT_Program &program) {
  const std::string_view format(program.format ? program.format : "",
                                program.format ? program.format_size : 0);
  if (format != "mlir")
    return unsupported(fmt::format("programs of format '{}': give StableHLO as "
                                   "'mlir', as text or as a portable artifact",
                                   format));
  if (!program.code && program.code_size > 0)
    return isNull("program->code");
  return nullptr;
}

PJRT_Error *compile(const PJRT_Program &program, std::string_view serialized,
                    const ClientOptions &client, CompileOptions &options,
                    device::Blob &bundle, std::function<void()> &keep) {
  MGPU_PJRT_PASS(checkFormat(program));
  auto parsed = CompileOptions::parse(serialized);
  MGPU_PJRT_TRY(parsed);
  options = std::move(*parsed);
  const uint32_t processes = options.replicas * options.partitions;
  if (processes > client.devices)
    return invalid(fmt::format("the program is for {} devices, and there are "
                               "{}: MGPU_PJRT_TARGET=host:{} makes more",
                               processes, client.devices, processes));
  return compileProgram({program.code, program.code_size}, options, client,
                        bundle, keep);
}

std::string_view textOf(const char *data, size_t size) {
  return data ? std::string_view(data, size) : std::string_view();
}

/// `options` are null where the bundle alone says them.
PJRT_Error *loadBundle(PJRT_Client &client, device::Blob bundle,
                       const CompileOptions *options,
                       std::string_view serialized,
                       PJRT_LoadedExecutable **out) {
  auto loaded = load(client, std::move(bundle), options, serialized);
  MGPU_PJRT_TRY(loaded);
  *out = loaded->release();
  return nullptr;
}

/// A bundle that the compiler made opens; one of a damaged compiler does not.
PJRT_Error *whyNotOpened(PJRT_Error *error, bool isNew) {
  if (error && isNew && error->code == PJRT_Error_Code_INVALID_ARGUMENT) {
    error->code = PJRT_Error_Code_INTERNAL;
    error->message = "mgpu-tune made no bundle that opens: " + error->message;
  }
  return error;
}

} // namespace

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

PJRT_Error *Client_Compile(PJRT_Client_Compile_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(program);
  const std::string_view serialized =
      textOf(args.compile_options, args.compile_options_size);
  CompileOptions options;
  device::Blob bundle;
  std::function<void()> keep;
  MGPU_PJRT_PASS(compile(*args.program, serialized, args.client->options(),
                         options, bundle, keep));
  MGPU_PJRT_PASS(
      whyNotOpened(loadBundle(*args.client, std::move(bundle), &options,
                              serialized, &args.executable),
                   bool(keep)));
  if (keep)
    keep();
  return nullptr;
}

PJRT_Error *Compile(PJRT_Compile_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  MGPU_PJRT_NEEDS(program);
  const std::string_view serialized =
      textOf(args.compile_options, args.compile_options_size);
  CompileOptions options;
  device::Blob bundle;
  std::function<void()> keep;
  MGPU_PJRT_PASS(compile(*args.program, serialized, args.topology->options,
                         options, bundle, keep));
  auto program =
      openProgram(bundle, targetOf(args.topology->options, &options));
  MGPU_PJRT_TRY(program);
  auto compiled =
      describe(program->get(), std::move(bundle), &options, serialized);
  MGPU_PJRT_TRY(compiled);
  if (keep)
    keep();
  args.executable = new PJRT_Executable{std::move(*compiled)};
  return nullptr;
}

PJRT_Error *Client_Load(PJRT_Client_Load_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  return loadBundle(*args.client, compiled.bundle, &compiled.options,
                    compiled.serializedOptions, &args.loaded_executable);
}

PJRT_Error *
Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(serialized_executable);
  if (args.serialized_executable_size == 0)
    return invalid("the serialized executable is empty");
  const auto *bytes =
      reinterpret_cast<const std::byte *>(args.serialized_executable);
  device::Blob bundle(bytes, bytes + args.serialized_executable_size);
  const std::string_view given =
      textOf(args.overridden_serialized_compile_options,
             args.overridden_serialized_compile_options_size);
  if (given.empty())
    return loadBundle(*args.client, std::move(bundle), nullptr, "",
                      &args.loaded_executable);
  auto options = CompileOptions::parse(given);
  MGPU_PJRT_TRY(options);
  return loadBundle(*args.client, std::move(bundle), &*options, given,
                    &args.loaded_executable);
}

} // namespace mgpu::pipeline::pjrt
