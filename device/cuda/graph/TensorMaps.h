// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_TENSORMAPS_H
#define MGPU_DEVICE_CUDA_GRAPH_TENSORMAPS_H

#include "device/cuda/graph/CudaState.h"

#include <variant>

namespace mgpu::device {

/// A kernel gets for one argument of a launch its bits, or the map of the array
/// at the address it is.
using KernelArgument = std::variant<uint64_t, CUtensorMap>;

/// The arguments of a node, as many as the kernel takes, and behind them the
/// maps that are added. Invalid, with what to do, where an array is not where a
/// map can be made of it.
Result<std::vector<KernelArgument>>
kernelArguments(CudaState &state, const LoadedKernel &kernel,
                const KernelNodeParams &params);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_TENSORMAPS_H
