// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_FUSEPRODUCTS_H
#define MGPU_DIALECT_CONVERSION_FUSEPRODUCTS_H

namespace mgpu::conversion {

/// Which matrix products share launches with elementwise operations.
enum class FuseProducts {
  None,
  Wide, ///< all but those of f16 and bf16, which GPUs leave to a library
  All
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_FUSEPRODUCTS_H
