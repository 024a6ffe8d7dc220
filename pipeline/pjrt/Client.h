// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_CLIENT_H
#define MGPU_PIPELINE_PJRT_CLIENT_H

// A client, its devices and their memories. Virtual devices have memory of the
// host: they are places that buffers are counted in.

#include "device/cuda/CudaTarget.h"
#include "device/cuda/GpuContext.h"
#include "pipeline/pjrt/Errors.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <span>

namespace mgpu::pipeline::pjrt {

/// Names with their values, as the interface gives them. It keeps the texts.
class NamedValues {
public:
  NamedValues() = default;
  NamedValues(const NamedValues &) = delete;
  NamedValues &operator=(const NamedValues &) = delete;

  void add(std::string name, std::string value);
  void add(std::string name, int64_t value);
  void add(std::string name, std::vector<int64_t> value);
  void add(std::string name, float value);
  const PJRT_NamedValue *data() const { return values.data(); }
  size_t size() const { return values.size(); }

private:
  PJRT_NamedValue &next(std::string name, PJRT_NamedValue_Type type);

  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> lists;
  std::vector<PJRT_NamedValue> values;
};

/// The settings of a client, by its creator or else by the environment.
struct ClientOptions {
  /// MGPU_PJRT_TARGET: "host:4", "cuda:0/4", "cuda:0,1".
  uint32_t devices = 1;
  std::optional<device::CudaTarget> gpus = std::nullopt; ///< none: the host
  std::string platform = "mgpu";                         ///< MGPU_PJRT_PLATFORM
  /// MGPU_PJRT_CACHE: the folder of compiled programs; "" for none.
  std::string cache;
  double compileSeconds = 600; ///< MGPU_PJRT_COMPILE_SECONDS

  static Result<ClientOptions> from(std::span<const PJRT_NamedValue> given);
  std::string target() const;
  /// The target that opens a program for these devices.
  std::string targetOf(std::span<const int64_t> ids) const;
  /// The GPU that a device is on; of a client of GPUs.
  int gpuOf(int64_t device) const {
    return gpus->gpus[std::min(size_t(device), gpus->gpus.size() - 1)];
  }
};

/// The bytes of a device's buffers.
struct MemoryUse {
  std::atomic<int64_t> bytes = 0, peak = 0, allocations = 0, largest = 0;
  void take(int64_t size);
};

/// The memories of a device, which differ in their names.
enum MemoryKind { deviceMemory, hostMemory, numMemoryKinds };
extern const char *const memoryKinds[numMemoryKinds];

} // namespace mgpu::pipeline::pjrt

struct PJRT_DeviceDescription {
  PJRT_DeviceDescription(int id,
                         const mgpu::pipeline::pjrt::ClientOptions &options);

  int id;
  std::string text, debug, kind;
  mgpu::pipeline::pjrt::NamedValues attributes;
};

struct PJRT_TopologyDescription {
  explicit PJRT_TopologyDescription(
      const mgpu::pipeline::pjrt::ClientOptions &options);

  mgpu::pipeline::pjrt::ClientOptions options;
  std::string version, serialized;
  std::deque<PJRT_DeviceDescription> devices;
  std::vector<PJRT_DeviceDescription *> list;
  mgpu::pipeline::pjrt::NamedValues attributes;
};

struct PJRT_Memory {
  PJRT_Memory(PJRT_Device &device, mgpu::pipeline::pjrt::MemoryKind kind,
              int id);
  ~PJRT_Memory();

  const PJRT_Memory_FunctionTable *vtable; // first, by the interface
  PJRT_Device *device;
  mgpu::pipeline::pjrt::MemoryKind kind;
  int id;
  std::string text;

  struct UserData {
    void *data;
    void (*destroy)(void *);
  };
  std::mutex mutex; ///< of `users`
  std::map<const void *, UserData> users;
};

struct PJRT_Device {
  PJRT_Device(PJRT_Client &client, PJRT_DeviceDescription &description,
              std::shared_ptr<mgpu::device::GpuContext> gpu);

  PJRT_Client *client;
  PJRT_DeviceDescription *description;
  std::shared_ptr<mgpu::device::GpuContext> gpu; ///< null on the host
  std::shared_ptr<mgpu::pipeline::pjrt::MemoryUse> use =
      std::make_shared<mgpu::pipeline::pjrt::MemoryUse>();
  std::deque<PJRT_Memory> memories;
  std::vector<PJRT_Memory *> list;
};

struct PJRT_Client {
  /// `gpus` has that of each device of a client of GPUs.
  PJRT_Client(
      const mgpu::pipeline::pjrt::ClientOptions &options,
      const std::vector<std::shared_ptr<mgpu::device::GpuContext>> &gpus);

  PJRT_TopologyDescription topology;
  std::deque<PJRT_Device> devices;
  std::vector<PJRT_Device *> list;
  std::vector<PJRT_Memory *> memories;

  const mgpu::pipeline::pjrt::ClientOptions &options() const {
    return topology.options;
  }
  /// Null where there is none.
  PJRT_Device *find(int64_t id);
};

namespace mgpu::pipeline::pjrt {

/// The memory that a call means by the memory or the device that it names, one
/// of which may be null.
PJRT_Memory *placeOf(PJRT_Memory *memory, PJRT_Device *device);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_CLIENT_H
