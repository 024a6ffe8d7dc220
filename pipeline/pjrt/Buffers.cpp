// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Buffer.h"

#include "pipeline/pjrt/Handlers.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

using namespace mgpu;
using namespace mgpu::pipeline::pjrt;

namespace mgpu::pipeline::pjrt {

const std::shared_ptr<device::GpuContext> &gpuOf(const PJRT_Memory &memory) {
  static const std::shared_ptr<device::GpuContext> none;
  return memory.kind == deviceMemory ? memory.device->gpu : none;
}

PJRT_Error *Storage::make(const Shape &shape, PJRT_Memory &memory,
                          std::shared_ptr<Storage> &out) {
  constexpr size_t line = 64; // as vectors and DLPack want it
  const size_t bytes = shape.bytes();
  const auto &gpu = gpuOf(memory);
  void *data = nullptr;
  std::string why;
  if (!gpu)
    data = std::aligned_alloc(line, (bytes / line + 1) * line);
  else if (auto made = gpu->allocate(bytes))
    data = *made;
  else
    why = ": " + made.error().message;
  if (!data)
    return refuse(
        PJRT_Error_Code_RESOURCE_EXHAUSTED,
        fmt::format("there is no memory for {}{}", shape.text(), why));
  memory.device->use->take(int64_t(bytes));
  // A caller may destroy the client first.
  out = std::make_shared<Storage>(data, gpu,
                                  [data, bytes, gpu, use = memory.device->use] {
                                    use->bytes -= int64_t(bytes);
                                    if (gpu)
                                      gpu->release(data);
                                    else
                                      std::free(data);
                                  });
  out->own = true;
  return nullptr;
}

Result<void> Storage::write(size_t offset, const void *from, size_t bytes) {
  if (gpu)
    return gpu->copy(at(offset), from, bytes);
  if (bytes > 0)
    std::memcpy(at(offset), from, bytes);
  return {};
}

Result<void> Storage::read(size_t offset, void *to, size_t bytes) const {
  if (gpu)
    return gpu->copy(to, at(offset), bytes);
  if (bytes > 0)
    std::memcpy(to, at(offset), bytes);
  return {};
}

Result<void> Storage::take(const Storage &from, size_t bytes) {
  return gpu ? write(0, from.data, bytes) : from.read(0, data, bytes);
}

Storage::~Storage() {
  if (release)
    release();
}

PJRT_Error *makeBuffer(Shape shape, PJRT_Memory *memory, PJRT_Buffer **out) {
  std::shared_ptr<Storage> storage;
  MGPU_PJRT_PASS(Storage::make(shape, *memory, storage));
  *out = new PJRT_Buffer(std::move(shape), memory, std::move(storage));
  return nullptr;
}

PJRT_Error *isGone(const PJRT_Buffer &buffer) {
  return refuse(
      PJRT_Error_Code_FAILED_PRECONDITION,
      fmt::format("the buffer {} was deleted or donated", buffer.shape.text()));
}

} // namespace mgpu::pipeline::pjrt

std::shared_ptr<Storage> PJRT_Buffer::storage() const {
  std::lock_guard lock(mutex);
  return own;
}

void PJRT_Buffer::drop() {
  std::lock_guard lock(mutex);
  own.reset();
}

void PJRT_Buffer::pin() {
  std::lock_guard lock(mutex);
  if (pins++ == 0)
    pinned = own;
}

void PJRT_Buffer::unpin() {
  std::unique_lock lock(mutex);
  if (pins == 0 || --pins > 0)
    return;
  pinned.reset();
  if (!isDestroyed)
    return;
  lock.unlock();
  delete this;
}

void PJRT_Buffer::destroy() {
  {
    std::lock_guard lock(mutex);
    isDestroyed = true;
    if (pins > 0)
      return;
  }
  delete this;
}

