// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements and rows by indices. Where PyTorch stops at an index that is out of
// range, what is read is the nearest element, and what is written is nothing.
#include "pipeline/torch/Pointwise.h"

#include <algorithm>

namespace mgpu::pipeline::torch {

namespace {

Tensor whole(Builder &b, const Tensor &index) {
  return b.convert(index, ElementType::I64);
}

/// Indices from the end are negative.
Tensor wrapped(Builder &b, const Tensor &given, int64_t size) {
  const Tensor index = whole(b, given);
  return b.select(b.compare("LT", index, b.constant(0.0, index.element)),
                  index + double(size), index);
}

Results embedding(Builder &b, const Call &call) {
  return {b.gather(call.tensor("weight"), {0},
                   {whole(b, call.tensor("indices"))}, 0)};
}

Results embeddingGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output"),
               index = whole(b, call.tensor("indices"));
  const int64_t rows = call.integer("num_weights"),
                padding = call.integer("padding_idx");
  if (call.flag("scale_grad_by_freq"))
    call.refuse("it scales gradients by frequency");
  if (grad.rank() < 1 || rows < 0)
    call.refuse("its gradient has no rows", ErrorKind::Invalid);
  Tensor at = index;
  if (padding >= 0) // a row that is not there
    at = b.select(
        b.compare("EQ", index, b.constant(double(padding), index.element)),
        b.constant(double(rows), index.element), index);
  const Tensor start =
      b.constant(0.0, wide(grad.element), {rows, grad.sizes.back()});
  return {b.convert(b.scatter(start, {0}, {at}, b.convert(grad, start.element),
                              0, "stablehlo.add"),
                    grad.element)};
}

/// For each element of an index of all dimensions, where it is in each.
std::vector<Tensor> coordinates(Builder &b, const Tensor &index, int64_t dim) {
  std::vector<Tensor> all;
  for (int64_t k = 0; k < index.rank(); ++k)
    all.push_back(k == dim ? index : b.iota(k, ElementType::I64, index.sizes));
  return all;
}

Results gather(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), index = whole(b, call.tensor("index"));
  if (x.rank() == 0)
    return {b.broadcast(x, index.sizes)};
  if (index.rank() != x.rank())
    call.refuse("its index has another number of dimensions",
                ErrorKind::Invalid);
  return {b.gather(x, countUp(x.rank()),
                   coordinates(b, index, call.dim("dim", x)), 0)};
}

/// Puts, adds or reduces elements of `src` where the index says.
Results scatter(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), index = whole(b, call.tensor("index"));
  if (x.rank() == 0 || index.rank() != x.rank())
    call.refuse("its index has another number of dimensions",
                ErrorKind::Invalid);
  Tensor source = asElements(
      b, operandOf(call, call.has("src") ? "src" : "value"), x.element);
  if (source.rank() > 0) {
    if (source.rank() != index.rank())
      call.refuse("its source has another number of dimensions",
                  ErrorKind::Invalid);
    for (int64_t k = 0; k < index.rank(); ++k)
      source = b.slice(source, k, 0, index.sizes[size_t(k)]);
  }
  const char *op = call.detail;
  if (call.has("reduce")) {
    const std::string how = call.text("reduce");
    op = how == "sum" || how == "add"         ? "stablehlo.add"
         : how == "prod" || how == "multiply" ? "stablehlo.multiply"
         : how == "amax"                      ? "stablehlo.maximum"
         : how == "amin"                      ? "stablehlo.minimum"
                                              : nullptr;
    if (!op || (call.has("include_self") && !call.flag("include_self")))
      call.refuse("its reduction '" + how + "' is not read");
  }
  return {b.scatter(x, countUp(x.rank()),
                    coordinates(b, index, call.dim("dim", x)), source, 0, op)};
}

Results indexSelect(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), index = call.tensor("index");
  if (x.rank() == 0)
    return {x};
  const int64_t dim = call.dim("dim", x);
  return {
      b.gather(x, {dim}, {whole(b, b.reshape(index, {index.count()}))}, dim)};
}

Results indexAdd(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), index = call.tensor("index");
  if (x.rank() == 0)
    call.refuse("it adds to a single number");
  const int64_t dim = call.dim("dim", x);
  Tensor source = b.convert(call.tensor("source"), x.element);
  if (call.real("alpha") != 1)
    source = source * b.constant(call.scalar("alpha"), x.element);
  return {b.scatter(x, {dim}, {whole(b, b.reshape(index, {index.count()}))},
                    source, dim, "stablehlo.add")};
}

