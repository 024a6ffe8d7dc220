// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/torch/StablehloText.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline::torch {

static constexpr const char *tooLarge = "a tensor of it is too large";

static void checkSize(ElementType element, const Sizes &sizes) {
  if (!arrayBytes(element, sizes))
    refuse(ErrorKind::Invalid, tooLarge);
}

static void checkDims(const Tensor &x, const Sizes &dims) {
  for (int64_t dim : dims)
    if (dim < 0 || dim >= x.rank())
      refuse(ErrorKind::Invalid, "a tensor has too few dimensions");
}

int64_t Tensor::count() const {
  int64_t product = 1; // emit() has checked it
  for (int64_t size : sizes)
    product *= size;
  return product;
}

ElementType wide(ElementType type) {
  return isFloat(type) && sizeBytes(type) < 4 ? ElementType::F32 : type;
}

Scalar leastOf(ElementType type) {
  if (isFloat(type))
    return Scalar::of(-INFINITY);
  return Scalar::of(type == ElementType::I1
                        ? int64_t(0)
                        : INT64_MIN >> (64 - 8 * int(sizeBytes(type))));
}

Scalar mostOf(ElementType type) {
  if (isFloat(type))
    return Scalar::of(INFINITY);
  return Scalar::of(type == ElementType::I1
                        ? int64_t(1)
                        : INT64_MAX >> (64 - 8 * int(sizeBytes(type))));
}

int64_t dimOf(int64_t dim, int64_t rank) {
  const int64_t least = std::max<int64_t>(rank, 1);
  if (dim < -least || dim >= least)
    refuse(ErrorKind::Invalid,
           fmt::format("dimension {} of a tensor with {}", dim, rank));
  return dim < 0 ? dim + least : dim;
}

Sizes broadcastSizes(const Sizes &a, const Sizes &b) {
  Sizes sizes(std::max(a.size(), b.size()), 1);
  for (const Sizes *each : {&a, &b})
    for (size_t k = 0; k < each->size(); ++k) {
      int64_t &size = sizes[sizes.size() - each->size() + k];
      if (size != (*each)[k] && size != 1 && (*each)[k] != 1)
        refuse(ErrorKind::Invalid,
               fmt::format("shapes {} and {} do not fit each other",
                           fmt::join(a, "x"), fmt::join(b, "x")));
      size = size == 1 ? (*each)[k] : size;
    }
  return sizes;
}

Sizes without(const Sizes &sizes, const Sizes &dims, bool keeps) {
  Sizes result;
  for (size_t k = 0; k < sizes.size(); ++k)
    if (std::ranges::find(dims, int64_t(k)) == dims.end())
      result.push_back(sizes[k]);
    else if (keeps)
      result.push_back(1);
  return result;
}

Sizes countUp(int64_t count) {
  Sizes all(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k)
    all[size_t(k)] = k;
  return all;
}

std::string mlirType(ElementType element, const Sizes &sizes) {
  return fmt::format("tensor<{}{}{}>", fmt::join(sizes, "x"),
                     sizes.empty() ? "" : "x", toString(element));
}

std::string mlirArray(const Sizes &values) {
  return fmt::format("array<i64{}{}>", values.empty() ? "" : ": ",
                     fmt::join(values, ", "));
}

/// A matrix of two columns, as padding has them.
static std::string mlirPairs(const Sizes &low, const Sizes &high) {
  std::string text;
  for (size_t k = 0; k < low.size(); ++k)
    text += fmt::format("{}[{}, {}]", k ? ", " : "", low[k], high[k]);
  return low.empty()
             ? "dense<0> : tensor<0x2xi64>"
             : fmt::format("dense<[{}]> : tensor<{}x2xi64>", text, low.size());
}

Tensor Builder::emit(const char *op, std::span<const Tensor> operands,
                     ElementType element, Sizes sizes,
                     const std::string &attributes,
                     const std::string &regions) {
  return emitSeveral(op, operands, {{element, std::move(sizes)}}, attributes,
                     regions)
      .front();
}

