// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations that move elements and compute none. A view is a value of its own:
// the graphs that are read have no writes through views.
#include "pipeline/torch/Pointwise.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline::torch {

namespace {

/// Sizes in which one -1 stands for the rest of `count`.
Sizes resolved(const Call &call, Sizes sizes, int64_t count) {
  int64_t known = 1, *open = nullptr;
  for (int64_t &size : sizes)
    if (size == -1 && !open)
      open = &size;
    else if (size < 0 || __builtin_mul_overflow(known, size, &known))
      call.refuse("its sizes are none", ErrorKind::Invalid);
  if (open)
    *open = known == 0 ? 0 : count / known;
  return sizes;
}

Results same(Builder &, const Call &call) { return {call.tensor("self")}; }

Results reshaped(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.reshape(x, resolved(call, call.integers(call.detail), x.count()))};
}

Results flattened(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() == 0)
    return {b.reshape(x, {1})};
  const int64_t first = call.dim("start_dim", x), last = call.dim("end_dim", x);
  if (first > last)
    call.refuse("its last dimension is before its first", ErrorKind::Invalid);
  Sizes sizes(x.sizes.begin(), x.sizes.begin() + first);
  int64_t product = 1;
  for (int64_t k = first; k <= last; ++k)
    product *= x.sizes[size_t(k)];
  sizes.push_back(product);
  sizes.insert(sizes.end(), x.sizes.begin() + last + 1, x.sizes.end());
  return {b.reshape(x, sizes)};
}

Results unflattened(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dim", x);
  Sizes parts = resolved(call, call.integers("sizes"),
                         x.rank() ? x.sizes[size_t(dim)] : 1),
        sizes = x.sizes;
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  return {b.reshape(x, sizes)};
}

/// Without dimensions of size 1, of those that `detail` names.
Results squeezed(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  Sizes dims = countUp(x.rank()), sizes;
  if (call.detail)
    dims = call.dims(call.detail, x);
  for (int64_t k = 0; k < x.rank(); ++k)
    if (x.sizes[size_t(k)] != 1 || std::ranges::find(dims, k) == dims.end())
      sizes.push_back(x.sizes[size_t(k)]);
  return {b.reshape(x, sizes)};
}

Results unsqueezed(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.unsqueeze(x, {dimOf(call.integer("dim"), x.rank() + 1)})};
}

Results permuted(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  Sizes order = call.integers("dims");
  for (int64_t &dim : order)
    dim = dimOf(dim, x.rank());
  return {b.transpose(x, order)};
}

Results transposed(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (call.detail && x.rank() > 2)
    call.refuse("its tensor has more than two dimensions", ErrorKind::Invalid);
  if (x.rank() < 2)
    return {x};
  Sizes order = countUp(x.rank());
  std::swap(order[size_t(call.detail ? 0 : call.dim("dim0", x))],
            order[size_t(call.detail ? 1 : call.dim("dim1", x))]);
  return {b.transpose(x, order)};
}

Results expanded(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (call.detail)
    return {b.broadcast(x, call.tensor("other").sizes)};
  Sizes sizes = call.integers("size");
  const int64_t more = int64_t(sizes.size()) - x.rank();
  for (int64_t k = 0; k < int64_t(sizes.size()); ++k)
    if (sizes[size_t(k)] == -1 && k >= more)
      sizes[size_t(k)] = x.sizes[size_t(k - more)];
    else if (sizes[size_t(k)] < 0)
      call.refuse("its sizes are none", ErrorKind::Invalid);
  return {b.broadcast(x, sizes)};
}