namespace mgpu::pipeline::pjrt {

//===----------------------------------------------------------------------===//
// Making buffers
//===----------------------------------------------------------------------===//

PJRT_Error *
Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args &args) {
  MGPU_PJRT_NEEDS(client);
  PJRT_Memory *memory = placeOf(args.memory, args.device);
  if (!memory)
    return isNull("device");
  auto shape = Shape::of(args.type, args.dims, args.num_dims);
  MGPU_PJRT_TRY(shape);
  if (shape->bytes() > 0)
    MGPU_PJRT_NEEDS(data);
  auto layout = stridesOf(args.device_layout, *shape);
  MGPU_PJRT_TRY(layout);
  if (*layout != rowMajor(*shape))
    return unsupported("buffers are row-major; leave device_layout out");
  std::vector<int64_t> strides = *layout;
  if (args.num_byte_strides > 0) {
    if (args.num_byte_strides != args.num_dims || !args.byte_strides)
      return invalid(fmt::format("{} strides for {}", args.num_byte_strides,
                                 shape->text()));
    strides.assign(args.byte_strides, args.byte_strides + args.num_dims);
  }
  PJRT_Buffer *made = nullptr;
  MGPU_PJRT_PASS(makeBuffer(*shape, memory, &made));
  std::unique_ptr<PJRT_Buffer> buffer(made);
  const auto *from = static_cast<const std::byte *>(args.data);
  const std::shared_ptr<Storage> to = made->storage();
  if (!to->isOnGpu()) {
    copyStrided(static_cast<std::byte *>(to->address()), *layout, from, strides,
                *shape);
  } else if (strides == *layout) {
    MGPU_PJRT_TRY(to->write(0, from, shape->bytes()));
  } else {
    std::vector<std::byte> packed(shape->bytes());
    copyStrided(packed.data(), *layout, from, strides, *shape);
    MGPU_PJRT_TRY(to->write(0, packed.data(), packed.size()));
  }
  args.buffer = buffer.release();
  args.done_with_host_buffer = new PJRT_Event{alreadyDone()};
  return nullptr;
}

PJRT_Error *Client_CreateViewOfDeviceBuffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args &args) {
  MGPU_PJRT_NEEDS(client);
  PJRT_Memory *memory = placeOf(args.memory, args.device);
  if (!memory)
    return isNull("device");
  auto shape = Shape::of(args.element_type, args.dims, args.num_dims);
  MGPU_PJRT_TRY(shape);
  if (shape->bytes() > 0)
    MGPU_PJRT_NEEDS(device_buffer_ptr);
  auto layout = stridesOf(args.layout, *shape);
  MGPU_PJRT_TRY(layout);
  if (*layout != rowMajor(*shape))
    return unsupported("buffers are row-major, and so are views");
  if (reinterpret_cast<uintptr_t>(args.device_buffer_ptr) %
          bytesOf(shape->type) !=
      0)
    return invalid("unaligned data: a view begins at a multiple of the bytes "
                   "of an element");
  std::function<void()> release;
  if (args.on_delete_callback)
    release = [call = args.on_delete_callback, data = args.device_buffer_ptr,
               user = args.on_delete_callback_arg] { call(data, user); };
  args.buffer = new PJRT_Buffer(
      std::move(*shape), memory,
      std::make_shared<Storage>(args.device_buffer_ptr, gpuOf(*memory),
                                std::move(release)));
  return nullptr;
}

PJRT_Error *Client_CreateUninitializedBuffer(
    PJRT_Client_CreateUninitializedBuffer_Args &args) {
  MGPU_PJRT_NEEDS(client);
  PJRT_Memory *memory = placeOf(args.memory, args.device);
  if (!memory)
    return isNull("memory");
  auto shape =
      Shape::of(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  MGPU_PJRT_TRY(shape);
  return makeBuffer(std::move(*shape), memory, &args.buffer);
}

PJRT_Error *Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(memory);
  auto shape =
      Shape::of(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  MGPU_PJRT_TRY(shape);
  MGPU_PJRT_PASS(makeBuffer(std::move(*shape), args.memory, &args.buffer));
  args.buffer->ready = std::make_shared<Completion>();
  args.buffer->ready->finish(
      args.error_code,
      std::string(args.error_message ? args.error_message : "",
                  args.error_message ? args.error_message_size : 0));
  return nullptr;
}

/// An alias waits for it. A caller has it from one call to the other.
struct Promise {
  Done ready;
  std::shared_ptr<Storage> storage;
  Shape shape;

  /// Ends the wait; an error is the alias's and the caller's.
  PJRT_Error *finish(PJRT_Error_Code code, std::string message) {
    ready->finish(code, std::move(message));
    return ready->error();
  }
};

PJRT_Error *Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args &args) {
  MGPU_PJRT_NEEDS(client);
  MGPU_PJRT_NEEDS(memory);
  auto shape =
      Shape::of(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  MGPU_PJRT_TRY(shape);
  MGPU_PJRT_PASS(makeBuffer(*shape, args.memory, &args.alias_buffer));
  args.alias_buffer->ready = std::make_shared<Completion>();
  args.fulfill_alias_buffer_cb =
      reinterpret_cast<PJRT_FulfillAliasBufferCallback *>(new Promise{
          args.alias_buffer->ready, args.alias_buffer->storage(), *shape});
  return nullptr;
}

PJRT_Error *
Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args &args) {
  MGPU_PJRT_NEEDS(fulfill_alias_buffer_cb);
  const std::unique_ptr<Promise> promise(
      reinterpret_cast<Promise *>(args.fulfill_alias_buffer_cb));
  if (args.status_code != PJRT_Error_Code_OK)
    return promise->finish(
        args.status_code,
        std::string(args.error_message ? args.error_message : "",
                    args.error_message ? args.error_message_size : 0));
  if (PJRT_Buffer *from = args.buffer) {
    if (from->shape != promise->shape)
      return promise->finish(PJRT_Error_Code_INVALID_ARGUMENT,
                             fmt::format("the alias is {}, and its buffer {}",
                                         promise->shape.text(),
                                         from->shape.text()));
    from->ready->wait();
    auto storage = from->storage();
    if (!storage)
      return promise->finish(PJRT_Error_Code_INVALID_ARGUMENT,
                             "the buffer of an alias was deleted");
    if (PJRT_Error *error = from->ready->error()) {
      promise->ready->finish(PJRT_Error_Code_FAILED_PRECONDITION,
                             "the buffer of an alias has failed");
      return error;
    }
    if (auto copied = promise->storage->take(*storage, promise->shape.bytes());
        !copied)
      return promise->finish(PJRT_Error_Code_INTERNAL, copied.error().message);
  }
  promise->ready->finish();
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

PJRT_Error *Buffer_Destroy(PJRT_Buffer_Destroy_Args &args) {
  if (args.buffer)
    args.buffer->destroy();
  return nullptr;
}

MGPU_PJRT_GET(Buffer_ElementType, buffer, type, args.buffer->shape.type)
MGPU_PJRT_LIST(Buffer_Dimensions, buffer, dims, num_dims,
               args.buffer->shape.dims)
MGPU_PJRT_LIST(Buffer_UnpaddedDimensions, buffer, unpadded_dims, num_dims,
               args.buffer->shape.dims)

PJRT_Error *
Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
  return nullptr;
}