Builder::Tensors Builder::emitSeveral(const char *op,
                                      std::span<const Tensor> operands,
                                      const std::vector<TensorType> &types,
                                      const std::string &attributes,
                                      const std::string &regions) {
  const std::string name = fmt::format("%{}.{}", prefix, ++numValues);
  std::string names, given, made;
  for (const Tensor &operand : operands) {
    names += (names.empty() ? "" : ", ") + operand.name;
    given +=
        (given.empty() ? "" : ", ") + mlirType(operand.element, operand.sizes);
  }
  Tensors results;
  for (const TensorType &type : types) {
    checkSize(type.element, type.sizes);
    made += (made.empty() ? "" : ", ") + mlirType(type.element, type.sizes);
    results.push_back(
        {this,
         types.size() == 1 ? name : fmt::format("{}#{}", name, results.size()),
         type.element, type.sizes});
  }
  body +=
      fmt::format("    {}{} = \"{}\"({}){}{} : ({}) -> ({})\n", name,
                  types.size() == 1 ? "" : fmt::format(":{}", types.size()), op,
                  names, attributes.empty() ? "" : " <{" + attributes + "}>",
                  regions.empty() ? "" : " (" + regions + ")", given, made);
  return results;
}

std::string Builder::region(const std::vector<ElementType> &types,
                            const std::function<Tensors(Tensors)> &make) {
  std::string outer = std::move(body), arguments;
  body.clear();
  Tensors scalars;
  for (ElementType type : types) {
    scalars.push_back({this, fmt::format("%scalar.{}", ++numValues), type, {}});
    arguments += fmt::format("{}{}: {}", arguments.empty() ? "" : ", ",
                             scalars.back().name, mlirType(type, {}));
  }
  std::string names, given;
  for (const Tensor &result : make(scalars)) {
    names += (names.empty() ? "" : ", ") + result.name;
    given += (given.empty() ? "" : ", ") + mlirType(result.element, {});
  }
  std::string text = fmt::format(
      "{{\n  ^bb0({}):\n{}    \"stablehlo.return\"({}) : ({}) -> ()\n  }}",
      arguments, body, names, given);
  body = std::move(outer);
  return text;
}

std::string Builder::combine(const char *op, ElementType type) {
  return region({type, type},
                [&](Tensors x) { return Tensors{emit(op, x, type, {})}; });
}

/// The bits of a number of `element`, as MLIR takes them.
static std::string bitsOf(const Scalar &value, ElementType element) {
  std::byte bytes[8] = {};
  if (element == ElementType::I1)
    return value.real != 0 ? "true" : "false";
  if (!isFloat(element) && !value.isFloat())
    return std::to_string(value.whole);
  if (!storeNumber(isFloat(element) ? value.real : std::trunc(value.real),
                   element, bytes))
    refuse(ErrorKind::Invalid, fmt::format("{} is no number of type {}",
                                           value.real, toString(element)));
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeBytes(element));
  if (!isFloat(element))
    return std::to_string(int64_t(value.real));
  return fmt::format("0x{:0{}X}", bits, sizeBytes(element) * 2);
}

Tensor Builder::constant(const Scalar &value, ElementType element,
                         Sizes sizes) {
  const std::string type = mlirType(element, sizes);
  return emit(
      "stablehlo.constant", std::span<const Tensor>(), element,
      std::move(sizes),
      fmt::format("value = dense<{}> : {}", bitsOf(value, element), type));
}

Tensor Builder::constants(std::span<const double> values, ElementType element,
                          Sizes sizes) {
  if (int64_t(values.size()) > mostConstant)
    refuse(ErrorKind::Unsupported, "a table of it has too many elements");
  std::string text = "\"0x";
  for (double value : values) {
    std::byte bytes[8] = {};
    storeNumber(value, element, bytes);
    for (uint32_t k = 0; k < sizeBytes(element); ++k)
      text += fmt::format("{:02X}", uint8_t(bytes[k]));
  }
  const std::string type = mlirType(element, sizes);
  return emit("stablehlo.constant", std::span<const Tensor>(), element,
              std::move(sizes),
              fmt::format("value = dense<{}\"> : {}", text, type));
}

Tensor Builder::iota(int64_t dim, ElementType element, Sizes sizes) {
  return emit("stablehlo.iota", std::span<const Tensor>(), element,
              std::move(sizes), fmt::format("iota_dimension = {} : i64", dim));
}