struct Range {
  int64_t dim, begin, end, step;
};
/// dim, start, end and step of a slice, within `sizes`.
Range rangeOf(const Call &call, const Sizes &sizes) {
  const int64_t dim = dimOf(call.integer("dim"), int64_t(sizes.size()));
  if (sizes.empty())
    call.refuse("a scalar has no slices", ErrorKind::Invalid);
  const int64_t size = sizes[size_t(dim)];
  auto bound = [&](const char *name, int64_t otherwise) {
    const int64_t given = call.isNone(name) ? otherwise : call.integer(name);
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t begin = bound("start", 0);
  const int64_t step = call.integer("step");
  if (step < 1)
    call.refuse("its step is not positive", ErrorKind::Invalid);
  return {dim, begin, std::max(begin, bound("end", INT64_MAX)), step};
}

Results sliced(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Range range = rangeOf(call, x.sizes);
  return {b.slice(x, range.dim, range.begin, range.end, range.step)};
}

/// `x` where `src` was put in the range of it.
Tensor putRange(Builder &b, const Tensor &x, const Tensor &src, Range range) {
  const Tensor part = b.slice(x, range.dim, range.begin, range.end, range.step),
               given = b.broadcast(b.convert(src, x.element), part.sizes);
  Sizes low(x.sizes.size(), 0), high = low, between = low;
  const size_t dim = size_t(range.dim);
  const int64_t count = part.sizes[dim];
  if (count == 0)
    return x;
  if (range.step == 1) {
    const Tensor parts[] = {
        b.slice(x, range.dim, 0, range.begin), given,
        b.slice(x, range.dim, range.begin + count, x.sizes[dim])};
    std::vector<Tensor> whole;
    for (const Tensor &each : parts)
      if (each.sizes[dim] > 0)
        whole.push_back(each);
    return b.concatenate(whole, range.dim);
  }
  low[dim] = range.begin;
  between[dim] = range.step - 1;
  high[dim] = x.sizes[dim] - range.begin - (count - 1) * range.step - 1;
  const Tensor isThere = b.pad(b.constant(1.0, ElementType::I1, part.sizes),
                               Scalar::of(int64_t(0)), low, high, between);
  return b.select(isThere,
                  b.pad(given, Scalar::of(int64_t(0)), low, high, between), x);
}

Results sliceScatter(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {putRange(b, x, call.tensor("src"), rangeOf(call, x.sizes))};
}
Results sliceBackward(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output");
  const Sizes sizes = call.integers("input_sizes");
  return {putRange(b, b.constant(0.0, grad.element, sizes), grad,
                   rangeOf(call, sizes))};
}

Range oneOf(const Call &call, const Sizes &sizes) {
  const int64_t dim = dimOf(call.integer("dim"), int64_t(sizes.size()));
  const int64_t size = sizes.empty() ? 0 : sizes[size_t(dim)];
  int64_t index = call.integer("index");
  if (index < -size || index >= size)
    call.refuse(fmt::format("its index {} is not in {} elements", index, size),
                ErrorKind::Invalid);
  index += index < 0 ? size : 0;
  return {dim, index, index + 1, 1};
}
Results selected(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Range one = oneOf(call, x.sizes);
  return {b.reshape(b.slice(x, one.dim, one.begin, one.end),
                    without(x.sizes, {one.dim}, false))};
}
Results selectScatter(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Range one = oneOf(call, x.sizes);
  return {putRange(b, x, b.unsqueeze(call.tensor("src"), {one.dim}), one)};
}
Results selectBackward(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output");
  const Sizes sizes = call.integers("input_sizes");
  const Range one = oneOf(call, sizes);
  return {putRange(b, b.constant(0.0, grad.element, sizes),
                   b.unsqueeze(grad, {one.dim}), one)};
}
Results narrowed(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dim", x), start = call.integer("start"),
                length = call.integer("length");
  const int64_t size = x.rank() ? x.sizes[size_t(dim)] : 0,
                begin = start < 0 ? start + size : start;
  if (begin < 0 || length < 0 || begin > size || length > size - begin)
    call.refuse("its range is not in the dimension", ErrorKind::Invalid);
  return {b.slice(x, dim, begin, begin + length)};
}

/// Parts of the sizes `parts` along a dimension.
Results splitInto(Builder &b, const Tensor &x, int64_t dim,
                  const Sizes &parts) {
  Results all;
  int64_t begin = 0;
  for (int64_t size : parts) {
    all.push_back(b.slice(x, dim, begin, begin + size));
    begin += size;
  }
  return all;
}
Results splitEqual(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dim", x),
                size = x.rank() ? x.sizes[size_t(dim)] : 0;
  int64_t part = 0;
  if (call.detail) { // chunks
    const int64_t chunks = call.integer("chunks");
    part = chunks > 0 ? (size + chunks - 1) / chunks : 0;
  } else {
    part = call.integer("split_size");
  }
  if (part < 1 || size == 0)
    call.refuse("it splits into parts without elements");
  Sizes parts;
  for (int64_t left = size; left > 0 && parts.size() < call.node.results.size();
       left -= part)
    parts.push_back(std::min(part, left));
  return splitInto(b, x, dim, parts);
}
Results splitSizes(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dim", x);
  const Sizes parts = call.integers(call.detail);
  int64_t sum = 0;
  for (int64_t part : parts)
    if (part < 0 || __builtin_add_overflow(sum, part, &sum))
      call.refuse("its parts are none", ErrorKind::Invalid);
  if (x.rank() == 0 || sum != x.sizes[size_t(dim)])
    call.refuse("its parts are not the whole", ErrorKind::Invalid);
  return splitInto(b, x, dim, parts);
}
Results unbound(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dim", x);
  if (x.rank() == 0)
    call.refuse("a single number has no parts", ErrorKind::Invalid);
  const int64_t count =
      std::min(x.sizes[size_t(dim)], int64_t(call.node.results.size()));
  Results all;
  for (int64_t k = 0; k < count; ++k)
    all.push_back(
        b.reshape(b.slice(x, dim, k, k + 1), without(x.sizes, {dim}, false)));
  return all;
}

Results joined(Builder &b, const Call &call) {
  std::vector<Tensor> all = call.tensors("tensors"), parts;
  const std::vector<Operand> operands(all.begin(), all.end());
  const ElementType element = promoted(operands);
  const bool stacks = call.detail;
  const int64_t rank = all.front().rank(),
                dim = dimOf(call.integer("dim"), rank + stacks);
  for (const Tensor &each : all) // an empty vector joins anything
    if (stacks || each.sizes != Sizes{0} || all.size() == 1)
      parts.push_back(
          b.convert(stacks ? b.unsqueeze(each, {dim}) : each, element));
  return {b.concatenate(parts.empty() ? all : parts, dim)};
}

Results flipped(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Sizes dims =
      call.integers("dims").empty() ? Sizes() : call.dims("dims", x);
  if (dims.empty())
    return {x};
  return {b.emit("stablehlo.reverse", {x}, x.element, x.sizes,
                 "dimensions = " + mlirArray(dims))};
}

Results rolled(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Sizes shifts = call.integers("shifts"), dims = call.integers("dims");
  Tensor result = dims.empty() ? b.reshape(x, {x.count()}) : x;
  for (size_t k = 0; k < shifts.size(); ++k) {
    const int64_t dim =
        dims.empty() ? 0
                     : dimOf(dims.at(std::min(k, dims.size() - 1)), x.rank());
    const int64_t size = result.rank() ? result.sizes[size_t(dim)] : 0;
    if (size == 0)
      continue;
    const int64_t shift = (shifts[k] % size + size) % size;
    if (shift == 0)
      continue;
    const Tensor parts[] = {b.slice(result, dim, size - shift, size),
                            b.slice(result, dim, 0, size - shift)};
    result = b.concatenate(parts, dim);
  }
  return {b.reshape(result, x.sizes)};
}

Results repeated(Builder &b, const Call &call) {
  Tensor x = call.tensor("self");
  Sizes times = call.integers(call.detail);
  while (int64_t(times.size()) < x.rank() &&
         std::string_view(call.detail) == "dims")
    times.insert(times.begin(), 1);
  if (int64_t(times.size()) < x.rank())
    call.refuse("it has fewer numbers than dimensions", ErrorKind::Invalid);
  Sizes sizes(times.size() - x.sizes.size(), 1), places, spread, whole;
  sizes.insert(sizes.end(), x.sizes.begin(), x.sizes.end());
  for (size_t k = 0; k < times.size(); ++k) {
    if (times[k] < 0)
      call.refuse("it repeats less than never", ErrorKind::Invalid);
    places.push_back(int64_t(2 * k + 1));
    spread.insert(spread.end(), {times[k], sizes[k]});
    whole.push_back(0);
    if (__builtin_mul_overflow(times[k], sizes[k], &whole.back()))
      call.refuse("its result is too large", ErrorKind::Invalid);
  }
  return {b.reshape(b.place(b.reshape(x, sizes), places, spread), whole)};
}

/// Pairs of paddings from the last dimension on, negative ones cut.
Results padded(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Sizes pads = call.integers("pad");
  Sizes low(x.sizes.size(), 0), high = low;
  if (pads.size() % 2 || pads.size() / 2 > x.sizes.size())
    call.refuse("its padding has another number of dimensions",
                ErrorKind::Invalid);
  for (size_t k = 0; k < pads.size() / 2; ++k) {
    low[x.sizes.size() - 1 - k] = pads[2 * k];
    high[x.sizes.size() - 1 - k] = pads[2 * k + 1];
  }
  if (call.has("mode") && call.text("mode") != "constant")
    call.refuse("padding of mode '" + call.text("mode") + "' is not read");
  return {b.pad(
      x, call.isNone("value") ? Scalar::of(int64_t(0)) : call.scalar("value"),
      low, high)};
}

/// Padding with the elements at the edges, mirrored or repeated: an index of
/// each position.
Results mirrored(Builder &b, const Call &call) {
  Tensor x = call.tensor("self");
  const Sizes pads = call.integers("padding");
  const bool mirrors = std::string_view(call.detail) == "reflect";
  for (size_t k = 0; k < pads.size() / 2 && k < x.sizes.size(); ++k) {
    const int64_t dim = x.rank() - 1 - int64_t(k), size = x.sizes[size_t(dim)],
                  low = pads[2 * k], high = pads[2 * k + 1],
                  most = mirrors ? size - 1 : mostConstant;
    if (low < 0 || high < 0 || low > most || high > most || size == 0 ||
        size + low + high > mostConstant)
      call.refuse("its padding is negative or larger than the tensor");
    Sizes all;
    std::vector<double> from;
    for (int64_t at = -low; at < size + high; ++at)
      from.push_back(double(!mirrors    ? std::clamp<int64_t>(at, 0, size - 1)
                            : at < 0    ? -at
                            : at < size ? at
                                        : 2 * (size - 1) - at));
    const Tensor index =
        b.convert(b.constants(from, ElementType::F64, {int64_t(from.size())}),
                  ElementType::I64);
    x = b.gather(x, {dim}, {index}, dim);
  }
  return {x};
}

/// Below or above a diagonal of the last two dimensions.
Results triangle(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() < 2)
    call.refuse("its tensor is no matrix", ErrorKind::Invalid);
  const Sizes sizes(x.sizes.end() - 2, x.sizes.end());
  const Tensor row = b.iota(0, ElementType::I64, sizes),
               column = b.iota(1, ElementType::I64, sizes);
  return {
      b.select(b.compare(call.detail, column - row,
                         b.constant(call.scalar("diagonal"), ElementType::I64)),
               x, b.constant(0.0, x.element))};
}

