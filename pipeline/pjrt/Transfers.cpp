// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies out of buffers and between them, and into them piece by piece. A copy
// of contents that are not there yet is made when they are.
#include "pipeline/pjrt/Buffer.h"
#include "pipeline/pjrt/Handlers.h"

#include <cstring>
#include <deque>
#include <fmt/format.h>

using namespace mgpu;
using namespace mgpu::pipeline::pjrt;

struct PJRT_AsyncHostToDeviceTransferManager {
  struct Target {
    Shape shape;
    std::shared_ptr<Storage> storage;
    Done ready = std::make_shared<Completion>();
  };
  PJRT_Memory *memory = nullptr;
  std::deque<Target> targets;

  ~PJRT_AsyncHostToDeviceTransferManager() {
    for (Target &each : targets)
      each.ready->finish(PJRT_Error_Code_INTERNAL,
                         "the transfer was destroyed before it had ended");
  }
};

namespace mgpu::pipeline::pjrt {

using Copy = std::function<Result<void>(const Storage &)>;

static void finish(Completion &done, const Result<void> &copied) {
  if (copied)
    done.finish();
  else
    done.finish(PJRT_Error_Code_INTERNAL, copied.error().message);
}

/// Calls `copy` with the buffer's memory once its contents are there; returns
/// when that is done.
static Done whenReady(const PJRT_Buffer &buffer,
                      std::shared_ptr<Storage> storage, Copy copy) {
  auto done = std::make_shared<Completion>();
  if (buffer.ready == alreadyDone()) {
    const Result<void> copied = copy(*storage);
    if (copied)
      return alreadyDone();
    finish(*done, copied);
    return done;
  }
  buffer.ready->whenDone([done, storage = std::move(storage),
                          copy = std::move(copy)](PJRT_Error_Code code,
                                                  const std::string &message) {
    if (code == PJRT_Error_Code_OK)
      finish(*done, copy(*storage));
    else
      done->finish(code, message);
  });
  return done;
}

PJRT_Error *Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args &args) {
  if (!args.src)
    return isNull("src");
  const Shape &shape = args.src->shape;
  auto strides = stridesOf(args.host_layout, shape);
  MGPU_PJRT_TRY(strides);
  if (!args.dst) { // it asks for the size
    args.dst_size = shape.bytes();
    return nullptr;
  }
  if (args.dst_size < shape.bytes())
    return invalid(fmt::format("{} takes {} bytes, and there is room for {}",
                               shape.text(), shape.bytes(), args.dst_size));
  auto storage = args.src->storage();
  if (!storage)
    return isGone(*args.src);
  args.event = new PJRT_Event{whenReady(
      *args.src, std::move(storage),
      [to = static_cast<std::byte *>(args.dst), strides = std::move(*strides),
       shape](const Storage &from) -> Result<void> {
        if (from.isOnGpu() && strides == rowMajor(shape))
          return from.read(0, to, shape.bytes());
        std::vector<std::byte> packed;
        const auto *bytes = static_cast<const std::byte *>(from.address());
        if (from.isOnGpu()) {
          packed.resize(shape.bytes());
          MGPU_TRY(from.read(0, packed.data(), packed.size()));
          bytes = packed.data();
        }
        copyStrided(to, strides, bytes, rowMajor(shape), shape);
        return {};
      })};
  return nullptr;
}

PJRT_Error *Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  const int64_t bytes = int64_t(args.buffer->shape.bytes());
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > bytes ||
      args.transfer_size > bytes - args.offset)
    return refuse(PJRT_Error_Code_OUT_OF_RANGE,
                  fmt::format("bytes {} to {} of a buffer of {}", args.offset,
                              args.offset, bytes));
  if (args.transfer_size > 0)
    MGPU_PJRT_NEEDS(dst);
  auto storage = args.buffer->storage();
  if (!storage)
    return isGone(*args.buffer);
  args.event = new PJRT_Event{
      whenReady(*args.buffer, std::move(storage),
                [to = args.dst, offset = args.offset,
                 size = size_t(args.transfer_size)](const Storage &from) {
                  return from.read(size_t(offset), to, size);
                })};
  return nullptr;
}

/// A buffer of the same contents elsewhere.
static PJRT_Error *copyTo(PJRT_Buffer &buffer, PJRT_Memory *memory,
                          PJRT_Buffer **out) {
  auto storage = buffer.storage();
  if (!storage)
    return isGone(buffer);
  MGPU_PJRT_PASS(makeBuffer(buffer.shape, memory, out));
  (*out)->ready =
      whenReady(buffer, std::move(storage),
                [to = (*out)->storage(), bytes = buffer.shape.bytes()](
                    const Storage &from) { return to->take(from, bytes); });
  return nullptr;
}