Tensor Builder::convert(const Tensor &x, ElementType element) {
  if (x.element == element)
    return x;
  if (element == ElementType::I1) // any number that is not zero is true
    return compare("NE", x, constant(0.0, x.element, x.sizes));
  return emit("stablehlo.convert", {x}, element, x.sizes);
}

Tensor Builder::unary(const char *op, const Tensor &x) {
  return emit(op, {x}, x.element, x.sizes);
}

Tensor Builder::binary(const char *op, const Tensor &a, const Tensor &b) {
  const Sizes sizes = broadcastSizes(a.sizes, b.sizes);
  return emit(op, {broadcast(a, sizes), broadcast(b, sizes)}, a.element, sizes);
}

Tensor Builder::compare(const char *direction, const Tensor &a,
                        const Tensor &b) {
  const Sizes sizes = broadcastSizes(a.sizes, b.sizes);
  return emit("stablehlo.compare", {broadcast(a, sizes), broadcast(b, sizes)},
              ElementType::I1, sizes,
              fmt::format("comparison_direction = "
                          "#stablehlo<comparison_direction {}>",
                          direction));
}

Tensor Builder::select(const Tensor &condition, const Tensor &a,
                       const Tensor &b) {
  const Sizes sizes =
      broadcastSizes(condition.sizes, broadcastSizes(a.sizes, b.sizes));
  return emit(
      "stablehlo.select",
      {broadcast(condition, sizes), broadcast(a, sizes), broadcast(b, sizes)},
      a.element, sizes);
}

Tensor Builder::reshape(const Tensor &x, Sizes sizes) {
  if (x.sizes == sizes)
    return x;
  checkSize(x.element, sizes);
  if (Tensor{nullptr, "", x.element, sizes}.count() != x.count())
    refuse(ErrorKind::Invalid,
           fmt::format("a tensor of shape {} is given shape {}",
                       fmt::join(x.sizes, "x"), fmt::join(sizes, "x")));
  return emit("stablehlo.reshape", {x}, x.element, std::move(sizes));
}

Tensor Builder::transpose(const Tensor &x, const Sizes &order) {
  Sizes sorted = order, sizes;
  std::ranges::sort(sorted);
  if (sorted != countUp(x.rank()))
    refuse(ErrorKind::Invalid, fmt::format("({}) is no order of {} dimensions",
                                           fmt::join(order, ", "), x.rank()));
  if (order == sorted)
    return x;
  for (int64_t dim : order)
    sizes.push_back(x.sizes[size_t(dim)]);
  return emit("stablehlo.transpose", {x}, x.element, std::move(sizes),
              "permutation = " + mlirArray(order));
}

Tensor Builder::place(const Tensor &x, const Sizes &dims, Sizes sizes) {
  if (x.sizes == sizes)
    return x;
  return emit("stablehlo.broadcast_in_dim", {x}, x.element, std::move(sizes),
              "broadcast_dimensions = " + mlirArray(dims));
}

Tensor Builder::broadcast(const Tensor &x, const Sizes &sizes) {
  if (x.sizes.size() > sizes.size() || broadcastSizes(x.sizes, sizes) != sizes)
    refuse(ErrorKind::Invalid,
           fmt::format("a tensor of shape {} does not expand to {}",
                       fmt::join(x.sizes, "x"), fmt::join(sizes, "x")));
  Sizes dims = countUp(x.rank());
  for (int64_t &dim : dims)
    dim += int64_t(sizes.size()) - x.rank();
  return place(x, dims, sizes);
}

Tensor Builder::unsqueeze(const Tensor &x, const Sizes &dims) {
  Sizes sizes = x.sizes, sorted = dims;
  std::ranges::sort(sorted);
  for (int64_t dim : sorted) {
    if (dim > int64_t(sizes.size()))
      refuse(ErrorKind::Invalid, "a tensor has too few dimensions");
    sizes.insert(sizes.begin() + dim, 1);
  }
  return reshape(x, std::move(sizes));
}