/// The dimensions of a row-major tensor, the innermost first.
static const int64_t *minorToMajor(size_t rank) {
  static constexpr size_t most = 64; // as Shape::of()
  static const std::vector<int64_t> falling = [] {
    std::vector<int64_t> dims(most);
    for (size_t k = 0; k < most; ++k)
      dims[k] = int64_t(most - 1 - k);
    return dims;
  }();
  return falling.data() + (most - rank);
}

PJRT_Error *Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  const size_t rank = args.buffer->shape.dims.size();
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = minorToMajor(rank);
  args.layout.tiled.minor_to_major_size = rank;
  return nullptr;
}

MGPU_PJRT_GET(Buffer_OnDeviceSizeInBytes, buffer, on_device_size_in_bytes,
              args.buffer->shape.bytes())
MGPU_PJRT_GET(Buffer_Device, buffer, device, args.buffer->memory->device)
MGPU_PJRT_GET(Buffer_Memory, buffer, memory, args.buffer->memory)
MGPU_PJRT_GET(Buffer_IsOnCpu, buffer, is_on_cpu, !gpuOf(*args.buffer->memory))

PJRT_Error *Buffer_Delete(PJRT_Buffer_Delete_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  args.buffer->drop();
  return nullptr;
}

MGPU_PJRT_GET(Buffer_IsDeleted, buffer, is_deleted, !args.buffer->storage())

PJRT_Error *Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  args.event = new PJRT_Event{args.buffer->ready};
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Their memory
//===----------------------------------------------------------------------===//

PJRT_Error *Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  auto storage = args.buffer->storage();
  if (!storage)
    return isGone(*args.buffer);
  args.buffer_pointer = reinterpret_cast<uintptr_t>(storage->address());
  return nullptr;
}

PJRT_Error *Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  auto storage = args.buffer->storage();
  if (!storage)
    return isGone(*args.buffer);
  args.device_memory_ptr = storage->address();
  return nullptr;
}

PJRT_Error *Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  args.buffer->pin();
  return nullptr;
}

PJRT_Error *Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  args.buffer->unpin();
  return nullptr;
}

PJRT_Error *Buffer_Bitcast(PJRT_Buffer_Bitcast_Args &args) {
  MGPU_PJRT_NEEDS(buffer);
  auto shape = Shape::of(args.element_type, args.dims, args.num_dims);
  MGPU_PJRT_TRY(shape);
  if (shape->bytes() != args.buffer->shape.bytes())
    return invalid(fmt::format("{} has other bytes than {}", shape->text(),
                               args.buffer->shape.text()));
  auto layout = stridesOf(args.device_layout, *shape);
  MGPU_PJRT_TRY(layout);
  if (*layout != rowMajor(*shape))
    return unsupported("buffers are row-major; leave device_layout out");
  auto storage = args.buffer->storage();
  if (!storage)
    return isGone(*args.buffer);
  args.out_buffer = new PJRT_Buffer(std::move(*shape), args.buffer->memory,
                                    std::move(storage));
  args.out_buffer->ready = args.buffer->ready;
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
