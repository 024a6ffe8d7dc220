// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of executables, and their bytes.
#include "pipeline/pjrt/Executable.h"
#include "pipeline/pjrt/Handlers.h"
#include "support/Number.h"

#include <fmt/format.h>

namespace mgpu::pipeline::pjrt {

/// Takes the front of `text` up to `end`, and what ends it.
static std::string_view take(std::string_view &text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view front = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return front;
}

static Result<Shape> shapeOf(std::string_view &line) {
  const std::string_view name = take(line, ' ');
  std::string_view sizes = take(line, ' ');
  const PJRT_Buffer_Type type = typeNamed(name);
  if (type == PJRT_Buffer_Type_INVALID)
    return fail(ErrorKind::Unsupported,
                fmt::format("the program takes or gives elements of {}, which "
                            "buffers do not have in this version",
                            name));
  std::vector<int64_t> dims;
  while (!sizes.empty() && sizes != "-") {
    const auto size = numberFrom<int64_t>(take(sizes, 'x'));
    if (!size)
      return fail(ErrorKind::Invalid, "the bundle's shapes are damaged");
    dims.push_back(*size);
  }
  return Shape::of(type, dims.data(), dims.size());
}

Result<Signature> Signature::parse(std::string_view lines) {
  Signature out;
  bool isFound = false;
  while (!lines.empty()) {
    std::string_view line = take(lines, '\n');
    const std::string_view key = take(line, ' ');
    if (key == "processes") {
      const auto replicas = numberFrom<uint32_t>(take(line, ' '));
      const auto partitions = numberFrom<uint32_t>(line);
      constexpr uint32_t most = 1024;
      isFound = replicas && partitions && *replicas > 0 && *partitions > 0 &&
                *replicas <= most && *partitions <= most / *replicas;
      out.replicas = replicas.value_or(1);
      out.partitions = partitions.value_or(1);
    } else if (key == "module") {
      out.name = line;
    } else if (key == "argument") {
      MGPU_TRY_ASSIGN(Shape shape, shapeOf(line));
      out.arguments.push_back(std::move(shape));
      out.donated.push_back(numberFrom<uint32_t>(line));
    } else if (key == "result") {
      MGPU_TRY_ASSIGN(Shape shape, shapeOf(line));
      out.results.push_back(std::move(shape));
    }
  }
  if (!isFound)
    return fail(ErrorKind::Invalid,
                "the bundle does not say what each device gives and takes: "
                "make it with --per-device 1,1");
  return out;
}

PJRT_Error *Executable_Destroy(PJRT_Executable_Destroy_Args &args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error *LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args &args) {
  delete args.executable;
  return nullptr;
}

PJRT_Error *
LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args &args) {
  MGPU_PJRT_NEEDS(loaded_executable);
  args.executable = new PJRT_Executable{args.loaded_executable->of};
  return nullptr;
}

PJRT_Error *LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  std::lock_guard lock(args.executable->mutex);
  mgt_close(args.executable->program);
  args.executable->program = nullptr;
  for (auto *list : {&args.executable->arguments, &args.executable->results})
    for (Place &place : *list)
      place.own = place.bound = nullptr;
  return nullptr;
}

PJRT_Error *
LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  std::lock_guard lock(args.executable->mutex);
  args.is_deleted = !args.executable->program;
  return nullptr;
}

MGPU_PJRT_LIST(LoadedExecutable_AddressableDevices, executable,
               addressable_devices, num_addressable_devices,
               args.executable->devices)
MGPU_PJRT_LIST(LoadedExecutable_AddressableDeviceLogicalIds, executable,
               addressable_device_logical_ids,
               num_addressable_device_logical_ids, args.executable->logical)

/// Bytes that the caller has until it calls `remove`.
template <typename Handle>
static void give(std::string bytes, const char *&data, size_t &size,
                 Handle *&handle, void (*&remove)(Handle *)) {
  auto *kept = new std::string(std::move(bytes));
  data = kept->data();
  size = kept->size();
  handle = reinterpret_cast<Handle *>(kept);
  remove = [](Handle *text) { delete reinterpret_cast<std::string *>(text); };
}