Tensor Builder::slice(const Tensor &x, int64_t dim, int64_t begin, int64_t end,
                      int64_t step) {
  if (dim >= x.rank() || step < 1)
    refuse(ErrorKind::Invalid, "a slice of a dimension that is not there");
  const int64_t size = x.sizes[size_t(dim)];
  begin = std::clamp<int64_t>(begin, 0, size);
  end = std::clamp<int64_t>(end, begin, size);
  if (begin == 0 && end == size && step == 1)
    return x;
  Sizes starts(x.sizes.size(), 0), limits = x.sizes, steps(x.sizes.size(), 1),
                                   sizes = x.sizes;
  starts[size_t(dim)] = begin;
  limits[size_t(dim)] = end;
  steps[size_t(dim)] = step;
  sizes[size_t(dim)] = end == begin ? 0 : (end - begin - 1) / step + 1;
  return emit(
      "stablehlo.slice", {x}, x.element, std::move(sizes),
      fmt::format("start_indices = {}, limit_indices = {}, strides = {}",
                  mlirArray(starts), mlirArray(limits), mlirArray(steps)));
}

Tensor Builder::pad(const Tensor &x, const Scalar &value, const Sizes &low,
                    const Sizes &high, const Sizes &interior) {
  const Sizes between = interior.empty() ? Sizes(x.sizes.size(), 0) : interior;
  Sizes sizes = x.sizes;
  bool isSame = true;
  for (size_t k = 0; k < sizes.size(); ++k) {
    constexpr int64_t most = int64_t(1) << 40;
    if (std::abs(low[k]) > most || std::abs(high[k]) > most ||
        between[k] > most || sizes[k] > most)
      refuse(ErrorKind::Invalid, tooLarge);
    const int64_t inner =
        sizes[k] + (sizes[k] > 1 ? (sizes[k] - 1) * between[k] : 0);
    isSame &= low[k] == 0 && high[k] == 0 && inner == sizes[k];
    sizes[k] = inner + low[k] + high[k];
    if (sizes[k] < 0)
      refuse(ErrorKind::Invalid, "padding takes more than there is");
  }
  if (isSame)
    return x;
  return emit("stablehlo.pad", {x, constant(value, x.element)}, x.element,
              std::move(sizes),
              fmt::format("edge_padding_low = {}, edge_padding_high = {}, "
                          "interior_padding = {}",
                          mlirArray(low), mlirArray(high), mlirArray(between)));
}

Tensor Builder::concatenate(std::span<const Tensor> all, int64_t dim) {
  if (all.size() == 1)
    return all.front();
  Sizes sizes = all.front().sizes;
  if (dim >= int64_t(sizes.size()))
    refuse(ErrorKind::Invalid, "scalars are joined");
  for (size_t k = 1; k < all.size(); ++k) {
    Sizes other = all[k].sizes;
    if (other.size() != sizes.size() ||
        without(other, {dim}, false) != without(sizes, {dim}, false))
      refuse(ErrorKind::Invalid,
             fmt::format("shapes {} and {} cannot be joined",
                         fmt::join(sizes, "x"), fmt::join(other, "x")));
    sizes[size_t(dim)] += other[size_t(dim)];
  }
  return emit("stablehlo.concatenate", all, all.front().element,
              std::move(sizes), fmt::format("dimension = {} : i64", dim));
}

Tensor Builder::reduce(const char *op, const Tensor &x, const Sizes &dims,
                       bool keeps, const Scalar &start) {
  Sizes sorted = dims;
  std::ranges::sort(sorted);
  if (dims.empty())
    return x;
  const Tensor result =
      emit("stablehlo.reduce", {x, constant(start, x.element)}, x.element,
           without(x.sizes, sorted, false), "dimensions = " + mlirArray(sorted),
           combine(op, x.element));
  return keeps ? reshape(result, without(x.sizes, sorted, true)) : result;
}

Tensor Builder::sum(const Tensor &x, const Sizes &dims, bool keeps) {
  return convert(reduce("stablehlo.add", convert(x, wide(x.element)), dims,
                        keeps, Scalar::of(int64_t(0))),
                 x.element);
}

Tensor Builder::mean(const Tensor &x, const Sizes &dims, bool keeps) {
  const Tensor whole = convert(x, wide(x.element));
  const Tensor total = sum(whole, dims, keeps);
  const double count =
      double(x.count()) / double(std::max<int64_t>(total.count(), 1));
  return convert(total / (x.count() == 0 ? 0.0 : count), x.element);
}