/// The dimensions that x[i, :, j] indexes, the indices in one shape, and where
/// that shape stands in the result.
struct Indexed {
  Sizes dims;
  std::vector<Tensor> indices;
  int64_t at = 0;
};
Indexed indexed(Builder &b, const Call &call, const Tensor &x) {
  Indexed result;
  const auto given = call.maybeTensors("indices");
  Sizes shape;
  for (size_t k = 0; k < given.size(); ++k) {
    if (!given[k])
      continue;
    if (given[k]->element == ElementType::I1)
      call.refuse("it indexes by truth values: how many elements that gives is "
                  "not known before it runs");
    if (int64_t(k) >= x.rank())
      call.refuse("it has more indices than dimensions", ErrorKind::Invalid);
    result.dims.push_back(int64_t(k));
    shape = broadcastSizes(shape, given[k]->sizes);
  }
  if (result.dims.empty())
    call.refuse("it has no index", ErrorKind::Invalid);
  for (int64_t dim : result.dims)
    result.indices.push_back(b.broadcast(
        wrapped(b, *given[size_t(dim)], x.sizes[size_t(dim)]), shape));
  // Indices that do not follow each other come first, as in NumPy.
  if (result.dims.back() - result.dims.front() + 1 ==
      int64_t(result.dims.size()))
    result.at = result.dims.front();
  return result;
}

Results index(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Indexed to = indexed(b, call, x);
  return {b.gather(x, to.dims, to.indices, to.at)};
}

Results indexPut(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"),
               values = b.convert(call.tensor("values"), x.element);
  const auto given = call.maybeTensors("indices");
  if (given.size() == 1 && given[0] && given[0]->element == ElementType::I1) {
    if (values.count() != 1 || call.flag("accumulate") ||
        given[0]->rank() > x.rank())
      call.refuse("it puts several values where truth values say");
    Sizes spread = given[0]->sizes;
    spread.resize(x.sizes.size(), 1);
    return {b.select(b.reshape(*given[0], spread), b.reshape(values, {}), x)};
  }
  const Indexed to = indexed(b, call, x);
  return {b.scatter(x, to.dims, to.indices, values, to.at,
                    call.flag("accumulate") ? "stablehlo.add" : nullptr)};
}

/// The bag of each row, the number of rows of each bag, and their sums.
struct Bags {
  Tensor of, sizes, sums;
};

/// Bags that have the same number of rows.
Bags alikeBags(Builder &b, const Tensor &rows, int64_t bags) {
  const int64_t count = rows.sizes[0], width = rows.sizes[1],
                step = count / bags;
  return {b.reshape(b.iota(0, ElementType::I64, {bags, step}), {count}),
          b.constant(Scalar::of(step), ElementType::I64, {bags}),
          b.convert(b.sum(b.reshape(b.convert(rows, wide(rows.element)),
                                    {bags, step, width}),
                          {1}),
                    rows.element)};
}

Bags anyBags(Builder &b, const Tensor &rows, const Tensor &offsets) {
  const int64_t count = rows.sizes[0], bags = offsets.sizes[0];
  // The bag of an index is the number of those that begin up to it, less one.
  const Sizes pairs{count, bags};
  const Tensor begun = b.compare("LE", b.place(offsets, {1}, pairs),
                                 b.iota(0, ElementType::I64, pairs));
  const Tensor bag = b.sum(b.convert(begun, ElementType::I64), {1}) - 1.0;
  auto summed = [&](const Tensor &values, Sizes sizes) {
    return b.scatter(b.constant(0.0, values.element, std::move(sizes)), {0},
                     {bag}, values, 0, "stablehlo.add");
  };
  return {bag, summed(b.constant(1.0, ElementType::I64, {count}), {bags}),
          summed(rows, {bags, rows.sizes[1]})};
}

