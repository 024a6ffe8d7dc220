// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeNodes.h"

#include <algorithm>

namespace mgpu::fake {

/// Bytes of the member of CUgraphNodeParams that a type uses.
static size_t usedBytes(CUgraphNodeType type) {
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return sizeof(CUDA_KERNEL_NODE_PARAMS_v3);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return sizeof(CUDA_MEMCPY_NODE_PARAMS);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return sizeof(CUDA_MEMSET_NODE_PARAMS_v2);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return sizeof(CUDA_EVENT_RECORD_NODE_PARAMS);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS);
  default:
    return 0;
  }
}

bool isZero(const void *data, size_t size) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  return std::all_of(bytes, bytes + size, [](unsigned char b) { return !b; });
}

bool unusedIsZero(const CUgraphNodeParams &params) {
  const auto *bytes = reinterpret_cast<const std::byte *>(&params);
  size_t from = offsetof(CUgraphNodeParams, kernel) + usedBytes(params.type);
  return isZero(params.reserved0, sizeof params.reserved0) &&
         isZero(bytes + from, sizeof params - from);
}

CUresult checkKernel(FakeCuda &fake, const CUDA_KERNEL_NODE_PARAMS_v3 &params,
                     Node &node) {
  // 1807: kern is looked at only if func is null, ctx only then.
  auto *kernel = reinterpret_cast<Kernel *>(params.kern);
  if (params.func || !kernel || !fake.libraries.find(kernel->library))
    return CUDA_ERROR_INVALID_HANDLE;
  if (params.ctx ? !fake.contexts.find(params.ctx) : !fake.current())
    return CUDA_ERROR_INVALID_CONTEXT;
  // CUDA C++ Programming Guide, Technical Specifications per Compute
  // Capability: the same on every GPU.
  uint64_t threads = uint64_t(params.blockDimX) * params.blockDimY *
                     uint64_t(params.blockDimZ);
  if (!params.gridDimX || !params.gridDimY || !params.gridDimZ || !threads ||
      params.gridDimX > 2147483647u || params.gridDimY > 65535 ||
      params.gridDimZ > 65535 || params.blockDimZ > 64 ||
      threads > uint64_t(kernel->code->maxThreads))
    return CUDA_ERROR_INVALID_VALUE;
  if (int(params.sharedMemBytes) > kernel->dynamicSharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  // The same guide, Thread Block Clusters: a grid is of whole ones.
  const auto &[clusterX, clusterY, clusterZ] = kernel->code->cluster;
  if (params.gridDimX % clusterX || params.gridDimY % clusterY ||
      params.gridDimZ % clusterZ)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const auto &sizes = kernel->code->parameterSizes;
  if (params.extra || (!sizes.empty() && !params.kernelParams))
    return CUDA_ERROR_INVALID_VALUE;
  // 18679: the values are read now, each from where kernelParams[k] points.
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto *value = static_cast<const std::byte *>(params.kernelParams[k]);
    node.values.emplace_back(value, value + sizes[k]);
  }
  return CUDA_SUCCESS;
}

CUresult checkEnd(FakeCuda &fake, const CUDA_MEMCPY_NODE_PARAMS &params,
                  bool isSource) {
  const CUDA_MEMCPY3D &copy = params.copyParams;
  const Context *of = fake.contexts.find(params.copyCtx);
  CUmemorytype type = isSource ? copy.srcMemoryType : copy.dstMemoryType;
  const void *host = isSource ? copy.srcHost : copy.dstHost;
  CUdeviceptr device = isSource ? copy.srcDevice : copy.dstDevice;
  size_t pitch = isSource ? copy.srcPitch : copy.dstPitch;
  size_t height = isSource ? copy.srcHeight : copy.dstHeight;
  size_t x = isSource ? copy.srcXInBytes : copy.dstXInBytes;
  // 10392: the pitch is at least the width, and the height the rows;
  // 10399: at most MAX_PITCH.
  if (pitch < copy.WidthInBytes + x || pitch > 2147483647u ||
      (copy.Depth > 1 && height < copy.Height))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t bytes =
      ((copy.Depth - 1) * height + copy.Height - 1) * pitch + copy.WidthInBytes;
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    // Pageable memory is allowed, but not what we want in a graph.
    return fake.isHostRange(host, bytes, of) ? CUDA_SUCCESS
                                             : CUDA_ERROR_INVALID_VALUE;
  case CU_MEMORYTYPE_DEVICE:
    return fake.isDeviceRange(device, bytes, of) ? CUDA_SUCCESS
                                                 : CUDA_ERROR_INVALID_VALUE;
  case CU_MEMORYTYPE_UNIFIED: // 9975: the driver finds out whose it is
    return fake.isDeviceRange(device, bytes, of) ||
                   fake.isHostRange(reinterpret_cast<const void *>(device),
                                    bytes, of)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult checkCopy(FakeCuda &fake, const CUDA_MEMCPY_NODE_PARAMS &params) {
  // 3402-3404: flags and reserved must be zero.
  if (params.flags || params.reserved)
    return CUDA_ERROR_INVALID_VALUE;
  if (!fake.contexts.find(params.copyCtx))
    return CUDA_ERROR_INVALID_CONTEXT;
  const CUDA_MEMCPY3D &copy = params.copyParams;
  if (copy.reserved0 || copy.reserved1 || copy.srcLOD || copy.dstLOD ||
      !copy.WidthInBytes || !copy.Height || !copy.Depth)
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult code = checkEnd(fake, params, true))
    return code;
  return checkEnd(fake, params, false);
}

CUresult checkMemset(FakeCuda &fake, const CUDA_MEMSET_NODE_PARAMS_v2 &params) {
  const Context *of = fake.contexts.find(params.ctx);
  if (!of)
    return CUDA_ERROR_INVALID_CONTEXT;
  // 1830: elements of 1, 2 or 4 bytes; here of one row only.
  uint64_t bytes = uint64_t(params.width) * params.elementSize;
  if ((params.elementSize != 1 && params.elementSize != 2 &&
       params.elementSize != 4) ||
      params.height != 1 || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  // 1829: a destination device pointer; drivers look whose memory it is.
  return fake.isDeviceRange(params.dst, bytes, of) ? CUDA_SUCCESS
                                                   : CUDA_ERROR_INVALID_VALUE;
}

} // namespace mgpu::fake
