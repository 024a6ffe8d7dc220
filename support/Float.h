// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_FLOAT_H
#define MGPU_SUPPORT_FLOAT_H

// Conversions between the small float types and double. Rounding is to nearest,
// ties to even. Overflow gives infinity where the type has one and NaN where it
// has none (f8E4M3FN), as LLVM's APFloat does.

#include "support/Types.h"

#include <cstdint>

namespace mgpu {

uint16_t toBf16(double value);
uint16_t toF16(double value);
uint8_t toF8E4M3FN(double value);
uint8_t toF8E5M2(double value);

double fromBf16(uint16_t bits);
double fromF16(uint16_t bits);
double fromF8E4M3FN(uint8_t bits);
double fromF8E5M2(uint8_t bits);

bool isFloat(ElementType type);
/// Significant bits of a float type, the implicit one included; 0 for others.
int significandBits(ElementType type);

} // namespace mgpu

#endif // MGPU_SUPPORT_FLOAT_H
