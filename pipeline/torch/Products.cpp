// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of vectors, matrices and batches, and attention.
#include "pipeline/torch/Pointwise.h"

#include <algorithm>
#include <cmath>

namespace mgpu::pipeline::torch {

namespace {

void checkRank(const Call &call, const Tensor &x, int64_t rank) {
  if (x.rank() != rank)
    call.refuse("a factor has another number of dimensions",
                ErrorKind::Invalid);
}

/// The product of matrices, of each of a batch where there are three
/// dimensions.
Tensor multiply(Builder &b, const Call &call, const Tensor &x, const Tensor &y,
                int64_t rank) {
  checkRank(call, x, rank);
  checkRank(call, y, rank);
  const Sizes batch = countUp(rank - 2);
  return b.dot(x, y, batch, batch, {rank - 1}, {rank - 2});
}

Results product(Builder &b, const Call &call) {
  return {multiply(b, call, call.tensor("self"), call.tensor("mat2"),
                   *call.detail - '0')};
}

Tensor scaled(Builder &b, const Tensor &x, const Scalar &by) {
  return by.real == 1 ? x : x * b.constant(by, x.element);
}
/// beta * self + alpha * x @ y.
Results addProduct(Builder &b, const Call &call) {
  const bool isBatch = call.has("batch1");
  const Tensor x = call.tensor(isBatch ? "batch1" : "mat1"),
               y = call.tensor(isBatch ? "batch2" : "mat2");
  const Tensor given =
      scaled(b, multiply(b, call, x, y, isBatch ? 3 : 2), call.scalar("alpha"));
  if (call.real("beta") == 0)
    return {given};
  return {given + scaled(b, b.convert(call.tensor("self"), given.element),
                         call.scalar("beta"))};
}

Results vectorProduct(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), y = call.tensor(call.detail);
  checkRank(call, y, 1);
  checkRank(call, x, call.has("vec") ? 2 : 1);
  return {b.dot(x, y, {}, {}, {x.rank() - 1}, {0})};
}

/// NumPy's matmul: the batches are broadcast; a matrix takes all rows of a
/// batch at once.
Tensor matmul(Builder &b, const Call &call, Tensor x, Tensor y) {
  if (x.rank() == 0 || y.rank() == 0)
    call.refuse("a factor is a single number", ErrorKind::Invalid);
  const bool isRow = x.rank() == 1, isColumn = y.rank() == 1;
  if (isColumn)
    return b.dot(x, y, {}, {}, {x.rank() - 1}, {0});
  if (isRow)
    x = b.unsqueeze(x, {0});
  Tensor result;
  if (y.rank() == 2) {
    result = b.dot(x, y, {}, {}, {x.rank() - 1}, {0});
  } else {
    Sizes batch = broadcastSizes({x.sizes.begin(), x.sizes.end() - 2},
                                 {y.sizes.begin(), y.sizes.end() - 2});
    auto whole = [&](const Tensor &t) {
      Sizes sizes = batch;
      sizes.insert(sizes.end(), t.sizes.end() - 2, t.sizes.end());
      return b.broadcast(t, sizes);
    };
    x = whole(x), y = whole(y);
    const Sizes dims = countUp(int64_t(batch.size()));
    result = b.dot(x, y, dims, dims, {x.rank() - 1}, {y.rank() - 2});
  }
  return isRow ? b.reshape(result,
                           without(result.sizes, {result.rank() - 2}, false))
               : result;
}

Results matmulOf(Builder &b, const Call &call) {
  return {matmul(b, call, call.tensor("self"), call.tensor("other"))};
}

Results linear(Builder &b, const Call &call) {
  const Tensor x = call.tensor("input"), weight = call.tensor("weight");
  if (x.rank() == 0)
    call.refuse("its input is a single number", ErrorKind::Invalid);
  const Tensor y =
      b.dot(x, weight, {}, {}, {x.rank() - 1}, {weight.rank() - 1});
  const std::optional<Tensor> bias = call.maybeTensor("bias");
  return {bias ? y + *bias : y};
}

/// softmax(scale * q kT + mask) v, in f32 for narrow floats but for products.
Tensor attention(Builder &b, const Call &call, const Tensor &q, Tensor k,
                 Tensor v) {
  if (call.real("dropout_p") != 0)
    call.refuse("its dropout is not 0");
  const int64_t rank = q.rank();
  if (rank < 3 || k.rank() != rank || v.rank() != rank)
    call.refuse("its tensors have less than three dimensions");
  if (call.has("enable_gqa") && call.flag("enable_gqa")) {
    const size_t heads = size_t(rank - 3);
    for (Tensor *each : {&k, &v}) {
      const int64_t have = std::max<int64_t>(each->sizes[heads], 1),
                    times = q.sizes[heads] / have;
      Sizes spread = each->sizes, places = countUp(rank + 1),
            sizes = each->sizes;
      spread.insert(spread.begin() + long(heads) + 1, times);
      places.erase(places.begin() + long(heads) + 1);
      sizes[heads] *= times;
      *each = b.reshape(b.place(*each, places, spread), sizes);
    }
  }
  const double scale = call.isNone("scale")
                           ? 1 / std::sqrt(double(q.sizes.back()))
                           : call.real("scale");
  const ElementType in = wide(q.element);
  Tensor scores =
      b.convert(matmul(b, call, q,
                       b.transpose(k,
                                   [&] {
                                     Sizes order = countUp(rank);
                                     std::swap(order[size_t(rank) - 1],
                                               order[size_t(rank) - 2]);
                                     return order;
                                   }())),
                in) *
      scale;
  const Tensor low = b.constant(-INFINITY, in);
  if (call.flag("is_causal")) {
    const Sizes sizes(scores.sizes.end() - 2, scores.sizes.end());
    scores = b.select(b.compare("GE", b.iota(0, ElementType::I64, sizes),
                                b.iota(1, ElementType::I64, sizes)),
                      scores, low);
  }
  if (const std::optional<Tensor> mask = call.maybeTensor("attn_mask"))
    scores = mask->element == ElementType::I1 ? b.select(*mask, scores, low)
                                              : scores + b.convert(*mask, in);
  // A row without any score is 0.
  const Tensor most = b.largest(scores, {scores.rank() - 1}, true),
               isNone = b.compare("EQ", most, low),
               e = b.unary("stablehlo.exponential", scores - most),
               shares = b.select(isNone, b.constant(0.0, in),
                                 e / b.sum(e, {scores.rank() - 1}, true));
  return matmul(b, call, b.convert(shares, q.element), v);
}

Results attentionOf(Builder &b, const Call &call) {
  return {attention(b, call, call.tensor("query"), call.tensor("key"),
                    call.tensor("value"))};
}

/// A bilinear form of each row of two inputs.
Results outer(Builder &b, const Call &call) {
  return {b.dot(b.unsqueeze(call.tensor("self"), {1}),
                b.unsqueeze(call.tensor("vec2"), {0}), {}, {}, {1}, {0})};
}

constexpr Operation operations[] = {
    {"mm(self, mat2)", product, "2"},
    {"bmm(self, mat2)", product, "3"},
    {"addmm(self, mat1, mat2, beta=1, alpha=1)", addProduct},
    {"baddbmm(self, batch1, batch2, beta=1, alpha=1)", addProduct},
    {"mv(self, vec)", vectorProduct, "vec"},
    {"dot(self, tensor)", vectorProduct, "tensor"},
    {"outer(self, vec2)", outer},
    {"matmul(self, other)", matmulOf},
    {"linear(input, weight, bias=None)", linear},
    {"scaled_dot_product_attention(query, key, value, attn_mask=None, "
     "dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)",
     attentionOf},
};

} // namespace

std::span<const Operation> productOperations() { return operations; }

} // namespace mgpu::pipeline::torch
