// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_BUFFER_H
#define MGPU_PIPELINE_PJRT_BUFFER_H

#include "pipeline/pjrt/Client.h"
#include "pipeline/pjrt/Shape.h"

namespace mgpu::pipeline::pjrt {

/// Memory that buffers share, of the host or of a GPU.
class Storage {
public:
  /// RESOURCE_EXHAUSTED where there is no memory.
  static PJRT_Error *make(const Shape &shape, PJRT_Memory &memory,
                          std::shared_ptr<Storage> &out);
  /// Takes memory of someone else, whom `release` tells that it is not used any
  /// more.
  Storage(void *data, std::shared_ptr<device::GpuContext> gpu,
          std::function<void()> release)
      : data(data), gpu(std::move(gpu)), release(std::move(release)) {}
  ~Storage();
  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;

  void *address() const { return data; }
  bool isOnGpu() const { return gpu != nullptr; }
  bool isOwn() const { return own; }

  // Copies from and to memory of the host, and from another storage. Errors are
  // those of the GPU's driver.
  Result<void> write(size_t offset, const void *from, size_t bytes);
  Result<void> read(size_t offset, void *to, size_t bytes) const;
  Result<void> take(const Storage &from, size_t bytes);

private:
  std::byte *at(size_t offset) const {
    return static_cast<std::byte *>(data) + offset;
  }

  void *data;
  std::shared_ptr<device::GpuContext> gpu;
  std::function<void()> release;
  bool own = false;
};

/// The memory of a device's kind "device" is that of its GPU, if it has one.
const std::shared_ptr<device::GpuContext> &gpuOf(const PJRT_Memory &memory);

} // namespace mgpu::pipeline::pjrt

struct PJRT_Buffer {
  mgpu::pipeline::pjrt::Shape shape;
  PJRT_Memory *memory = nullptr;
  /// Done once the contents are there.
  mgpu::pipeline::pjrt::Done ready = mgpu::pipeline::pjrt::alreadyDone();

  /// Its memory; null once it is deleted or donated.
  std::shared_ptr<mgpu::pipeline::pjrt::Storage> storage() const;
  void drop();

  // Uses of its memory that the plugin does not see.
  void pin();
  void unpin(); ///< may end the buffer
  void destroy();

  PJRT_Buffer(mgpu::pipeline::pjrt::Shape shape, PJRT_Memory *memory,
              std::shared_ptr<mgpu::pipeline::pjrt::Storage> storage)
      : shape(std::move(shape)), memory(memory), own(std::move(storage)) {}

private:
  mutable std::mutex mutex; ///< of what follows
  std::shared_ptr<mgpu::pipeline::pjrt::Storage> own, pinned;
  size_t pins = 0;
  bool isDestroyed = false;
};

namespace mgpu::pipeline::pjrt {

/// Makes a buffer with memory of its own; the errors of Storage::make().
PJRT_Error *makeBuffer(Shape shape, PJRT_Memory *memory, PJRT_Buffer **out);

/// FAILED_PRECONDITION for a buffer that was deleted or donated.
PJRT_Error *isGone(const PJRT_Buffer &buffer);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_BUFFER_H