PJRT_Error *LoadedExecutable_GetDeviceAssignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  std::vector<int64_t> ids;
  for (const PJRT_Device *device : args.executable->devices)
    ids.push_back(device->description->id);
  const Signature &signature = args.executable->of->signature;
  give(
      CompileOptions::assignment(signature.replicas, signature.partitions, ids),
      args.serialized_bytes, args.serialized_bytes_size,
      args.serialized_device_assignment,
      args.serialized_device_assignment_deleter);
  return nullptr;
}

MGPU_PJRT_TEXT(Executable_Name, executable, executable_name,
               args.executable->of->signature.name)
MGPU_PJRT_GET(Executable_NumReplicas, executable, num_replicas,
              args.executable->of->signature.replicas)
MGPU_PJRT_GET(Executable_NumPartitions, executable, num_partitions,
              args.executable->of->signature.partitions)
MGPU_PJRT_GET(Executable_NumOutputs, executable, num_outputs,
              args.executable->of->signature.results.size())
MGPU_PJRT_GET(Executable_SizeOfGeneratedCodeInBytes, executable, size_in_bytes,
              int64_t(args.executable->of->bundle.size()))
MGPU_PJRT_TEXT(Executable_Fingerprint, executable, executable_fingerprint,
               args.executable->of->hash)
MGPU_PJRT_TEXT(LoadedExecutable_Fingerprint, executable, executable_fingerprint,
               args.executable->of->hash)
MGPU_PJRT_LIST(Executable_GetCostAnalysis, executable, properties,
               num_properties, args.executable->of->costs)

static int64_t bytesOfAll(const std::vector<Shape> &shapes) {
  int64_t bytes = 0;
  for (const Shape &shape : shapes)
    bytes += int64_t(shape.bytes());
  return bytes;
}

PJRT_Error *Executable_GetCompiledMemoryStats(
    PJRT_Executable_GetCompiledMemoryStats_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  const Signature &signature = compiled.signature;
  args.generated_code_size_in_bytes = int64_t(compiled.bundle.size());
  args.argument_size_in_bytes = bytesOfAll(signature.arguments);
  args.output_size_in_bytes = bytesOfAll(signature.results);
  // The program has places of its own for arguments and results.
  args.temp_size_in_bytes =
      int64_t(compiled.deviceBytes / signature.processes());
  args.peak_memory_in_bytes = args.total_size_in_bytes =
      args.total_allocation_bytes =
          args.argument_size_in_bytes + args.output_size_in_bytes +
          args.temp_size_in_bytes;
  return nullptr;
}

PJRT_Error *
Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  args.output_types =
      const_cast<PJRT_Buffer_Type *>(compiled.outputTypes.data());
  args.num_output_types = compiled.outputTypes.size();
  return nullptr;
}

PJRT_Error *
Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  args.num_outputs = compiled.outputRanks.size();
  args.dims = compiled.outputDims.data();
  args.dim_sizes = compiled.outputRanks.data();
  return nullptr;
}

PJRT_Error *Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  args.num_parameters = compiled.inputKinds.size();
  args.memory_kinds = compiled.inputKinds.data();
  args.memory_kind_sizes = compiled.inputKindSizes.data();
  return nullptr;
}

PJRT_Error *
Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const Compiled &compiled = *args.executable->of;
  args.num_outputs = compiled.outputKinds.size();
  args.memory_kinds = compiled.outputKinds.data();
  args.memory_kind_sizes = compiled.outputKindSizes.data();
  return nullptr;
}

PJRT_Error *Executable_Serialize(PJRT_Executable_Serialize_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  const device::Blob &bundle = args.executable->of->bundle;
  give(
      std::string(reinterpret_cast<const char *>(bundle.data()), bundle.size()),
      args.serialized_bytes, args.serialized_bytes_size,
      args.serialized_executable, args.serialized_executable_deleter);
  return nullptr;
}

PJRT_Error *
Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args &args) {
  MGPU_PJRT_NEEDS(executable);
  give(args.executable->of->serializedOptions, args.serialized_bytes,
       args.serialized_bytes_size, args.serialized_compile_options,
       args.serialized_compile_options_deleter);
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
