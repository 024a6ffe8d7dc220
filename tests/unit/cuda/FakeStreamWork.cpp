// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on streams without a graph. It is done when it is put there, which every
// order of a stream allows.
#include "FakeNodes.h"

#include <cstring>

namespace mgpu::fake {

namespace {

CUresult launchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, CUstream on,
                      void **parameters, void **extra) {
  MGPU_FAKE_ENTER("cuLaunchKernel");
  Stream *stream = fake.streamOf(on);
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  if (!stream)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  Node node;
  std::memset(&node.params, 0, sizeof node.params);
  node.params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  CUDA_KERNEL_NODE_PARAMS_v3 &params = node.params.kernel;
  // Functions are kernels here (cuKernelGetFunction).
  params.kern = reinterpret_cast<CUkernel>(function);
  params.gridDimX = gridX;
  params.gridDimY = gridY;
  params.gridDimZ = gridZ;
  params.blockDimX = blockX;
  params.blockDimY = blockY;
  params.blockDimZ = blockZ;
  params.sharedMemBytes = sharedBytes;
  params.kernelParams = parameters;
  params.extra = extra;
  if (CUresult code = checkKernel(fake, params, node))
    return fake.refuse(code);
  if (CUresult refusal = fake.refusalOf(on); refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  if (stream->capture) {
    captureNode(*stream, std::make_unique<Node>(std::move(node)));
    return CUDA_SUCCESS;
  }
  std::vector<Exec::Step> steps;
  steps.push_back({std::move(node), {}, nullptr});
  return fake.launch(steps, *stream);
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
  MGPU_FAKE_ENTER("cuMemcpyDtoDAsync");
  Stream *stream = fake.streams.find(on);
  if (!stream)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (CUresult refusal = fake.refusalOf(on, "a copy"); refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  if (!fake.isDeviceRange(to, bytes) || !fake.isDeviceRange(from, bytes))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
               bytes);
  fake.clockMs += 0.125;
  stream->busyQueries = fake.busyQueries;
  return CUDA_SUCCESS;
}

} // namespace

StreamWork streamWork() { return {launchKernel, copy}; }

} // namespace mgpu::fake
