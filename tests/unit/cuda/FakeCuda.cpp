// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, contexts, streams and events.
#include "FakeNodes.h"

#include "FakeLock.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mgpu::fake {

// Never destroyed: what it found is read when the process ends.
static FakeCuda *theInstance;

std::recursive_mutex &fakeMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

thread_local CUstreamCaptureMode FakeCuda::captureMode =
    CU_STREAM_CAPTURE_MODE_GLOBAL;

FakeCuda &FakeCuda::reset(uint64_t seed) {
  delete theInstance;
  captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  theInstance = new FakeCuda;
  theInstance->random.seed(seed);
  return *theInstance;
}

FakeCuda &FakeCuda::instance() {
  if (!theInstance)
    reset();
  return *theInstance;
}

FakeCuda::~FakeCuda() {
  for (auto [address, memory] : deviceMemory)
    std::free(reinterpret_cast<void *>(address));
  for (auto [address, memory] : hostMemory)
    std::free(reinterpret_cast<void *>(address));
}

CUresult FakeCuda::refuse(CUresult code) {
  // 25306: registered callbacks receive error messages.
  if (!logMessage.empty())
    for (auto [data, callback] : logs) {
      std::string text = logMessage;
      callback(data, CU_LOG_LEVEL_ERROR, text.data(), text.size());
    }
  return code;
}

CUresult FakeCuda::enter(const char *name) {
  if (remembersCalls)
    called.push_back(name);
  if (++calls == failAt) {
    failedCall = name;
    return refuse(failCode);
  }
  // A driver on a GPU gives a process that was forked from one that had called
  // cuInit() NOT_INITIALIZED, for cuInit() too.
  if (initialized && initializedBy != getpid())
    return refuse(CUDA_ERROR_NOT_INITIALIZED);
  // 5190: without cuInit() any function returns NOT_INITIALIZED.
  if (!initialized && std::strcmp(name, "cuInit") != 0 &&
      std::strcmp(name, "cuDriverGetVersion") != 0)
    return refuse(CUDA_ERROR_NOT_INITIALIZED);
  return CUDA_SUCCESS;
}

Stream *FakeCuda::streamOf(CUstream stream) {
  if (stream)
    return streams.find(stream);
  Context *context = current();
  if (!context)
    return nullptr;
  auto [at, isNew] = defaultStreams.try_emplace(context, Stream{context});
  at->second.isCallers = true;
  return &at->second;
}

Context *FakeCuda::current() const {
  auto at = stacks.find(std::this_thread::get_id());
  return at == stacks.end() || at->second.empty() ? nullptr : at->second.back();
}

template <typename Key>
static bool isWithin(const std::map<Key, Memory> &all, Key address,
                     uint64_t bytes, const Context *of) {
  auto next = all.upper_bound(address);
  if (next == all.begin())
    return false;
  const auto &[start, memory] = *std::prev(next);
  return address - start <= memory.bytes &&
         bytes <= memory.bytes - (address - start) &&
         (!of || !memory.of || memory.of == of);
}

bool FakeCuda::isDeviceRange(uint64_t address, uint64_t bytes,
                             const Context *of) const {
  return isWithin(deviceMemory, address, bytes, of);
}

bool FakeCuda::isHostRange(const void *pointer, uint64_t bytes,
                           const Context *of) const {
  return isWithin(hostMemory, uintptr_t(pointer), bytes, of) ||
         isWithin(registered, uintptr_t(pointer), bytes, of);
}

size_t FakeCuda::bytesTaken(const Context *of) const {
  size_t taken = 0;
  for (const auto &[address, memory] : deviceMemory)
    taken += memory.of == of ? memory.bytes : 0;
  return taken;
}

void FakeCuda::print(std::string_view text) {
  constexpr size_t most = 1 << 20; // CU_LIMIT_PRINTF_FIFO_SIZE: the oldest goes
  printed += text;
  if (printed.size() > most)
    printed.erase(0, printed.size() - most);
}

void FakeCuda::showPrinted() {
  std::fwrite(printed.data(), 1, printed.size(), stdout);
  std::fflush(stdout);
  printed.clear();
}

std::vector<std::string> FakeCuda::leaks() const {
  std::vector<std::string> out;
  auto add = [&](const char *what, size_t count) {
    if (count > 0)
      out.push_back(std::to_string(count) + " " + what);
  };
  add("device allocations", deviceMemory.size());
  add("host allocations", hostMemory.size());
  add("registrations of host memory", registered.size());
  add("streams", streams.size());
  add("events", events.size());
  add("libraries", libraries.size());
  add("graphs", graphs.size());
  add("executables", execs.size());
  add("log callbacks", logs.size());
  size_t retained = 0;
  for (const auto &[gpu, entry] : primary)
    retained += size_t(entry.second);
  add("retained primary contexts", retained);
  size_t current = 0;
  for (const auto &[thread, stack] : stacks)
    current += stack.size();
  add("contexts left current", current);
  return out;
}

