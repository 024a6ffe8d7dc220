// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_WARPGROUPPRODUCTS_H
#define MGPU_KERNELS_PTX_WARPGROUPPRODUCTS_H

#include "kernels/ptx/Machine.h"

namespace mgpu::kernels::ptx {

/// Runs an instruction that touches registers of products: an error where a
/// product that goes on has them.
void touchWatched(Warp &warp, const Instr &instr);
bool isProduct(Run run);
/// All warps of a warpgroup that has ended multiplied the same.
void leaveProducts(Warp &warp);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_WARPGROUPPRODUCTS_H
