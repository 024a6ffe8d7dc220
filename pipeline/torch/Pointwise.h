// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_POINTWISE_H
#define MGPU_PIPELINE_TORCH_POINTWISE_H

// PyTorch's rules for elements of several types.

#include "pipeline/torch/AtenOps.h"

namespace mgpu::pipeline::torch {

/// A tensor or a number of Python.
struct Operand {
  Operand(Tensor tensor) : tensor(std::move(tensor)) {}
  Operand(Scalar number) : number(number) {}
  std::optional<Tensor> tensor;
  Scalar number;
};
Operand operandOf(const Call &call, const char *name);

/// The type of an elementwise result: a tensor with dimensions counts before
/// one without, and that before a number, unless the later one is of a higher
/// kind (bool, whole, float).
ElementType promoted(std::span<const Operand> operands);

/// The operand as elements of a type.
Tensor asElements(Builder &b, const Operand &operand, ElementType element);

/// `x` in the type that functions of reals are computed in: wide floats as they
/// are, narrow ones as f32, and whole numbers as f32.
Tensor forFunction(Builder &b, const Tensor &x);
/// The type of such a function's result.
ElementType functionResult(ElementType element);

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_POINTWISE_H
