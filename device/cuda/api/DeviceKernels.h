// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_DEVICEKERNELS_H
#define MGPU_DEVICE_CUDA_API_DEVICEKERNELS_H

// The kernels of the CUDA target's own: strided copies, and reductions between
// logical devices of one GPU. Their text is CUDA C++ that includes nothing;
// whoever opens the target compiles it. The parameters are by value: what a
// graph node copies when it is made is all there is.

#include "support/Types.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace mgpu::device {

/// The most of one copy. A cuGraph node takes 4 KiB of parameters on every
/// driver.
inline constexpr uint32_t maxMoveRank = 8, maxMovesPerKernel = 16;
/// The most of one reduction: the logical devices of a GPU.
inline constexpr uint32_t maxReductionRanks = 32;
/// Threads of a block of each of them.
inline constexpr uint32_t deviceKernelThreads = 256;

/// `units` units of unitBytes (1, 2, 4, 8 or 16): unit i goes from
/// source + sum(i[k] * sourceStride[k]) to the same of the destination, where
/// i[] are the digits of i with bases size[], the last one fastest.
struct DeviceMove {
  uint64_t destination, source, units;
  uint32_t unitBytes, rank;
  int64_t size[maxMoveRank], destinationStride[maxMoveRank],
      sourceStride[maxMoveRank];
};

/// For each of `slices`, by blockIdx.y: output[i] = inputs[0][i] op
/// inputs[1][i] op ..., for `count` elements that begin slice * count elements
/// into the inputs. One slice goes to all outputs; several slices go each to
/// its own.
struct DeviceReduction {
  uint64_t inputs[maxReductionRanks], outputs[maxReductionRanks], count;
  uint32_t numInputs, numOutputs, slices;
  uint32_t isPacked; ///< all addresses and slices are multiples of 16 bytes
};

/// The program of "mgpu_move_1" and "mgpu_move_16", which take one DeviceMove
/// and maxMovesPerKernel of them; blockIdx.y says which.
std::string moveKernelSource();

/// The entry that reduces elements of `type`: "mgpu_reduce_sum_f32". index and
/// i64 share theirs.
std::string reductionKernelName(ElementType type, ReductionKind kind);
std::string reductionKernelSource(ElementType type, ReductionKind kind);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_DEVICEKERNELS_H
