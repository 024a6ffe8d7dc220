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

static const char deviceKind[] = "mgpu host";

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
                         PJRT_DeviceDescription &description)
    : client(&client), description(&description) {
  for (int kind = 0; kind < numMemoryKinds; ++kind)
    list.push_back(&memories.emplace_back(
        *this, MemoryKind(kind), description.id * numMemoryKinds + kind));
}

PJRT_DeviceDescription::PJRT_DeviceDescription(int id, uint32_t devices)
    : id(id), text(fmt::format("mgpu(id={})", id)),
      debug(fmt::format("device {} of {} of mgpu's host target", id, devices)) {
  attributes.add("coords", std::vector<int64_t>{id});
}

PJRT_TopologyDescription::PJRT_TopologyDescription(const ClientOptions &options)
    : options(options), version(pipeline::versionText("mgpu", "")),
      serialized(fmt::format("mgpu-topology/1 {} {}", options.target(),
                             options.platform)) {
  version = version.substr(0, version.find('\n'));
  for (uint32_t k = 0; k < options.devices; ++k)
    list.push_back(&devices.emplace_back(int(k), options.devices));
  attributes.add("target", options.target());
}

namespace mgpu::pipeline::pjrt {

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

PJRT_Error *DeviceDescription_Id(PJRT_DeviceDescription_Id_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.id = args.device_description->id;
  return nullptr;
}

PJRT_Error *
DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.process_index = 0;
  return nullptr;
}

PJRT_Error *
DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.attributes = args.device_description->attributes.data();
  args.num_attributes = args.device_description->attributes.size();
  return nullptr;
}

PJRT_Error *DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.device_kind = deviceKind;
  args.device_kind_size = std::strlen(deviceKind);
  return nullptr;
}

PJRT_Error *
DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.debug_string = args.device_description->debug.c_str();
  args.debug_string_size = args.device_description->debug.size();
  return nullptr;
}

PJRT_Error *
DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args &args) {
  MGPU_PJRT_NEEDS(device_description);
  args.to_string = args.device_description->text.c_str();
  args.to_string_size = args.device_description->text.size();
  return nullptr;
}

PJRT_Error *Device_GetDescription(PJRT_Device_GetDescription_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.device_description = args.device->description;
  return nullptr;
}

PJRT_Error *Device_IsAddressable(PJRT_Device_IsAddressable_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.is_addressable = true;
  return nullptr;
}

PJRT_Error *Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.local_hardware_id = args.device->description->id;
  return nullptr;
}

PJRT_Error *
Device_AddressableMemories(PJRT_Device_AddressableMemories_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.memories = args.device->list.data();
  args.num_memories = args.device->list.size();
  return nullptr;
}

PJRT_Error *Device_DefaultMemory(PJRT_Device_DefaultMemory_Args &args) {
  MGPU_PJRT_NEEDS(device);
  args.memory = args.device->list[deviceMemory];
  return nullptr;
}

PJRT_Error *Device_MemoryStats(PJRT_Device_MemoryStats_Args &args) {
  MGPU_PJRT_NEEDS(device);
  const MemoryUse &use = *args.device->use;
  args.bytes_in_use = use.bytes;
  args.peak_bytes_in_use = use.peak;
  args.num_allocs = use.allocations;
  args.largest_alloc_size = use.largest;
  args.bytes_limit =
      int64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
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

PJRT_Error *Memory_Id(PJRT_Memory_Id_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.id = args.memory->id;
  return nullptr;
}

PJRT_Error *Memory_Kind(PJRT_Memory_Kind_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.kind = memoryKinds[args.memory->kind];
  args.kind_size = std::strlen(args.kind);
  return nullptr;
}

PJRT_Error *Memory_Kind_Id(PJRT_Memory_Kind_Id_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.kind_id = args.memory->kind;
  return nullptr;
}

PJRT_Error *Memory_DebugString(PJRT_Memory_DebugString_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.debug_string = args.memory->text.c_str();
  args.debug_string_size = args.memory->text.size();
  return nullptr;
}

PJRT_Error *Memory_ToString(PJRT_Memory_ToString_Args &args) {
  MGPU_PJRT_NEEDS(memory);
  args.to_string = args.memory->text.c_str();
  args.to_string_size = args.memory->text.size();
  return nullptr;
}

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

PJRT_Error *TopologyDescription_PlatformName(
    PJRT_TopologyDescription_PlatformName_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  args.platform_name = args.topology->options.platform.c_str();
  args.platform_name_size = args.topology->options.platform.size();
  return nullptr;
}

PJRT_Error *TopologyDescription_PlatformVersion(
    PJRT_TopologyDescription_PlatformVersion_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  args.platform_version = args.topology->version.c_str();
  args.platform_version_size = args.topology->version.size();
  return nullptr;
}

PJRT_Error *TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  args.descriptions = args.topology->list.data();
  args.num_descriptions = args.topology->list.size();
  return nullptr;
}

PJRT_Error *
TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args &args) {
  MGPU_PJRT_NEEDS(topology);
  args.attributes = args.topology->attributes.data();
  args.num_attributes = args.topology->attributes.size();
  return nullptr;
}

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