namespace {

CUresult init(unsigned flags) {
  MGPU_FAKE_ENTER("cuInit");
  if (flags != 0) // 5189: flags must be 0
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (fake.gpus == 0)
    return fake.refuse(CUDA_ERROR_NO_DEVICE);
  fake.initialized = true;
  fake.initializedBy = getpid();
  return CUDA_SUCCESS;
}

CUresult driverVersion(int *version) {
  MGPU_FAKE_ENTER("cuDriverGetVersion");
  *version = fake.cudaVersion;
  return CUDA_SUCCESS;
}

CUresult errorName(CUresult error, const char **name) {
  // Not a call that can fail but for a code that is none.
  *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}

CUresult errorString(CUresult, const char **text) {
  *text = "words of the driver";
  return CUDA_SUCCESS;
}

CUresult deviceCount(int *count) {
  MGPU_FAKE_ENTER("cuDeviceGetCount");
  *count = fake.gpus;
  return CUDA_SUCCESS;
}

CUresult deviceGet(CUdevice *device, int ordinal) {
  MGPU_FAKE_ENTER("cuDeviceGet");
  if (ordinal < 0 || ordinal >= fake.gpus)
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  *device = 100 + ordinal; // a handle, not the ordinal
  return CUDA_SUCCESS;
}

CUresult deviceName(char *name, int length, CUdevice device) {
  MGPU_FAKE_ENTER("cuDeviceGetName");
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  std::strncpy(name, fake.gpuName.c_str(), size_t(length));
  return CUDA_SUCCESS;
}

CUresult deviceUuid(CUuuid *uuid, CUdevice device) {
  MGPU_FAKE_ENTER("cuDeviceGetUuid");
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  for (size_t k = 0; k < sizeof uuid->bytes; ++k)
    uuid->bytes[k] = char(k);
  return CUDA_SUCCESS;
}

CUresult deviceAttribute(int *value, CUdevice_attribute attribute,
                         CUdevice device) {
  MGPU_FAKE_ENTER("cuDeviceGetAttribute");
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = fake.major;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = fake.minor;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = fake.multiprocessors;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    *value = 1;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    *value = fake.clockKhz;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    *value = fake.memoryClockKhz;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = fake.busBits;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
    *value = CU_COMPUTEMODE_DEFAULT;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 227 * 1024;
    return CUDA_SUCCESS;
  default:
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

CUresult deviceTotalMem(size_t *bytes, CUdevice device) {
  MGPU_FAKE_ENTER("cuDeviceTotalMem");
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  *bytes = fake.gpuBytes;
  return CUDA_SUCCESS;
}

CUresult canAccessPeer(int *can, CUdevice a, CUdevice b) {
  MGPU_FAKE_ENTER("cuDeviceCanAccessPeer");
  if (!isDevice(fake, a) || !isDevice(fake, b))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  *can = a != b && !fake.areApart;
  return CUDA_SUCCESS;
}

CUresult retain(CUcontext *context, CUdevice device) {
  MGPU_FAKE_ENTER("cuDevicePrimaryCtxRetain");
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  auto &entry = fake.primary[device - 100];
  if (entry.second++ == 0)
    entry.first = fake.contexts.add({device - 100});
  *context = reinterpret_cast<CUcontext>(entry.first);
  return CUDA_SUCCESS;
}

CUresult release(CUdevice device) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuDevicePrimaryCtxRelease");
  auto &entry = fake.primary[device - 100];
  // 5908: a release without a retain is INVALID_CONTEXT.
  if (entry.second == 0)
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  if (--entry.second == 0) {
    fake.showPrinted();
    fake.contexts.remove(entry.first);
    // Where the context could not be made current, its end frees the rest.
    auto isHere = [&](const auto &each) { return each.context == entry.first; };
    if ((fake.bytesTaken(entry.first) > 0 || fake.streams.any(isHere) ||
         fake.events.any(isHere)) &&
        fake.failedCall != "cuCtxPushCurrent")
      fake.violations.push_back("the context went before what lives in it");
  }
  return entered;
}

CUresult getCurrent(CUcontext *context) {
  MGPU_FAKE_ENTER("cuCtxGetCurrent");
  *context = reinterpret_cast<CUcontext>(fake.current());
  return CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  MGPU_FAKE_ENTER("cuCtxPushCurrent");
  auto *object = fake.contexts.find(context);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  fake.stacks[std::this_thread::get_id()].push_back(object);
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext *context) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuCtxPopCurrent");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  *context = reinterpret_cast<CUcontext>(fake.current());
  fake.stacks[std::this_thread::get_id()].pop_back();
  return entered;
}

