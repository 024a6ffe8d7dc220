// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, memories and topologies.
#include "pipeline/pjrt/Client.h"
#include "pipeline/pjrt/Handlers.h"
#include "pipeline/program/Version.h"
#include "support/Sha256.h"

#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

using namespace mgpu;
using namespace mgpu::pipeline::pjrt;

namespace mgpu::pipeline::pjrt {

const char *const memoryKinds[numMemoryKinds] = {"device", "unpinned_host"};

void MemoryUse::take(int64_t size) {
  const int64_t now = bytes += size;
  ++allocations;
  for (auto [most, value] : {std::pair(&peak, now), std::pair(&largest, size)})
    for (int64_t seen = *most;
         seen < value && !most->compare_exchange_weak(seen, value);) {
    }
}

PJRT_Memory *placeOf(PJRT_Memory *memory, PJRT_Device *device) {
  return memory ? memory : device ? device->list[deviceMemory] : nullptr;
}

static const PJRT_Memory_FunctionTable memoryTable = {
    sizeof(PJRT_Memory_FunctionTable),
    nullptr,
    sizeof(PJRT_Memory),
    [](PJRT_Memory *memory, const void *key) -> void * {
      std::lock_guard lock(memory->mutex);
      auto at = memory->users.find(key);
      return at == memory->users.end() ? nullptr : at->second.data;
    },
    [](PJRT_Memory *memory, const void *key, void *data,
       void (*destroy)(void *)) {
      std::lock_guard lock(memory->mutex);
      memory->users[key] = {data, destroy};
    },
};

} // namespace mgpu::pipeline::pjrt

PJRT_Memory::PJRT_Memory(PJRT_Device &device, MemoryKind kind, int id)
    : vtable(&memoryTable), device(&device), kind(kind), id(id),
      text(fmt::format("{} memory of device {}", memoryKinds[kind],
                       device.description->id)) {}

PJRT_Memory::~PJRT_Memory() {
  for (auto &[key, user] : users)
    if (user.destroy)
      user.destroy(user.data);
}

PJRT_Device::PJRT_Device(PJRT_Client &client,
                         PJRT_DeviceDescription &description,
                         std::shared_ptr<mgpu::device::GpuContext> gpu)
    : client(&client), description(&description), gpu(std::move(gpu)) {
  for (int kind = 0; kind < numMemoryKinds; ++kind)
    list.push_back(&memories.emplace_back(
        *this, MemoryKind(kind), description.id * numMemoryKinds + kind));
}

PJRT_DeviceDescription::PJRT_DeviceDescription(int id,
                                               const ClientOptions &options)
    : id(id), text(fmt::format("mgpu(id={})", id)),
      debug(fmt::format("device {} of {} of mgpu's target {}", id,
                        options.devices, options.target())),
      kind(options.gpus ? "mgpu cuda" : "mgpu host") {
  attributes.add("coords", std::vector<int64_t>{id});
}

PJRT_TopologyDescription::PJRT_TopologyDescription(const ClientOptions &options)
    : options(options), version(pipeline::versionText("mgpu", "")),
      serialized(fmt::format("mgpu-topology/1 {} {}", options.target(),
                             options.platform)) {
  version = version.substr(0, version.find('\n'));
  for (uint32_t k = 0; k < options.devices; ++k)
    list.push_back(&devices.emplace_back(int(k), options));
  attributes.add("target", options.target());
}

namespace mgpu::pipeline::pjrt {

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

MGPU_PJRT_GET(DeviceDescription_Id, device_description, id,
              args.device_description->id)
MGPU_PJRT_GET(DeviceDescription_ProcessIndex, device_description, process_index,
              0)
MGPU_PJRT_LIST(DeviceDescription_Attributes, device_description, attributes,
               num_attributes, args.device_description->attributes)

PJRT_Error *DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.device_kind = args.device_description->kind.c_str();
  args.device_kind_size = args.device_description->kind.size();
  return nullptr;
}

MGPU_PJRT_TEXT(DeviceDescription_DebugString, device_description, debug_string,
               args.device_description->debug)
MGPU_PJRT_TEXT(DeviceDescription_ToString, device_description, to_string,
               args.device_description->text)
MGPU_PJRT_GET(Device_GetDescription, device, device_description,
              args.device->description)
MGPU_PJRT_GET(Device_IsAddressable, device, is_addressable, true)
MGPU_PJRT_GET(Device_LocalHardwareId, device, local_hardware_id,
              args.device->description->id)
MGPU_PJRT_LIST(Device_AddressableMemories, device, memories, num_memories,
               args.device->list)
MGPU_PJRT_GET(Device_DefaultMemory, device, memory,
              args.device->list[deviceMemory])

