// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_SCALAR_H
#define MGPU_KERNELS_PTX_SCALAR_H

// The fundamental types of PTX (ISA 9.0, section 5.2) and its state spaces
// (section 5.1).

#include <cstdint>
#include <optional>
#include <string_view>

namespace mgpu::kernels::ptx {

enum class Scalar : uint8_t {
  Pred,
  B8,
  U8,
  S8,
  B16,
  U16,
  S16,
  F16,
  BF16,
  E4M3x2,
  E5M2x2,
  B32,
  U32,
  S32,
  F32,
  F16x2,
  BF16x2,
  TF32,
  U16x2,
  S16x2,
  B64,
  U64,
  S64,
  F64,
  F32x2,
  B128
};

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

/// The bytes of a value; 1 for a predicate.
uint32_t bytesOf(Scalar type);
/// The bytes that a lane of a register takes: a narrow value lies in 32 bits.
inline uint32_t cellBytes(Scalar type) {
  const uint32_t bytes = bytesOf(type);
  return bytes < 4 ? 4 : bytes;
}
bool isFloat(Scalar type);
bool isSigned(Scalar type);
/// "f32" and the like, without a dot; nothing for other words.
std::optional<Scalar> scalarNamed(std::string_view word);
std::string_view nameOf(Scalar type);
/// Where an operand of `needed` may be a register of `type`: the sizes agree,
/// and neither is a float of another kind (section 9.4.1).
bool agrees(Scalar needed, Scalar type);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_SCALAR_H
