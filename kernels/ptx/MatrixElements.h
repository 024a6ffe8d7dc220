// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_MATRIXELEMENTS_H
#define MGPU_KERNELS_PTX_MATRIXELEMENTS_H

// The elements of matrices in registers, of any type that products have.

#include "kernels/ptx/Elements.h"

namespace mgpu::kernels::ptx {

double elementOf(Scalar type, uint64_t bits);
uint32_t bitsOfElement(Scalar type);
/// The bits of a register that holds such elements, and how many it does.
uint32_t registerBits(Scalar type);
uint32_t perRegister(Scalar type);
/// Element `at` of a lane's registers.
uint64_t elementIn(const Warp &warp, const uint32_t *places, Scalar type,
                   uint32_t lane, uint32_t at);
/// A sum as an element of the result.
uint64_t resultOf(Scalar type, double value);
/// The types of an instruction in the order in which they stand: has() would
/// take them in its own.
bool takeTypes(Decoder &d, std::initializer_list<Scalar *> into);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_MATRIXELEMENTS_H
