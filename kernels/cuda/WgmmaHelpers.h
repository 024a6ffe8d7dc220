// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_WGMMAHELPERS_H
#define MGPU_KERNELS_CUDA_WGMMAHELPERS_H

#include <set>
#include <string>
#include <utility>

namespace mgpu::kernels::cuda {

/// The helpers of sm_90a for WgmmaMatmul's text: barriers in shared memory that
/// count bytes, tensor copies, descriptors of tiles and products of warpgroups.
/// `type` is "f16" or "bf16"; `byRows`: the tiles of B lie as those of A do, k
/// along their rows.
std::string wgmmaHelpers(const std::string &type, bool byRows);
/// The helpers for texts whose kernel asks for them itself (BulkForm.h): with
/// tokens of arrivals, copies in all swizzles, and products of each type and
/// number of columns. Declared where MGPU_BULK and MGPU_WARPGROUPS are not 0.
std::string
barrierHelpers(const std::set<std::pair<std::string, unsigned>> &products);
/// The name of the function that multiplies two tiles.
std::string productName(const std::string &type, bool byRows);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_WGMMAHELPERS_H
