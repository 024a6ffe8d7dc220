// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_STABLEHLOTEXT_H
#define MGPU_PIPELINE_TORCH_STABLEHLOTEXT_H

// Writes StableHLO, operation by operation, with the types of all results.
// Shapes are checked where an operation needs it: a program may say anything.

#include "pipeline/torch/ExportedGraph.h"
#include "support/Float.h"

#include <functional>
#include <span>

namespace mgpu::pipeline::torch {

class Builder;

/// A value of the program that is written.
struct Tensor {
  Builder *builder = nullptr;
  std::string name; ///< "%add.3"
  ElementType element = ElementType::F32;
  Sizes sizes;
  int64_t step = 0; ///< not 0: it is known to be 0, step, 2 step, ...

  int64_t rank() const { return int64_t(sizes.size()); }
  int64_t count() const;
};

/// The type that elementwise work on `type` is computed in: narrow floats are
/// widened, and the result is rounded once, as PyTorch does.
ElementType wide(ElementType type);
/// The least and the largest number, infinite for floats.
Scalar leastOf(ElementType type);
Scalar mostOf(ElementType type);
/// `dim` of a tensor of `rank` dimensions, from the end where it is negative.
int64_t dimOf(int64_t dim, int64_t rank);
/// The shape that both broadcast to, as NumPy has it.
Sizes broadcastSizes(const Sizes &a, const Sizes &b);
/// `sizes` without the dimensions `dims`; with 1 there if `keeps`.
Sizes without(const Sizes &sizes, const Sizes &dims, bool keeps);
/// 0, 1, ..., count - 1.
Sizes countUp(int64_t count);

/// The most elements of a constant that is written by its elements.
inline constexpr int64_t mostConstant = int64_t(1) << 22;

/// A window that slides along the last dimensions.
struct Window {
  Sizes sizes, strides, low, high, dilation;
};

class Builder {
public:
  using Tensors = std::vector<Tensor>;

  /// Names operations after `node` from here on.
  void begin(const std::string &node) { prefix = node; }
  const std::string &text() const { return body; }

  /// One operation in MLIR's generic form, with one result.
  Tensor emit(const char *op, std::span<const Tensor> operands,
              ElementType element, Sizes sizes,
              const std::string &attributes = "",
              const std::string &regions = "");
  Tensor emit(const char *op, std::initializer_list<Tensor> operands,
              ElementType element, Sizes sizes,
              const std::string &attributes = "",
              const std::string &regions = "") {
    return emit(op, std::span(operands.begin(), operands.size()), element,
                std::move(sizes), attributes, regions);
  }
  /// With several results.
  Tensors emitSeveral(const char *op, std::span<const Tensor> operands,
                      const std::vector<TensorType> &types,
                      const std::string &attributes,
                      const std::string &regions);
  /// A region over scalars of `types`, as text.
  std::string region(const std::vector<ElementType> &types,
                     const std::function<Tensors(Tensors)> &make);
  /// The region `op(a, b)`.
  std::string combine(const char *op, ElementType type);

  Tensor constant(const Scalar &value, ElementType element, Sizes sizes = {});
  Tensor constant(double value, ElementType element, Sizes sizes = {}) {
    return constant(Scalar::of(value), element, std::move(sizes));
  }
  /// A float constant by its elements, at most mostConstant.
  Tensor constants(std::span<const double> values, ElementType element,
                   Sizes sizes);
  Tensor iota(int64_t dim, ElementType element, Sizes sizes);

  Tensor convert(const Tensor &x, ElementType element);
  Tensor unary(const char *op, const Tensor &x);
  /// Operands of one type, which are broadcast.
  Tensor binary(const char *op, const Tensor &a, const Tensor &b);
  Tensor compare(const char *direction, const Tensor &a, const Tensor &b);
  Tensor select(const Tensor &condition, const Tensor &a, const Tensor &b);

  Tensor reshape(const Tensor &x, Sizes sizes);
  Tensor transpose(const Tensor &x, const Sizes &order);
  /// Dimension k of x becomes dims[k].
  Tensor place(const Tensor &x, const Sizes &dims, Sizes sizes);
  Tensor broadcast(const Tensor &x, const Sizes &sizes);
  /// `x` with a size of 1 at `dims`, which are of the result.
  Tensor unsqueeze(const Tensor &x, const Sizes &dims);
  Tensor slice(const Tensor &x, int64_t dim, int64_t begin, int64_t end,
               int64_t step = 1);
  Tensor pad(const Tensor &x, const Scalar &value, const Sizes &low,
             const Sizes &high, const Sizes &interior = {});
  Tensor concatenate(std::span<const Tensor> all, int64_t dim);

  Tensor reduce(const char *op, const Tensor &x, const Sizes &dims, bool keeps,
                const Scalar &start);
  /// A sum, of narrow floats in f32.
  Tensor sum(const Tensor &x, const Sizes &dims, bool keeps = false);
  Tensor mean(const Tensor &x, const Sizes &dims, bool keeps = false);
  Tensor largest(const Tensor &x, const Sizes &dims, bool keeps = false);
  Tensor reduceWindow(const char *op, const Tensor &x, const Window &window,
                      const Scalar &start);
  /// Pairs of dimensions, of a and of b, that are of a batch or summed over.
  Tensor dot(const Tensor &a, const Tensor &b, const Sizes &batchA,
             const Sizes &batchB, const Sizes &summedA, const Sizes &summedB);
  /// x along `dim` by a constant matrix of f32 or f64, [rows][columns].
  Tensor multiplyAlong(const Tensor &x, int64_t dim,
                       std::span<const double> matrix, int64_t rows);

  /// Elements or slices of x at `indices`, which have one shape: indices[k]
  /// counts along dims[k]. Their shape stands at dimension `at` of the result,
  /// and the other dimensions of x around it.
  Tensor gather(const Tensor &x, const Sizes &dims, const Tensors &indices,
                int64_t at);
  /// x with `updates`, of the shape that gather() would give, combined by `op`
  /// or put there where it is null.
  Tensor scatter(const Tensor &x, const Sizes &dims, const Tensors &indices,
                 const Tensor &updates, int64_t at, const char *op);

private:
  Tensor joined(const Tensors &indices);

  std::string body, prefix = "value";
  uint64_t numValues = 0;
};

/// "tensor<2x3xf32>".
std::string mlirType(ElementType element, const Sizes &sizes);
/// "array<i64: 1, 2>".
std::string mlirArray(const Sizes &values);

// Elementwise arithmetic of values of one element type, which are broadcast. A
// number takes the type of the other operand.
Tensor operator+(const Tensor &a, const Tensor &b);
Tensor operator-(const Tensor &a, const Tensor &b);
Tensor operator*(const Tensor &a, const Tensor &b);
Tensor operator/(const Tensor &a, const Tensor &b);
Tensor operator+(const Tensor &a, double b);
Tensor operator-(const Tensor &a, double b);
Tensor operator*(const Tensor &a, double b);
Tensor operator/(const Tensor &a, double b);
Tensor operator-(double a, const Tensor &b);
Tensor operator-(const Tensor &a);

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_STABLEHLOTEXT_H