PJRT_Error *Device_MemoryStats(PJRT_Device_MemoryStats_Args &args) {
  MGPU_PJRT_NEEDS(device);
  const MemoryUse &use = *args.device->use;
  args.bytes_in_use = use.bytes;
  args.peak_bytes_in_use = use.peak;
  args.num_allocs = use.allocations;
  args.largest_alloc_size = use.largest;
  args.bytes_limit = args.device->gpu ? int64_t(args.device->gpu->totalBytes())
                                      : int64_t(::sysconf(_SC_PHYS_PAGES)) *
                                            ::sysconf(_SC_PAGESIZE);
  args.peak_bytes_in_use_is_set = args.num_allocs_is_set =
      args.largest_alloc_size_is_set = args.bytes_limit_is_set = true;
  return nullptr;
}

PJRT_Error *Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args &args) {
  MGPU_PJRT_NEEDS(device);
  MemoryUse &use = *args.device->use;
  use.peak = use.bytes.load();
  use.allocations = use.largest = 0;
  return nullptr;
}

PJRT_Error *Device_GetAttributes(PJRT_Device_GetAttributes_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.attributes = args.device->description->attributes.data();
  args.num_attributes = args.device->description->attributes.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes *) {};
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Memories
//===----------------------------------------------------------------------===//

MGPU_PJRT_GET(Memory_Id, memory, id, args.memory->id)

PJRT_Error *Memory_Kind(PJRT_Memory_Kind_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.kind = memoryKinds[args.memory->kind];
  args.kind_size = std::strlen(args.kind);
  return nullptr;
}

MGPU_PJRT_GET(Memory_Kind_Id, memory, kind_id, args.memory->kind)
MGPU_PJRT_TEXT(Memory_DebugString, memory, debug_string, args.memory->text)
MGPU_PJRT_TEXT(Memory_ToString, memory, to_string, args.memory->text)

PJRT_Error *
Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.devices = &args.memory->device;
  args.num_devices = 1;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Topologies
//===----------------------------------------------------------------------===//

PJRT_Error *
TopologyDescription_Create(PJRT_TopologyDescription_Create_Args &args) {
  if (args.num_options > 0)
    MGPU_PJRT_NEEDS(create_options);
  std::vector<PJRT_NamedValue> given(args.create_options,
                                     args.create_options + args.num_options);
  if (args.topology_name && args.topology_name_size > 0) {
    PJRT_NamedValue name{};
    name.name = "target";
    name.name_size = std::strlen(name.name);
    name.type = PJRT_NamedValue_kString;
    name.string_value = args.topology_name;
    name.value_size = args.topology_name_size;
    given.push_back(name);
  }
  auto options = ClientOptions::from(given);
  MGPU_PJRT_TRY(options);
  args.topology = new PJRT_TopologyDescription(*options);
  return nullptr;
}

PJRT_Error *
TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args &args) {
  delete args.topology;
  return nullptr;
}

MGPU_PJRT_TEXT(TopologyDescription_PlatformName, topology, platform_name,
               args.topology->options.platform)
MGPU_PJRT_TEXT(TopologyDescription_PlatformVersion, topology, platform_version,
               args.topology->version)
MGPU_PJRT_LIST(TopologyDescription_GetDeviceDescriptions, topology,
               descriptions, num_descriptions, args.topology->list)
MGPU_PJRT_LIST(TopologyDescription_Attributes, topology, attributes,
               num_attributes, args.topology->attributes)

PJRT_Error *TopologyDescription_Fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  const std::string hash =
      Sha256().addField(args.topology->serialized).hex().substr(0, 16);
  args.fingerprint = std::strtoull(hash.c_str(), nullptr, 16);
  return nullptr;
}

PJRT_Error *
TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  auto *kept = new std::string(args.topology->serialized);
  args.serialized_bytes = kept->data();
  args.serialized_bytes_size = kept->size();
  args.serialized_topology = reinterpret_cast<PJRT_SerializedTopology *>(kept);
  args.serialized_topology_deleter = [](PJRT_SerializedTopology *text) {
    delete reinterpret_cast<std::string *>(text);
  };
  return nullptr;
}

PJRT_Error *TopologyDescription_Deserialize(
    PJRT_TopologyDescription_Deserialize_Args &args) {
  MGPU_PJRT_NEEDS(serialized_topology);
  const std::string text(args.serialized_topology,
                         args.serialized_topology_size);
  const size_t target = text.find(' '), platform = text.find(' ', target + 1);
  if (!text.starts_with("mgpu-topology/1 ") || platform == text.npos)
    return invalid("the serialised topology is none of mgpu's");
  const std::string name = text.substr(platform + 1);
  PJRT_NamedValue given[2] = {};
  given[0].name = "target";
  given[0].string_value = text.data() + target + 1;
  given[0].value_size = platform - target - 1;
  given[1].name = "platform_name";
  given[1].string_value = name.data();
  given[1].value_size = name.size();
  for (PJRT_NamedValue &each : given) {
    each.name_size = std::strlen(each.name);
    each.type = PJRT_NamedValue_kString;
  }
  auto options = ClientOptions::from(given);
  MGPU_PJRT_TRY(options);
  args.topology = new PJRT_TopologyDescription(*options);
  return nullptr;
}

PJRT_Error *TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  static constexpr int ids[numMemoryKinds] = {deviceMemory, hostMemory};
  args.memory_space_kind_ids = ids;
  args.num_memory_space_kind_ids = numMemoryKinds;
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