Tensor Builder::largest(const Tensor &x, const Sizes &dims, bool keeps) {
  return reduce("stablehlo.maximum", x, dims, keeps, leastOf(x.element));
}

Tensor Builder::reduceWindow(const char *op, const Tensor &x,
                             const Window &window, const Scalar &start) {
  const size_t first = x.sizes.size() - window.sizes.size();
  auto whole = [&](const Sizes &last, int64_t filler) {
    Sizes all(first, filler);
    all.insert(all.end(), last.begin(), last.end());
    return all;
  };
  Sizes sizes = x.sizes;
  for (size_t k = 0; k < window.sizes.size(); ++k) {
    const int64_t extent = (window.sizes[k] - 1) * window.dilation[k] + 1,
                  room = sizes[first + k] + window.low[k] + window.high[k];
    sizes[first + k] =
        room < extent ? 0 : (room - extent) / window.strides[k] + 1;
  }
  return emit(
      "stablehlo.reduce_window", {x, constant(start, x.element)}, x.element,
      std::move(sizes),
      fmt::format("window_dimensions = {}, window_strides = {}, "
                  "window_dilations = {}, padding = {}",
                  mlirArray(whole(window.sizes, 1)),
                  mlirArray(whole(window.strides, 1)),
                  mlirArray(whole(window.dilation, 1)),
                  mlirPairs(whole(window.low, 0), whole(window.high, 0))),
      combine(op, x.element));
}

Tensor Builder::dot(const Tensor &a, const Tensor &b, const Sizes &batchA,
                    const Sizes &batchB, const Sizes &summedA,
                    const Sizes &summedB) {
  Sizes sizes;
  checkDims(a, batchA);
  checkDims(a, summedA);
  checkDims(b, batchB);
  checkDims(b, summedB);
  auto fits = [&](const Sizes &ofA, const Sizes &ofB) {
    for (size_t k = 0; k < ofA.size(); ++k)
      if (a.sizes[size_t(ofA[k])] != b.sizes[size_t(ofB[k])])
        refuse(ErrorKind::Invalid,
               fmt::format("shapes {} and {} cannot be multiplied",
                           fmt::join(a.sizes, "x"), fmt::join(b.sizes, "x")));
  };
  fits(batchA, batchB);
  fits(summedA, summedB);
  for (int64_t dim : batchA)
    sizes.push_back(a.sizes[size_t(dim)]);
  for (auto [x, batch, summed] :
       {std::tuple(&a, &batchA, &summedA), std::tuple(&b, &batchB, &summedB)}) {
    Sizes dims = *batch;
    dims.insert(dims.end(), summed->begin(), summed->end());
    const Sizes rest = without(x->sizes, dims, false);
    sizes.insert(sizes.end(), rest.begin(), rest.end());
  }
  return emit(
      "stablehlo.dot_general", {a, b}, a.element, std::move(sizes),
      fmt::format(
          "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = "
          "[{}], rhs_batching_dimensions = [{}], lhs_contracting_dimensions = "
          "[{}], rhs_contracting_dimensions = [{}]>",
          fmt::join(batchA, ", "), fmt::join(batchB, ", "),
          fmt::join(summedA, ", "), fmt::join(summedB, ", ")));
}

Tensor Builder::multiplyAlong(const Tensor &x, int64_t dim,
                              std::span<const double> matrix, int64_t rows) {
  const Tensor wider = convert(x, wide(x.element));
  const Tensor by =
      constants(matrix, wider.element, {rows, x.sizes[size_t(dim)]});
  const Tensor product = dot(wider, by, {}, {}, {dim}, {1});
  Sizes order = countUp(x.rank() - 1);
  order.insert(order.begin() + dim, x.rank() - 1);
  return convert(transpose(product, order), x.element);
}

Tensor Builder::joined(const Tensors &indices) {
  Tensors columns;
  const ElementType element = indices.front().element;
  for (const Tensor &each : indices)
    columns.push_back(
        unsqueeze(convert(each, element), {int64_t(each.sizes.size())}));
  return concatenate(columns, columns.front().rank() - 1);
}