CUresult priorityRange(int *least, int *greatest) {
  MGPU_FAKE_ENTER("cuCtxGetStreamPriorityRange");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  *least = 0; // 6936: lower numbers are greater priorities
  *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult streamCreate(CUstream *stream, unsigned flags, int priority) {
  MGPU_FAKE_ENTER("cuStreamCreateWithPriority");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  if (flags & ~unsigned(CU_STREAM_NON_BLOCKING))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!(flags & CU_STREAM_NON_BLOCKING))
    fake.violations.push_back("a stream in step with the legacy one");
  Stream made{fake.current()};
  made.isBlocking = !(flags & CU_STREAM_NON_BLOCKING);
  made.priority = std::clamp(priority, -5, 0); // 14964: to what there is
  *stream = reinterpret_cast<CUstream>(fake.streams.add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult streamDestroy(CUstream stream) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuStreamDestroy");
  if (Stream *object = fake.streams.find(stream); object && object->capture)
    fake.violations.push_back("a stream destroyed while it is captured");
  if (!fake.streams.remove(stream))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  return entered;
}

CUresult streamQuery(CUstream stream) {
  MGPU_FAKE_ENTER("cuStreamQuery");
  Stream *object = fake.streams.find(stream);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (object->capture) { // 3071: not of a stream that is captured
    object->capture->isSpoiled = true;
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  bool isDone = fake.progress(*object);
  if (object->context->sticky != CUDA_SUCCESS)
    return fake.refuse(object->context->sticky);
  if (!isDone)
    return CUDA_ERROR_NOT_READY;
  if (object->busyQueries > 0) {
    if (!fake.neverEnds || !fake.isWrong(*object->context))
      --object->busyQueries;
    return CUDA_ERROR_NOT_READY; // 15742
  }
  return CUDA_SUCCESS;
}

CUresult streamSynchronize(CUstream stream) {
  MGPU_FAKE_ENTER("cuStreamSynchronize");
  Stream *object = fake.streams.find(stream);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (object->capture) { // 3071
    object->capture->isSpoiled = true;
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  const bool isDone = fake.progress(*object) && object->busyQueries == 0;
  if (object->context->sticky != CUDA_SUCCESS)
    return fake.refuse(object->context->sticky);
  if (!isDone) // a rule of ours: no deadline ends it
    fake.violations.push_back("cuStreamSynchronize of work that may not end");
  fake.unsynchronized = 0;
  fake.showPrinted();
  return CUDA_SUCCESS;
}

CUresult eventCreate(CUevent *event, unsigned flags) {
  MGPU_FAKE_ENTER("cuEventCreate");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  *event = reinterpret_cast<CUevent>(fake.events.add({fake.current(), flags}));
  return CUDA_SUCCESS;
}

CUresult eventDestroy(CUevent event) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuEventDestroy");
  if (!fake.events.remove(event))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  return entered;
}

CUresult eventRecord(CUevent event, CUstream stream) {
  MGPU_FAKE_ENTER("cuEventRecord");
  Event *object = fake.events.find(event);
  Stream *on = fake.streamOf(stream);
  // 15952: event and stream must be of one context.
  if (!object || !on || object->context != on->context)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (CUresult refusal = fake.refusalOf(stream); refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  object->capture = on->capture;
  object->capturing = on->capturing;
  object->frontier = on->frontier;
  if (on->capture) {
    object->recorded = false;
    return CUDA_SUCCESS;
  }
  fake.clockMs += 0.25;
  if (!on->runs.empty()) { // 15951: after what the stream has
    object->recorded = false;
    auto behind = std::make_shared<Run>();
    behind->context = on->context;
    behind->behind = [&fake, object] {
      object->recorded = true;
      object->ms = fake.clockMs;
    };
    on->runs.push_back(std::move(behind));
    return CUDA_SUCCESS;
  }
  object->recorded = true;
  object->busyQueries = on->busyQueries;
  object->ms = fake.clockMs;
  return CUDA_SUCCESS;
}

CUresult streamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  MGPU_FAKE_ENTER("cuStreamWaitEvent");
  Event *object = fake.events.find(event);
  Stream *on = fake.streamOf(stream);
  if (!object || !on)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  // 15238: EXTERNAL, the one flag, is invalid outside of captures.
  if (flags)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (CUresult refusal = fake.refusalOf(stream); refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  if (on->capture || object->capture)
    return waitCaptured(fake, *on, *object);
  // 15231: all work captured in the event. Work is done when it is queued here,
  // and its stream says so after some queries.
  on->busyQueries = std::max(on->busyQueries, object->busyQueries);
  on->isOrdered = true;
  return CUDA_SUCCESS;
}

CUresult streamWriteValue(CUstream stream, CUdeviceptr address,
                          cuuint32_t value, unsigned flags) {
  MGPU_FAKE_ENTER("cuStreamWriteValue32");
  Stream *on = fake.streamOf(stream);
  if (!on)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  // Aligned, and memory that the GPU reaches: pinned, or its own.
  void *to = reinterpret_cast<void *>(address);
  if (flags || address % 4 != 0 ||
      (!fake.isHostRange(to, 4) && !fake.isDeviceRange(address, 4)))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (CUresult refusal = fake.refusalOf(stream, "a write");
      refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  auto write = [to, value] { std::memcpy(to, &value, sizeof value); };
  if (on->runs.empty()) {
    write();
    return CUDA_SUCCESS;
  }
  auto behind = std::make_shared<Run>();
  behind->context = on->context;
  behind->behind = write;
  on->runs.push_back(std::move(behind));
  return CUDA_SUCCESS;
}

CUresult elapsed(float *ms, CUevent start, CUevent end) {
  MGPU_FAKE_ENTER("cuEventElapsedTime");
  Event *a = fake.events.find(start), *b = fake.events.find(end);
  for (const Event *each : {a, b})
    if (each && each->capture) // 3113: last recorded in a capture
      return fake.refuse(CUDA_ERROR_CAPTURED_EVENT);
  // 16150-16156: never recorded, or without timing.
  if (!a || !b || !a->recorded || !b->recorded ||
      ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  *ms = float(b->ms - a->ms);
  return CUDA_SUCCESS;
}

CUresult logsRegister(CUlogsCallback callback, void *data,
                      CUlogsCallbackHandle *handle) {
  MGPU_FAKE_ENTER("cuLogsRegisterCallback");
  fake.logs[data] = callback;
  *handle = reinterpret_cast<CUlogsCallbackHandle>(data);
  return CUDA_SUCCESS;
}

CUresult logsUnregister(CUlogsCallbackHandle handle) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuLogsUnregisterCallback");
  if (!fake.logs.erase(handle))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  return entered;
}

} // namespace

std::shared_ptr<const device::CudaApi> FakeCuda::api() {
  auto api = std::make_shared<device::CudaApi>();
  api->cuInit = init;
  api->cuDriverGetVersion = driverVersion;
  api->cuGetErrorName = errorName;
  api->cuGetErrorString = errorString;
  api->cuDeviceGetCount = deviceCount;
  api->cuDeviceGet = deviceGet;
  api->cuDeviceGetName = deviceName;
  api->cuDeviceGetUuid = deviceUuid;
  api->cuDeviceGetAttribute = deviceAttribute;
  api->cuDeviceTotalMem = deviceTotalMem;
  api->cuDeviceCanAccessPeer = canAccessPeer;
  api->cuDevicePrimaryCtxRetain = retain;
  api->cuDevicePrimaryCtxRelease = release;
  api->cuCtxGetCurrent = getCurrent;
  api->cuCtxPushCurrent = push;
  api->cuCtxPopCurrent = pop;
  api->cuCtxGetStreamPriorityRange = priorityRange;
  api->cuStreamCreateWithPriority = streamCreate;
  api->cuStreamDestroy = streamDestroy;
  api->cuStreamQuery = streamQuery;
  api->cuStreamSynchronize = streamSynchronize;
  api->cuEventCreate = eventCreate;
  api->cuEventDestroy = eventDestroy;
  api->cuEventRecord = eventRecord;
  api->cuStreamWaitEvent = streamWaitEvent;
  api->cuStreamWriteValue32 = streamWriteValue;
  api->cuEventElapsedTime = elapsed;
  api->cuLogsRegisterCallback = logsRegister;
  api->cuLogsUnregisterCallback = logsUnregister;
  addMemoryEntries(*api);
  addLibraryEntries(*api);
  addTensorMapEntries(*api);
  addGraphEntries(*api);
  addExecEntries(*api);
  addCaptureEntries(*api);
  MGPU_CUDA_REQUIRED(MGPU_FAKE_LOCK_ENTRY)
  MGPU_CUDA_OPTIONAL(MGPU_FAKE_LOCK_ENTRY)
  return api;
}

} // namespace mgpu::fake
