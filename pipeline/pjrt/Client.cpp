// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Client.h"

#include "pipeline/pjrt/Handlers.h"
#include "pipeline/program/Version.h"
#include "support/Number.h"
#include "support/Spelling.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>

namespace mgpu::pipeline::pjrt {

//===----------------------------------------------------------------------===//
// Named values
//===----------------------------------------------------------------------===//

PJRT_NamedValue &NamedValues::next(std::string name,
                                   PJRT_NamedValue_Type type) {
  PJRT_NamedValue &value = values.emplace_back();
  value.struct_size = sizeof(PJRT_NamedValue);
  const std::string &kept = texts.emplace_back(std::move(name));
  value.name = kept.c_str();
  value.name_size = kept.size();
  value.type = type;
  value.value_size = 1;
  return value;
}

void NamedValues::add(std::string name, std::string text) {
  const std::string &kept = texts.emplace_back(std::move(text));
  PJRT_NamedValue &value = next(std::move(name), PJRT_NamedValue_kString);
  value.string_value = kept.c_str();
  value.value_size = kept.size();
}

void NamedValues::add(std::string name, int64_t number) {
  next(std::move(name), PJRT_NamedValue_kInt64).int64_value = number;
}

void NamedValues::add(std::string name, std::vector<int64_t> list) {
  const std::vector<int64_t> &kept = lists.emplace_back(std::move(list));
  PJRT_NamedValue &value = next(std::move(name), PJRT_NamedValue_kInt64List);
  value.int64_array_value = kept.data();
  value.value_size = kept.size();
}

void NamedValues::add(std::string name, float number) {
  next(std::move(name), PJRT_NamedValue_kFloat).float_value = number;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static std::string userCache() {
  if (std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/'))
    return caches + "/mgpu/pjrt";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/mgpu/pjrt";
}

/// Sets one option by its name.
static Result<void> setOption(ClientOptions &options, const std::string &name,
                              const std::string &text) {
  if (name == "target" && device::isCudaTarget(text)) {
    MGPU_TRY_ASSIGN(options.gpus, device::parseCudaTarget(text));
    options.devices = std::max(uint32_t(options.gpus->gpus.size()),
                               options.gpus->devicesOnGpu);
  } else if (name == "target") {
    const std::string count =
        text == "host" ? "1" : text.substr(std::min<size_t>(5, text.size()));
    const auto devices = numberFrom<uint32_t>(count);
    constexpr uint32_t most = 1024;
    if (!text.starts_with("host") || !devices || *devices < 1 ||
        *devices > most || (text != "host" && text[4] != ':'))
      return fail(ErrorKind::Usage,
                  fmt::format("target '{}': use host, or host:N with at most "
                              "{} devices, or GPUs: cuda:0, cuda:0,1, cuda:0/2",
                              text, most));
    options.devices = *devices;
    options.gpus.reset();
  } else if (name == "platform_name") {
    options.platform = text;
  } else if (name == "cache") {
    options.cache = text == "off" ? "" : text;
  } else if (name == "compile_seconds") {
    const auto seconds = numberFrom<double>(text);
    if (!seconds || !(*seconds > 0) || *seconds > 1e6)
      return fail(ErrorKind::Usage,
                  fmt::format("compile_seconds '{}' is no time", text));
    options.compileSeconds = *seconds;
  } else {
    static const std::vector<std::string> known = {"target", "platform_name",
                                                   "cache", "compile_seconds"};
    return fail(ErrorKind::Usage,
                fmt::format("there is no create option '{}'{}; there are {}",
                            name, didYouMean(name, known),
                            fmt::join(known, ", ")));
  }
  return {};
}

/// The text of a value, as the environment would have it.
static Result<std::string> textOf(const PJRT_NamedValue &value,
                                  const std::string &name) {
  if (value.type == PJRT_NamedValue_kString && value.string_value)
    return std::string(value.string_value, value.value_size);
  if (value.type == PJRT_NamedValue_kInt64)
    return std::to_string(value.int64_value);
  if (value.type == PJRT_NamedValue_kFloat)
    return fmt::format("{}", value.float_value);
  return fail(
      ErrorKind::Usage,
      fmt::format("create option '{}' must be a text or a number", name));
}

Result<ClientOptions>
ClientOptions::from(std::span<const PJRT_NamedValue> given) {
  ClientOptions options;
  options.cache = userCache();
  for (const auto &[name, from] :
       {std::pair("target", "MGPU_PJRT_TARGET"),
        std::pair("platform_name", "MGPU_PJRT_PLATFORM"),
        std::pair("cache", "MGPU_PJRT_CACHE"),
        std::pair("compile_seconds", "MGPU_PJRT_COMPILE_SECONDS")})
    if (const std::string text = variable(from); !text.empty())
      MGPU_TRY(setOption(options, name, text));
  // Clients that take the library for one of GPUs, by its name, give these;
  // the host has no such allocator.
  static const std::set<std::string> unused = {"allocator", "memory_fraction",
                                               "preallocate"};
  for (const PJRT_NamedValue &value : given) {
    const std::string name(value.name ? value.name : "",
                           value.name ? value.name_size : 0);
    if (unused.contains(name))
      continue;
    MGPU_TRY_ASSIGN(const std::string text, textOf(value, name));
    MGPU_TRY(setOption(options, name, text));
  }
  return options;
}

std::string ClientOptions::target() const {
  std::vector<int64_t> all(devices);
  std::iota(all.begin(), all.end(), 0);
  return targetOf(all);
}

std::string ClientOptions::targetOf(std::span<const int64_t> ids) const {
  if (!gpus)
    return fmt::format("host:{}", ids.size());
  if (gpus->gpus.size() == 1)
    return fmt::format("cuda:{}/{}", gpus->gpus[0], ids.size());
  std::vector<int> used;
  for (int64_t id : ids)
    used.push_back(gpuOf(id));
  return fmt::format("cuda:{}", fmt::join(used, ","));
}

//===----------------------------------------------------------------------===//
// The plugin and its clients
//===----------------------------------------------------------------------===//

PJRT_Error *Plugin_Initialize(PJRT_Plugin_Initialize_Args &) { return nullptr; }

PJRT_Error *Plugin_Attributes(PJRT_Plugin_Attributes_Args &args) {
  static const NamedValues attributes;
  static const bool isFilled = [] {
    auto &all = const_cast<NamedValues &>(attributes);
    // Programs are read as dialect/vhlo has them; nothing of XLA is here.
    all.add("xla_version", int64_t(0));
    all.add("stablehlo_minimum_version", std::vector<int64_t>{0, 9, 0});
    all.add("stablehlo_current_version", std::vector<int64_t>{1, 20, 0});
    all.add("mgpu_version", std::string(MGPU_VERSION));
    return true;
  }();
  (void)isFilled;
  args.attributes = attributes.data();
  args.num_attributes = attributes.size();
  return nullptr;
}

PJRT_Error *Client_Create(PJRT_Client_Create_Args &args) {
  if (args.num_options > 0)
    MGPU_PJRT_NEEDS(create_options);
  auto options = ClientOptions::from({args.create_options, args.num_options});
  MGPU_PJRT_TRY(options);
  std::vector<std::shared_ptr<device::GpuContext>> gpus;
  for (uint32_t k = 0; options->gpus && k < options->devices; ++k) {
    if (k > 0 && options->gpuOf(k) == options->gpuOf(k - 1)) {
      gpus.push_back(gpus.back());
      continue;
    }
    auto gpu = device::GpuContext::open(options->gpuOf(k));
    MGPU_PJRT_TRY(gpu);
    gpus.push_back(std::move(*gpu));
  }
  args.client = new PJRT_Client(*options, gpus);
  return nullptr;
}

PJRT_Error *Client_Destroy(PJRT_Client_Destroy_Args &args) {
  delete args.client;
  return nullptr;
}

MGPU_PJRT_TEXT(Client_PlatformName, client, platform_name,
               args.client->options().platform)
MGPU_PJRT_TEXT(Client_PlatformVersion, client, platform_version,
               args.client->topology.version)
MGPU_PJRT_GET(Client_ProcessIndex, client, process_index, 0)
MGPU_PJRT_LIST(Client_Devices, client, devices, num_devices, args.client->list)
MGPU_PJRT_LIST(Client_AddressableDevices, client, addressable_devices,
               num_addressable_devices, args.client->list)
MGPU_PJRT_LIST(Client_AddressableMemories, client, addressable_memories,
               num_addressable_memories, args.client->memories)

static PJRT_Error *lookUp(PJRT_Client &client, int id, PJRT_Device *&device) {
  device = client.find(id);
  return device ? nullptr
                : invalid(fmt::format("there is no device {}: there are {} "
                                      "devices, from 0",
                                      id, client.list.size()));
}

PJRT_Error *Client_LookupDevice(PJRT_Client_LookupDevice_Args &args) {
  MGPU_PJRT_NEEDS(client);
  return lookUp(*args.client, args.id, args.device);
}

PJRT_Error *
Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args &args) {
  MGPU_PJRT_NEEDS(client);
  return lookUp(*args.client, args.local_hardware_id, args.addressable_device);
}

PJRT_Error *
Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(default_assignment);
  const int64_t count = int64_t(args.num_replicas) * args.num_partitions;
  if (args.num_replicas < 1 || args.num_partitions < 1 ||
      size_t(count) > args.client->list.size() ||
      size_t(count) > args.default_assignment_size)
    return invalid(fmt::format("{} replicas of {} partitions do not fit {} "
                               "devices, or an assignment of {}",
                               args.num_replicas, args.num_partitions,
                               args.client->list.size(),
                               args.default_assignment_size));
  for (int64_t k = 0; k < count; ++k)
    args.default_assignment[k] = int(k);
  return nullptr;
}

MGPU_PJRT_GET(Client_TopologyDescription, client, topology,
              &args.client->topology)

// Any memory of the process can be copied from and to.
PJRT_Error *Client_DmaMap(PJRT_Client_DmaMap_Args &args) {
  MGPU_PJRT_NEEDS(client);
  return nullptr;
}

PJRT_Error *Client_DmaUnmap(PJRT_Client_DmaUnmap_Args &args) {
  MGPU_PJRT_NEEDS(client);
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt

PJRT_Client::PJRT_Client(
    const mgpu::pipeline::pjrt::ClientOptions &options,
    const std::vector<std::shared_ptr<mgpu::device::GpuContext>> &gpus)
    : topology(options) {
  for (PJRT_DeviceDescription &each : topology.devices)
    list.push_back(&devices.emplace_back(
        *this, each, gpus.empty() ? nullptr : gpus[size_t(each.id)]));
  for (PJRT_Device &device : devices)
    memories.insert(memories.end(), device.list.begin(), device.list.end());
}

PJRT_Device *PJRT_Client::find(int64_t id) {
  return id >= 0 && size_t(id) < list.size() ? list[size_t(id)] : nullptr;
}