/// The numbers of both: which dimensions are of slices, and which of indices.
static std::pair<Sizes, std::string>
indexDims(const Tensor &x, const Sizes &dims, int64_t count, int64_t at) {
  Sizes windows;
  for (int64_t k = 0; k < x.rank() - int64_t(dims.size()); ++k)
    windows.push_back(k < at ? k : k + count);
  return {windows, fmt::format("{}", fmt::join(dims, ", "))};
}

Tensor Builder::gather(const Tensor &x, const Sizes &dims,
                       const Tensors &indices, int64_t at) {
  checkDims(x, dims);
  const Tensor starts = joined(indices);
  const int64_t count = starts.rank() - 1;
  const auto [windows, of] = indexDims(x, dims, count, at);
  Sizes slices = x.sizes, sizes = without(x.sizes, dims, false), sorted = dims;
  for (int64_t dim : dims)
    slices[size_t(dim)] = 1;
  std::ranges::sort(sorted);
  sizes.insert(sizes.begin() + at, starts.sizes.begin(),
               starts.sizes.end() - 1);
  if (std::ranges::any_of(
          dims, [&](int64_t dim) { return x.sizes[size_t(dim)] == 0; }))
    refuse(ErrorKind::Invalid, "elements are taken of an empty tensor");
  return emit("stablehlo.gather", {x, starts}, x.element, std::move(sizes),
              fmt::format("dimension_numbers = #stablehlo.gather<offset_dims = "
                          "[{}], collapsed_slice_dims = [{}], "
                          "start_index_map = [{}], index_vector_dim = {}>, "
                          "slice_sizes = {}",
                          fmt::join(windows, ", "), fmt::join(sorted, ", "), of,
                          count, mlirArray(slices)));
}

Tensor Builder::scatter(const Tensor &x, const Sizes &dims,
                        const Tensors &indices, const Tensor &updates,
                        int64_t at, const char *op) {
  checkDims(x, dims);
  const Tensor starts = joined(indices);
  const int64_t count = starts.rank() - 1;
  const auto [windows, of] = indexDims(x, dims, count, at);
  Sizes sizes = without(x.sizes, dims, false), sorted = dims;
  std::ranges::sort(sorted);
  sizes.insert(sizes.begin() + at, starts.sizes.begin(),
               starts.sizes.end() - 1);
  const std::string put = region({x.element, x.element}, [&](Tensors both) {
    return Tensors{op ? emit(op, both, x.element, {}) : both[1]};
  });
  return emit("stablehlo.scatter", {x, starts, broadcast(updates, sizes)},
              x.element, x.sizes,
              fmt::format("scatter_dimension_numbers = "
                          "#stablehlo.scatter<update_window_dims = [{}], "
                          "inserted_window_dims = [{}], "
                          "scatter_dims_to_operand_dims = [{}], "
                          "index_vector_dim = {}>",
                          fmt::join(windows, ", "), fmt::join(sorted, ", "), of,
                          count),
              put);
}

static Tensor arithmetic(const char *op, const Tensor &a, const Tensor &b) {
  return a.builder->binary(op, a, b);
}
static Tensor numberLike(const Tensor &x, double value) {
  return x.builder->constant(value, x.element, x.sizes);
}
Tensor operator+(const Tensor &a, const Tensor &b) {
  return arithmetic("stablehlo.add", a, b);
}
Tensor operator-(const Tensor &a, const Tensor &b) {
  return arithmetic("stablehlo.subtract", a, b);
}
Tensor operator*(const Tensor &a, const Tensor &b) {
  return arithmetic("stablehlo.multiply", a, b);
}
Tensor operator/(const Tensor &a, const Tensor &b) {
  return arithmetic("stablehlo.divide", a, b);
}
Tensor operator+(const Tensor &a, double b) { return a + numberLike(a, b); }
Tensor operator-(const Tensor &a, double b) { return a - numberLike(a, b); }
Tensor operator*(const Tensor &a, double b) { return a * numberLike(a, b); }
Tensor operator/(const Tensor &a, double b) { return a / numberLike(a, b); }
Tensor operator-(double a, const Tensor &b) { return numberLike(b, a) - b; }
Tensor operator-(const Tensor &a) {
  return a.builder->unary("stablehlo.negate", a);
}

} // namespace mgpu::pipeline::torch
