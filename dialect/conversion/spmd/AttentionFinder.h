// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_ATTENTIONFINDER_H
#define MGPU_DIALECT_CONVERSION_SPMD_ATTENTIONFINDER_H

// Finds softmax(score(Q K^T)) V among operations on tensors, by asking how an
// element of the result is computed.

#include "dialect/conversion/spmd/Elements.h"

namespace mgpu::conversion {

/// Whether it is of a type that attention computes with.
bool isNarrowFloat(mlir::Type type);

/// Whether all it does to an element is a conversion between floats.
bool onlyConverts(mlir::Operation *op);

/// The factors of a sum of products that begins with 0.
struct Factors {
  mlir::OpOperand *first = nullptr, *second = nullptr;
};

class AttentionFinder {
public:
  explicit AttentionFinder(mlir::linalg::LinalgOp root) : root(root) {}
  /// Whether the root gives an attention; fills what stands below. A caller
  /// that needsSplit() then restarts and finds once more.
  bool find();
  bool needsSplit() const { return elements.needsSplit(); }
  /// Forgets all but the loops that reshapes split.
  void restart();
  /// Whether a tensor, on the way from the scores to the result, depends on Q
  /// K^T.
  bool depends(mlir::Value tensor);

  mlir::linalg::LinalgOp root;
  Elements elements;
  Element result, q, k, v, score;
  mlir::linalg::LinalgOp scores; ///< gives Q K^T
  // Numbers of loops.
  llvm::SmallVector<size_t> batch;
  std::optional<size_t> query, key, inHead, inValue;

private:
  std::optional<Factors> productOf(mlir::linalg::LinalgOp op);
  bool beginsWith(mlir::linalg::LinalgOp op,
                  bool (*isNeutral)(const llvm::APFloat &));
  /// The element that a reduction of `element` along the keys reads.
  template <typename... Combiners>
  std::optional<Element> reduced(Element element,
                                 bool (*isNeutral)(const llvm::APFloat &));
  Element plain(Element element);
  bool findWeights(const Element &weights, std::optional<Element> sum);
  bool findSoftmax(const Element &power, const std::optional<Element> &sum);
  bool findProduct();
  mlir::linalg::LinalgOp productBelow(mlir::Value tensor);
  bool isClosed();
  bool sortLoops();
  bool isWorthwhile() const;
  bool isUsed(const Element &element, size_t loop) {
    return Elements::follows(element, loop);
  }

  Index keys{}, head{};
  mlir::linalg::LinalgOp product; ///< with V, of these weights
  mlir::Value weights;
  llvm::DenseMap<mlir::Value, bool> known; ///< whether a tensor depends on it
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_ATTENTIONFINDER_H
