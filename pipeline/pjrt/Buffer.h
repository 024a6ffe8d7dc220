// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_BUFFER_H
#define MGPU_PIPELINE_PJRT_BUFFER_H

#include "pipeline/pjrt/Client.h"
#include "pipeline/pjrt/Shape.h"

namespace mgpu::pipeline::pjrt {

/// Memory that buffers share; the caller's own where it has a `release`.
class Storage {
public:
  /// Null where there is no memory.
  static std::shared_ptr<Storage> make(size_t bytes, PJRT_Device &device);
  Storage(void *data, std::function<void()> release)
      : data(data), release(std::move(release)) {}
  ~Storage();
  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;

  std::byte *bytes() const { return static_cast<std::byte *>(data); }

private:
  void *data;
  std::function<void()> release;
};

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

/// Makes a buffer with memory of its own; RESOURCE_EXHAUSTED where there is
/// none.
PJRT_Error *makeBuffer(Shape shape, PJRT_Memory *memory, PJRT_Buffer **out);

/// FAILED_PRECONDITION for a buffer that was deleted or donated.
PJRT_Error *isGone(const PJRT_Buffer &buffer);

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_BUFFER_H