Results diagonal(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t first = call.dim("dim1", x), second = call.dim("dim2", x),
                offset = call.integer("offset");
  if (x.rank() < 2 || first == second)
    call.refuse("its tensor is no matrix", ErrorKind::Invalid);
  const int64_t rows = x.sizes[size_t(first)],
                columns = x.sizes[size_t(second)],
                row = offset < 0 ? -std::max(offset, -rows) : 0,
                column = offset > 0 ? std::min(offset, columns) : 0,
                count = std::min(rows - row, columns - column);
  if (count < 1)
    call.refuse("its diagonal has no elements");
  const Tensor at = b.iota(0, ElementType::I64, {count});
  return {b.gather(x, {first, second}, {at + double(row), at + double(column)},
                   x.rank() - 2)};
}

/// Windows of a dimension, which become the last one.
Results unfolded(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t dim = call.dim("dimension", x), size = call.integer("size"),
                step = call.integer("step");
  const int64_t have = x.rank() ? x.sizes[size_t(dim)] : 0;
  if (size < 1 || step < 1 || size > have)
    call.refuse("its windows are none", ErrorKind::Invalid);
  const Sizes sizes{(have - size) / step + 1, size};
  const Tensor at = b.iota(0, ElementType::I64, sizes) * double(step) +
                    b.iota(1, ElementType::I64, sizes);
  const Tensor windows = b.gather(x, {dim}, {at}, dim);
  Sizes order = countUp(windows.rank());
  order.erase(order.begin() + dim + 1);
  order.push_back(dim + 1);
  return {b.transpose(windows, order)};
}