PJRT_Error *Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  MGPU_PJRT_NEEDS(dst_device);
  return copyTo(*args.buffer, placeOf(nullptr, args.dst_device),
                &args.dst_buffer);
}

PJRT_Error *Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  MGPU_PJRT_NEEDS(dst_memory);
  return copyTo(*args.buffer, args.dst_memory, &args.dst_buffer);
}

//===----------------------------------------------------------------------===//
// Piece by piece
//===----------------------------------------------------------------------===//

using Manager = PJRT_AsyncHostToDeviceTransferManager;

PJRT_Error *Client_CreateBuffersForAsyncHostToDevice(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(memory);
  if (args.num_shape_specs > 0)
    MGPU_PJRT_NEEDS(shape_specs);
  auto made = std::make_unique<Manager>();
  made->memory = args.memory;
  for (size_t k = 0; k < args.num_shape_specs; ++k) {
    const PJRT_ShapeSpec &spec = args.shape_specs[k];
    auto shape = Shape::of(spec.element_type, spec.dims, spec.num_dims);
    MGPU_PJRT_TRY(shape);
    if (args.device_layouts && k < args.num_device_layouts) {
      auto layout = stridesOf(args.device_layouts[k], *shape);
      MGPU_PJRT_TRY(layout);
      if (*layout != rowMajor(*shape))
        return unsupported("buffers are row-major; leave device_layouts out");
    }
    std::shared_ptr<Storage> storage;
    MGPU_PJRT_PASS(Storage::make(*shape, *args.memory, storage));
    made->targets.push_back({std::move(*shape), std::move(storage)});
  }
  args.transfer_manager = made.release();
  return nullptr;
}

PJRT_Error *AsyncHostToDeviceTransferManager_Destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args &args) {
  delete args.transfer_manager;
  return nullptr;
}

static PJRT_Error *targetOf(Manager &manager, int index,
                            Manager::Target *&target) {
  if (index < 0 || size_t(index) >= manager.targets.size())
    return invalid(fmt::format("the transfer has no buffer {}: it has {}",
                               index, manager.targets.size()));
  target = &manager.targets[size_t(index)];
  return nullptr;
}

PJRT_Error *AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args &args) {
  MGPU_PJRT_NEEDS(transfer_manager);
  Manager::Target *target = nullptr;
  MGPU_PJRT_PASS(targetOf(*args.transfer_manager, args.buffer_index, target));
  const int64_t bytes = int64_t(target->shape.bytes());
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > bytes ||
      args.transfer_size > bytes - args.offset)
    return refuse(PJRT_Error_Code_OUT_OF_RANGE,
                  fmt::format("{} bytes at {} of a buffer of {}",
                              args.transfer_size, args.offset, bytes));
  if (target->ready->isDone())
    return refuse(PJRT_Error_Code_FAILED_PRECONDITION,
                  "the buffer's last transfer was made already");
  if (args.transfer_size > 0) {
    MGPU_PJRT_NEEDS(data);
    MGPU_PJRT_TRY(target->storage->write(size_t(args.offset), args.data,
                                         size_t(args.transfer_size)));
  }
  if (args.is_last_transfer)
    target->ready->finish();
  args.done_with_h2d_transfer = new PJRT_Event{alreadyDone()};
  return nullptr;
}

PJRT_Error *AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args &args) {
  MGPU_PJRT_NEEDS(transfer_manager);
  Manager::Target *target = nullptr;
  MGPU_PJRT_PASS(targetOf(*args.transfer_manager, args.buffer_index, target));
  args.buffer_out = new PJRT_Buffer(
      target->shape, args.transfer_manager->memory, target->storage);
  args.buffer_out->ready = target->ready;
  return nullptr;
}

MGPU_PJRT_GET(AsyncHostToDeviceTransferManager_Device, transfer_manager,
              device_out, args.transfer_manager->memory->device)
MGPU_PJRT_GET(AsyncHostToDeviceTransferManager_BufferCount, transfer_manager,
              buffer_count, args.transfer_manager->targets.size())

PJRT_Error *AsyncHostToDeviceTransferManager_BufferSize(
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args &args) {
  MGPU_PJRT_NEEDS(transfer_manager);
  Manager::Target *target = nullptr;
  MGPU_PJRT_PASS(targetOf(*args.transfer_manager, args.buffer_index, target));
  args.buffer_size = target->shape.bytes();
  return nullptr;
}

PJRT_Error *AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args &args) {
  MGPU_PJRT_NEEDS(transfer_manager);
  Manager::Target *target = nullptr;
  MGPU_PJRT_PASS(targetOf(*args.transfer_manager, args.buffer_index, target));
  target->ready->finish(
      args.error_code,
      std::string(args.error_message ? args.error_message : "",
                  args.error_message ? args.error_message_size : 0));
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
