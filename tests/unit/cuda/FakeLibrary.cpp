// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries and their kernels.
#include "FakeCuda.h"

#include <cstring>
#include <utility>

namespace mgpu::fake {

std::vector<std::byte> fakeCubin(const std::vector<std::string> &entries) {
  std::string text = "fake cubin:";
  for (const std::string &entry : entries)
    text += " " + entry;
  std::vector<std::byte> bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.c_str(), bytes.size());
  return bytes;
}

namespace {

CUresult libraryLoad(CUlibrary *library, const void *code, CUjit_option *,
                     void **, unsigned, CUlibraryOption *, void **, unsigned) {
  MGPU_FAKE_ENTER("cuLibraryLoadData");
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  auto *text = static_cast<const char *>(code);
  constexpr char head[] = "fake cubin:";
  Library made;
  if (std::strncmp(text, head, sizeof head - 1) == 0) {
    std::string rest = text + sizeof head - 1, word;
    for (char c : rest + " ")
      if (c != ' ')
        word += c;
      else if (!word.empty())
        made.entries.insert(std::exchange(word, {}));
  } else {
    if (fake.kernelsOf)
      made.own = fake.kernelsOf(code);
    for (const auto &[entry, kernel] : made.own)
      made.entries.insert(entry);
    for (std::string &entry :
         fake.entriesOf ? fake.entriesOf(code) : std::vector<std::string>())
      made.entries.insert(std::move(entry));
    if (made.entries.empty())
      return fake.refuse(CUDA_ERROR_INVALID_IMAGE);
  }
  *library = reinterpret_cast<CUlibrary>(fake.libraries.add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult libraryUnload(CUlibrary library) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuLibraryUnload");
  if (!fake.libraries.remove(library))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  fake.showPrinted();
  return entered;
}

CUresult libraryKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  MGPU_FAKE_ENTER("cuLibraryGetKernel");
  Library *object = fake.libraries.find(library);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  const FakeKernel *code = nullptr;
  for (const auto *each : {&fake.kernels, &object->own})
    if (auto at = each->find(name); at != each->end())
      code = &at->second;
  if (!object->entries.count(name) || !code)
    return fake.refuse(CUDA_ERROR_NOT_FOUND); // 8027
  auto &slot = object->kernels[name];
  if (!slot)
    slot = std::make_unique<Kernel>(Kernel{object, code, name});
  *kernel = reinterpret_cast<CUkernel>(slot.get());
  return CUDA_SUCCESS;
}

Kernel *liveKernel(const FakeCuda &fake, void *handle) {
  // Its library is not removed from memory, only from the live ones.
  auto *kernel = static_cast<Kernel *>(handle);
  return kernel && fake.libraries.find(kernel->library) ? kernel : nullptr;
}

CUresult kernelFunction(CUfunction *function, CUkernel kernel) {
  MGPU_FAKE_ENTER("cuKernelGetFunction");
  if (!fake.current()) // 8114: for the current context
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  if (!liveKernel(fake, kernel))
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult functionLoad(CUfunction function) {
  MGPU_FAKE_ENTER("cuFuncLoad");
  return liveKernel(fake, function) ? CUDA_SUCCESS
                                    : fake.refuse(CUDA_ERROR_INVALID_HANDLE);
}

CUresult kernelAttribute(int *value, CUfunction_attribute attribute,
                         CUkernel kernel, CUdevice device) {
  MGPU_FAKE_ENTER("cuKernelGetAttribute");
  Kernel *object = liveKernel(fake, kernel);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (!isDevice(fake, device))
    return fake.refuse(CUDA_ERROR_INVALID_DEVICE);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = object->code->maxThreads;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = object->code->sharedBytes;
    return CUDA_SUCCESS;
  default:
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

CUresult setKernelAttribute(CUfunction_attribute attribute, int value,
                            CUkernel kernel, CUdevice device) {
  MGPU_FAKE_ENTER("cuKernelSetAttribute");
  Kernel *object = liveKernel(fake, kernel);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  // 8354: together with the static bytes up to the GPU's opt-in limit.
  if (!isDevice(fake, device) ||
      attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      value + object->code->sharedBytes > 227 * 1024)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  object->dynamicSharedBytes = value;
  return CUDA_SUCCESS;
}

CUresult kernelParameter(CUkernel kernel, size_t index, size_t *offset,
                         size_t *size) {
  MGPU_FAKE_ENTER("cuKernelGetParamInfo");
  Kernel *object = liveKernel(fake, kernel);
  if (!object)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  // 8504: the index must be less than the number of parameters.
  if (index >= object->code->parameterSizes.size())
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  *offset = 0;
  for (size_t k = 0; k <= index; ++k) {
    *size = object->code->parameterSizes[k];
    if (k < index)
      *offset += *size;
  }
  return CUDA_SUCCESS;
}

} // namespace

void addLibraryEntries(device::CudaApi &api) {
  api.cuLibraryLoadData = libraryLoad;
  api.cuLibraryUnload = libraryUnload;
  api.cuLibraryGetKernel = libraryKernel;
  api.cuKernelGetFunction = kernelFunction;
  api.cuFuncLoad = functionLoad;
  api.cuKernelGetAttribute = kernelAttribute;
  api.cuKernelSetAttribute = setKernelAttribute;
  api.cuKernelGetParamInfo = kernelParameter;
}

} // namespace mgpu::fake