/// Sums or means of bags of rows, whose first indices are `offsets`.
Results embeddingBag(Builder &b, const Call &call) {
  const Tensor weight = call.tensor("weight"),
               index = whole(b, call.tensor("indices"));
  Tensor offsets = whole(b, call.tensor("offsets"));
  const int64_t mode = call.integer("mode");
  if (mode > 1 || mode < 0 || call.integer("padding_idx") >= 0 ||
      weight.rank() != 2 || index.rank() != 1 || offsets.rank() != 1)
    call.refuse("of bags sums and means are read, without padding");
  // The last offset may be the number of indices, which begins no bag.
  if (call.flag("include_last_offset") && offsets.sizes[0] > 0)
    offsets = b.slice(offsets, 0, 0, offsets.sizes[0] - 1);
  const int64_t count = index.sizes[0], bags = offsets.sizes[0];
  const bool areAlike =
      bags > 0 && offsets.step > 0 && count == bags * offsets.step;
  Tensor rows = b.gather(weight, {0}, {index}, 0);
  if (const auto shares = call.maybeTensor("per_sample_weights"))
    rows = rows * b.unsqueeze(*shares, {1});
  const auto [bag, sizes, sum] =
      areAlike ? alikeBags(b, rows, bags) : anyBags(b, rows, offsets);
  const Tensor most =
      b.binary("stablehlo.maximum", sizes, b.constant(1.0, ElementType::I64));
  const Tensor result =
      mode == 0 ? sum : sum / b.unsqueeze(b.convert(most, sum.element), {1});
  return {result, bag, sizes, b.constant(0.0, ElementType::I64, {bags})};
}

Results embeddingBagGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad"),
               index = whole(b, call.tensor("indices")),
               bag = whole(b, call.tensor("offset2bag")),
               sizes = call.tensor("bag_size");
  const int64_t mode = call.integer("mode"), rows = call.integer("num_weights");
  if (mode > 1 || mode < 0 || call.flag("scale_grad_by_freq") ||
      call.integer("padding_idx") >= 0 || grad.rank() != 2 || rows < 0)
    call.refuse("of bags sums and means are read, without padding");
  Tensor share = grad;
  if (mode == 1)
    share = grad /
            b.unsqueeze(b.convert(b.binary("stablehlo.maximum", whole(b, sizes),
                                           b.constant(1.0, ElementType::I64)),
                                  grad.element),
                        {1});
  Tensor each = b.gather(share, {0}, {bag}, 0);
  if (const auto shares = call.maybeTensor("per_sample_weights"))
    each = each * b.unsqueeze(*shares, {1});
  return {b.scatter(b.constant(0.0, grad.element, {rows, grad.sizes[1]}), {0},
                    {index}, each, 0, "stablehlo.add")};
}

/// 1 where an index says, of `num_classes`.
Results oneHot(Builder &b, const Call &call) {
  const Tensor index = whole(b, call.tensor("self"));
  const int64_t classes = call.integer("num_classes");
  if (classes < 1)
    call.refuse("it does not say how many classes there are");
  Sizes sizes = index.sizes;
  sizes.push_back(classes);
  return {b.convert(b.compare("EQ", b.unsqueeze(index, {index.rank()}),
                              b.iota(index.rank(), ElementType::I64, sizes)),
                    ElementType::I64)};
}

constexpr Operation operations[] = {
    {"embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, "
     "sparse=False)",
     embedding},
    {"embedding_dense_backward(grad_output, indices, num_weights, padding_idx, "
     "scale_grad_by_freq)",
     embeddingGradient},
    {"_embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, "
     "mode=0, sparse=False, per_sample_weights=None, "
     "include_last_offset=False, padding_idx=-1)",
     embeddingBag},
    {"_embedding_bag_forward_only(weight, indices, offsets, "
     "scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, "
     "include_last_offset=False, padding_idx=-1)",
     embeddingBag},
    {"_embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, "
     "maximum_indices, num_weights, scale_grad_by_freq, mode, "
     "per_sample_weights, padding_idx=-1)",
     embeddingBagGradient},
    {"gather(self, dim, index, sparse_grad=False)", gather},
    {"scatter.src(self, dim, index, src)", scatter},
    {"scatter.value(self, dim, index, value)", scatter},
    {"scatter.reduce(self, dim, index, src, reduce)", scatter},
    {"scatter_add(self, dim, index, src)", scatter, "stablehlo.add"},
    {"scatter_reduce.two(self, dim, index, src, reduce, include_self=True)",
     scatter},
    {"index_select(self, dim, index)", indexSelect},
    {"index_add(self, dim, index, source, alpha=1)", indexAdd},
    {"index.Tensor(self, indices)", index},
    {"index_put(self, indices, values, accumulate=False)", indexPut},
    {"_unsafe_index.Tensor(self, indices)", index},
    {"one_hot(self, num_classes=-1)", oneHot},
};

} // namespace

std::span<const Operation> indexOperations() { return operations; }

} // namespace mgpu::pipeline::torch