/// Strides that a contiguous tensor has are no strides.
Results strided(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Sizes sizes = call.integers("size"), strides = call.integers("stride");
  int64_t expected = 1;
  bool isPlain =
      sizes.size() == strides.size() &&
      (call.isNone("storage_offset") || call.integer("storage_offset") == 0);
  for (size_t k = sizes.size(); isPlain && k-- > 0; expected *= sizes[k])
    isPlain = sizes[k] == 1 || strides[k] == expected;
  if (!isPlain)
    call.refuse("its strides are not those of a contiguous tensor");
  return {b.reshape(x, sizes)};
}

/// Images by channels, rows and columns, with any dimensions before those.
struct Images {
  Images(const Call &call, const Tensor &x, int64_t factor) {
    if (x.rank() < 3 || factor < 1)
      call.refuse("it takes channels of rows and columns, and a factor of 1 or "
                  "more");
    before.assign(x.sizes.begin(), x.sizes.end() - 3);
    for (int64_t size : before)
      count *= size;
    channels = x.sizes.end()[-3];
    rows = x.sizes.end()[-2], columns = x.sizes.end()[-1];
  }
  Sizes sizes(int64_t channels, int64_t rows, int64_t columns) const {
    Sizes all = before;
    all.insert(all.end(), {channels, rows, columns});
    return all;
  }
  Sizes before;
  int64_t count = 1, channels, rows, columns;
};

