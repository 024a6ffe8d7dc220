// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_OPCODES_H
#define MGPU_KERNELS_PTX_OPCODES_H

// The instructions that are executed, by the file that says what they mean.

#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Machine.h"

#include <span>

namespace mgpu::kernels::ptx {

/// Arithmetic of floats of any width, for the instructions that have both.
enum class FloatKind : uint8_t {
  Add,
  Sub,
  Mul,
  Fma,
  Div,
  Sqrt,
  Rcp,
  Min,
  Max,
  Abs,
  Neg
};
void decodeFloatArithmetic(Decoder &d, FloatKind kind, Scalar type);
void decodeApproximateDivision(Decoder &d);

/// The number of an atomic operation among the modifiers.
std::optional<uint32_t> operationNamed(Decoder &d);
/// The operation as a reduction of elements in memory; null where there is
/// none.
Combine reductionOf(uint32_t operation, Scalar type);

/// A register or constant to a parameter in local memory, or back.
void emitTransfer(Decoder &d, const Operand &operand,
                  const Decoder::Location &to, bool isResult);

std::span<const Operation> integerOperations();
std::span<const Operation> bitOperations();
std::span<const Operation> floatOperations();
std::span<const Operation> functionOperations(); ///< approximate ones
std::span<const Operation> compareOperations();
std::span<const Operation> conversions();
std::span<const Operation> moves();
std::span<const Operation> memoryOperations();
std::span<const Operation> atomicOperations();
std::span<const Operation> controlOperations();
std::span<const Operation> barrierOperations();
std::span<const Operation> laneOperations();
std::span<const Operation> copyOperations();
std::span<const Operation> mbarrierOperations();
std::span<const Operation> matrixOperations();
std::span<const Operation> warpgroupOperations();

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_OPCODES_H