Results pixelShuffle(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t r = call.integer("upscale_factor");
  const Images from(call, x, r);
  const int64_t c = from.channels / r / r, h = from.rows, w = from.columns;
  if (c * r * r != from.channels)
    call.refuse("its channels are no multiple of the square of its factor");
  return {b.reshape(b.transpose(b.reshape(x, {from.count, c, r, r, h, w}),
                                {0, 1, 4, 2, 5, 3}),
                    from.sizes(c, h * r, w * r))};
}

Results pixelUnshuffle(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const int64_t r = call.integer("downscale_factor");
  const Images from(call, x, r);
  const int64_t c = from.channels, h = from.rows / r, w = from.columns / r;
  if (h * r != from.rows || w * r != from.columns)
    call.refuse("its rows and columns are no multiples of its factor");
  return {b.reshape(b.transpose(b.reshape(x, {from.count, c, h, r, w, r}),
                                {0, 1, 3, 5, 2, 4}),
                    from.sizes(c * r * r, h, w))};
}

constexpr Operation operations[] = {
    {"alias(self)", same},
    {"clone(self, memory_format=None)", same},
    {"contiguous(self, memory_format=None)", same},
    {"detach(self)", same},
    {"detach_(self)", same},
    {"lift_fresh_copy(self)", same},
    {"lift(self)", same},
    {"view(self, size)", reshaped, "size"},
    {"_unsafe_view(self, size)", reshaped, "size"},
    {"reshape(self, shape)", reshaped, "shape"},
    {"_reshape_alias(self, size, stride)", reshaped, "size"},
    {"flatten.using_ints(self, start_dim=0, end_dim=-1)", flattened},
    {"unflatten.int(self, dim, sizes)", unflattened},
    {"squeeze(self)", squeezed},
    {"squeeze.dim(self, dim)", squeezed, "dim"},
    {"squeeze.dims(self, dim)", squeezed, "dim"},
    {"unsqueeze(self, dim)", unsqueezed},
    {"permute(self, dims)", permuted},
    {"transpose.int(self, dim0, dim1)", transposed},
    {"t(self)", transposed, "t"},
    {"numpy_T(self)",
     [](Builder &b, const Call &call) -> Results {
       Sizes order = countUp(call.tensor("self").rank());
       std::ranges::reverse(order);
       return {b.transpose(call.tensor("self"), order)};
     }},
    {"expand(self, size, implicit=False)", expanded},
    {"expand_copy(self, size, implicit=False)", expanded},
    {"expand_as(self, other)", expanded, "other"},
    {"slice.Tensor(self, dim=0, start=None, end=None, step=1)", sliced},
    {"slice_scatter(self, src, dim=0, start=None, end=None, step=1)",
     sliceScatter},
    {"slice_backward(grad_output, input_sizes, dim, start, end, step)",
     sliceBackward},
    {"select.int(self, dim, index)", selected},
    {"select_scatter(self, src, dim, index)", selectScatter},
    {"select_backward(grad_output, input_sizes, dim, index)", selectBackward},
    {"narrow(self, dim, start, length)", narrowed},
    {"split.Tensor(self, split_size, dim=0)", splitEqual},
    {"unsafe_split.Tensor(self, split_size, dim=0)", splitEqual},
    {"chunk(self, chunks, dim=0)", splitEqual, "chunks"},
    {"split.sizes(self, split_size, dim=0)", splitSizes, "split_size"},
    {"split_with_sizes(self, split_sizes, dim=0)", splitSizes, "split_sizes"},
    {"unbind.int(self, dim=0)", unbound},
    {"cat(tensors, dim=0)", joined},
    {"stack(tensors, dim=0)", joined, "stack"},
    {"flip(self, dims)", flipped},
    {"roll(self, shifts, dims=[])", rolled},
    {"repeat(self, repeats)", repeated, "repeats"},
    {"tile(self, dims)", repeated, "dims"},
    {"constant_pad_nd(self, pad, value=0)", padded},
    {"pad(self, pad, mode=constant, value=None)", padded},
    {"reflection_pad1d(self, padding)", mirrored, "reflect"},
    {"reflection_pad2d(self, padding)", mirrored, "reflect"},
    {"reflection_pad3d(self, padding)", mirrored, "reflect"},
    {"replication_pad1d(self, padding)", mirrored, "replicate"},
    {"replication_pad2d(self, padding)", mirrored, "replicate"},
    {"replication_pad3d(self, padding)", mirrored, "replicate"},
    {"tril(self, diagonal=0)", triangle, "LE"},
    {"triu(self, diagonal=0)", triangle, "GE"},
    {"diagonal(self, offset=0, dim1=0, dim2=1)", diagonal},
    {"unfold(self, dimension, size, step)", unfolded},
    {"as_strided(self, size, stride, storage_offset=None)", strided},
    {"pixel_shuffle(self, upscale_factor)", pixelShuffle},
    {"pixel_unshuffle(self, downscale_factor)", pixelUnshuffle},
};

} // namespace

std::span<const Operation> shapeOperations() { return operations; }

} // namespace mgpu::pipeline::torch
