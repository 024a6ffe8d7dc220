// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pools of windows, and changes of resolution, which are products with
// matrices of constants along each dimension.
#include "pipeline/torch/Pointwise.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace mgpu::pipeline::torch {

namespace {

constexpr int64_t mostWindow = int64_t(1) << 24;

/// The window of a pool over the last `rank` dimensions; the high padding has
/// what ceil_mode adds.
Window windowOf(const Call &call, const Tensor &x, size_t rank) {
  Window window;
  window.sizes = call.integers("kernel_size", rank);
  window.strides = call.integers("stride").empty()
                       ? window.sizes
                       : call.integers("stride", rank);
  window.low = call.integers("padding", rank);
  window.dilation =
      call.has("dilation") ? call.integers("dilation", rank) : Sizes(rank, 1);
  if (x.sizes.size() < rank + 1)
    call.refuse("its input has too few dimensions", ErrorKind::Invalid);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t size = window.sizes[k], stride = window.strides[k],
                  low = window.low[k], dilation = window.dilation[k],
                  have = x.sizes[x.sizes.size() - rank + k];
    if (size < 1 || stride < 1 || dilation < 1 || low < 0 || low > size ||
        size > mostWindow || stride > mostWindow || dilation > mostWindow ||
        have > int64_t(1) << 40)
      call.refuse("a number of its window is out of range", ErrorKind::Invalid);
    const int64_t extent = dilation * (size - 1) + 1, room = have + 2 * low;
    if (room < extent)
      call.refuse("its window is larger than its input", ErrorKind::Invalid);
    int64_t count = (room - extent) / stride + 1;
    if (call.flag("ceil_mode")) {
      count = (room - extent + stride - 1) / stride + 1;
      // The last window begins within the input or the padding before it.
      count -= (count - 1) * stride >= have + low;
    }
    window.high.push_back((count - 1) * stride + extent - have - low);
  }
  return window;
}

/// The largest of each window and, where they are asked for, their indices.
Results maxPool(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const size_t rank = size_t(*call.detail - '0');
  const Window window = windowOf(call, x, rank);
  const Tensor most =
      b.reduceWindow("stablehlo.maximum", x, window, leastOf(x.element));
  if (call.node.results.size() < 2 || call.node.results[1].name.empty())
    return {most};
  // The index of it: the least one in the window of an element that is as
  // large.
  Sizes space(x.sizes.end() - long(rank), x.sizes.end()),
      at(most.sizes.end() - long(rank), most.sizes.end());
  std::optional<Tensor> found;
  const int64_t taps = [&] {
    int64_t product = 1;
    for (int64_t size : window.sizes)
      product = std::min(product * size, mostWindow);
    return product;
  }();
  if (taps > 256) // an operation for each
    call.refuse("its window has more than 256 elements and its indices are "
                "asked for");
  Sizes low(x.sizes.size(), 0), high = low;
  std::copy(window.low.begin(), window.low.end(), low.end() - long(rank));
  std::copy(window.high.begin(), window.high.end(), high.end() - long(rank));
  const Tensor whole = b.pad(x, leastOf(x.element), low, high);
  for (int64_t tap = taps; tap-- > 0;) {
    Tensor part = whole;
    Tensor index = b.constant(0.0, ElementType::I64, at);
    int64_t rest = tap, scale = 1;
    for (size_t k = rank; k-- > 0; rest /= window.sizes[k]) {
      const int64_t dim = int64_t(x.sizes.size() - rank + k),
                    offset = rest % window.sizes[k] * window.dilation[k];
      part = b.slice(part, dim, offset,
                     offset + (at[k] - 1) * window.strides[k] + 1,
                     window.strides[k]);
      index = index + (b.iota(int64_t(k), ElementType::I64, at) *
                           double(window.strides[k]) +
                       double(offset - window.low[k])) *
                          double(scale);
      scale *= space[k];
    }
    const Tensor isIt = b.compare("EQ", part, most);
    found =
        found ? b.select(isIt, index, *found) : b.broadcast(index, most.sizes);
  }
  return {most, *found};
}

/// Each gradient to the first of the largest elements of its window.
Results maxPoolGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output"), x = call.tensor("self");
  const Window window = windowOf(call, x, 2);
  if (window.dilation != Sizes{1, 1})
    call.refuse("its window is dilated");
  const size_t first = x.sizes.size() - 2;
  std::string pads = first == 2 ? "[0, 0], [0, 0]" : "[0, 0]";
  Sizes sizes(first, 1), strides = sizes;
  for (size_t k = 0; k < 2; ++k) {
    sizes.push_back(window.sizes[k]);
    strides.push_back(window.strides[k]);
    pads += ", [" + std::to_string(window.low[k]) + ", " +
            std::to_string(window.high[k]) + "]";
  }
  const std::string select =
      b.region({x.element, x.element},
               [&](std::vector<Tensor> v) -> std::vector<Tensor> {
                 return {b.compare("GE", v[0], v[1])};
               });
  return {b.emit("stablehlo.select_and_scatter",
                 {x, grad, b.constant(0.0, x.element)}, x.element, x.sizes,
                 "window_dimensions = " + mlirArray(sizes) +
                     ", window_strides = " + mlirArray(strides) +
                     ", padding = dense<[" + pads + "]> : tensor<" +
                     std::to_string(x.sizes.size()) + "x2xi64>",
                 select + ", " + b.combine("stablehlo.add", x.element))};
}

/// How many elements each window of a mean counts, over the last dimensions.
Tensor windowCounts(Builder &b, const Call &call, const Tensor &x,
                    const Window &window, ElementType element) {
  const size_t rank = window.sizes.size();
  Tensor counts = b.constant(1.0, element);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t have = x.sizes[x.sizes.size() - rank + k],
                  low = window.low[k],
                  number = (have + low + window.high[k] - window.sizes[k]) /
                               window.strides[k] +
                           1;
    const bool takesPadding = call.flag("count_include_pad");
    if (number > mostConstant)
      call.refuse("it has too many windows");
    std::vector<double> all;
    for (int64_t at = 0; at < number; ++at) {
      const int64_t begin = at * window.strides[k] - low,
                    end = std::min(begin + window.sizes[k], have + low);
      all.push_back(takesPadding ? double(end - begin)
                                 : double(std::min(end, have) -
                                          std::max<int64_t>(begin, 0)));
    }
    Sizes shape(rank, 1);
    shape[k] = number;
    counts = counts * b.constants(all, element, shape);
  }
  return counts;
}

Tensor divisor(Builder &b, const Call &call, const Tensor &x,
               const Window &window, ElementType element) {
  if (call.has("divisor_override") && !call.isNone("divisor_override"))
    return b.constant(call.scalar("divisor_override"), element);
  return windowCounts(b, call, x, window, element);
}

Results averagePool(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), in = forFunction(b, x);
  const Window window = windowOf(call, x, size_t(*call.detail - '0'));
  return {b.convert(
      b.reduceWindow("stablehlo.add", in, window, Scalar::of(int64_t(0))) /
          divisor(b, call, x, window, in.element),
      x.element)};
}

/// Each gradient to all elements of its window: a sum over windows of what is
/// spread by the strides.
Results averagePoolGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output"), x = call.tensor("self"),
               in = forFunction(b, grad);
  const size_t rank = size_t(*call.detail - '0');
  const Window window = windowOf(call, x, rank);
  const size_t first = x.sizes.size() - rank;
  Sizes expected = x.sizes;
  for (size_t k = 0; k < rank; ++k)
    expected[first + k] = (x.sizes[first + k] + window.low[k] + window.high[k] -
                           window.sizes[k]) /
                              window.strides[k] +
                          1;
  if (grad.sizes != expected)
    call.refuse("its gradient does not fit its input", ErrorKind::Invalid);
  Tensor share = in / divisor(b, call, x, window, in.element);
  Sizes low(x.sizes.size(), 0), high = low, between = low;
  for (size_t k = 0; k < rank; ++k) {
    const size_t dim = first + k;
    between[dim] = window.strides[k] - 1;
    low[dim] = window.sizes[k] - 1 - window.low[k];
    const int64_t spread = (grad.sizes[dim] - 1) * window.strides[k] + 1;
    high[dim] = x.sizes[dim] + window.sizes[k] - 1 - low[dim] - spread;
  }
  share = b.pad(share, Scalar::of(int64_t(0)), low, high, between);
  const Sizes ones(rank, 1), zeros(rank, 0);
  const Window all{window.sizes, ones, zeros, zeros, ones};
  return {b.convert(
      b.reduceWindow("stablehlo.add", share, all, Scalar::of(int64_t(0))),
      grad.element)};
}

using Weights = std::function<double(int64_t row, int64_t column)>;

/// x, whose last dimensions are multiplied by a matrix of `sizes[k]` rows.
Tensor resized(Builder &b, const Call &call, Tensor x, const Sizes &sizes,
               const std::function<Weights(size_t, int64_t)> &weights) {
  const size_t rank = sizes.size();
  if (x.sizes.size() < rank)
    call.refuse("its input has too few dimensions", ErrorKind::Invalid);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t dim = x.rank() - int64_t(rank - k),
                  have = x.sizes[size_t(dim)];
    if (sizes[k] < 1 || have < 1 || sizes[k] > mostConstant / have)
      call.refuse("its sizes are none or too large");
    const Weights weight = weights(k, have);
    std::vector<double> matrix;
    for (int64_t row = 0; row < sizes[k]; ++row)
      for (int64_t column = 0; column < have; ++column)
        matrix.push_back(weight(row, column));
    x = b.multiplyAlong(x, dim, matrix, sizes[k]);
  }
  return x;
}

/// The mean of the bin `out` of `outs` over `ins` elements has this share of
/// element `in`.
double adaptiveShare(int64_t out, int64_t in, int64_t outs, int64_t ins) {
  const int64_t begin = out * ins / outs,
                end = ((out + 1) * ins - 1) / outs + 1;
  return in >= begin && in < end ? 1 / double(end - begin) : 0;
}

Results adaptivePool(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const size_t rank = size_t(*call.detail - '0');
  const Sizes sizes = call.integers("output_size", rank);
  if (x.sizes.size() < rank)
    call.refuse("its input has too few dimensions", ErrorKind::Invalid);
  if (std::ranges::all_of(sizes, [](int64_t size) { return size == 1; })) {
    Sizes dims = countUp(x.rank());
    dims.erase(dims.begin(), dims.end() - long(rank));
    return {b.mean(x, dims, true)};
  }
  return {resized(b, call, x, sizes, [&](size_t k, int64_t have) {
    return [have, outs = sizes[k]](int64_t row, int64_t column) {
      return adaptiveShare(row, column, outs, have);
    };
  })};
}
Results adaptivePoolGradient(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), grad = call.tensor("grad_output");
  if (x.rank() < 2)
    call.refuse("its input has too few dimensions", ErrorKind::Invalid);
  const Sizes sizes(x.sizes.end() - 2, x.sizes.end());
  return {resized(b, call, grad, sizes, [&](size_t k, int64_t have) {
    return [have, ins = sizes[k]](int64_t row, int64_t column) {
      return adaptiveShare(column, row, have, ins);
    };
  })};
}

/// The sizes that an upsampling gives, by sizes or factors.
Sizes upsampledSizes(const Call &call, const Sizes &have) {
  Sizes sizes;
  if (!call.isNone("output_size")) {
    sizes = call.integers("output_size", have.size());
    const char *names[] = {have.size() == 1 ? "scales" : "scales_h",
                           "scales_w"};
    for (size_t k = 0; k < have.size(); ++k)
      if (call.has(names[k]) && !call.isNone(names[k]) &&
          call.real(names[k]) * double(have[k]) != double(sizes[k]))
        call.refuse("its factors do not give whole sizes");
    return sizes;
  }
  for (size_t k = 0; k < have.size(); ++k) {
    const auto &factors = call.reals("scale_factors");
    const double size =
        factors.size() == have.size() ? double(have[k]) * factors[k] : -1;
    if (!(size >= 1 && size < 1e9 && size == std::floor(size)))
      call.refuse("its factors do not give whole sizes");
    sizes.push_back(int64_t(size));
  }
  return sizes;
}

/// The share of input `in` in output `out`, of the nearest or of two.
double upsampledShare(bool isLinear, bool alignsCorners, int64_t out,
                      int64_t in, int64_t outs, int64_t ins) {
  if (!isLinear)
    return in ==
           std::min(int64_t(float(out) * (float(ins) / float(outs))), ins - 1);
  const double at =
      alignsCorners
          ? (outs > 1 ? double(out) * double(ins - 1) / double(outs - 1) : 0)
          : std::max((double(out) + 0.5) * double(ins) / double(outs) - 0.5,
                     0.0);
  const int64_t first = std::min(int64_t(at), ins - 1),
                second = std::min(first + 1, ins - 1);
  const double share = at - double(first);
  return (in == first ? 1 - share : 0) + (in == second ? share : 0);
}

/// The dimensions that an upsampling changes, which are the last ones.
size_t upsampledRank(const Call &call, const Tensor &x) {
  const size_t rank = size_t(call.detail[1] - '0');
  if (size_t(x.rank()) != rank + 2)
    call.refuse(fmt::format("it has not {} dimensions", rank + 2));
  return rank;
}
Results upsample(Builder &b, const Call &call) {
  const Tensor x = call.tensor(call.has("input") ? "input" : "self");
  const bool isLinear = *call.detail == 'l',
             aligns = isLinear && call.flag("align_corners");
  const Sizes have(x.sizes.end() - long(upsampledRank(call, x)), x.sizes.end()),
      sizes = upsampledSizes(call, have);
  return {resized(b, call, x, sizes, [&](size_t k, int64_t ins) {
    return [=, outs = sizes[k]](int64_t row, int64_t column) {
      return upsampledShare(isLinear, aligns, row, column, outs, ins);
    };
  })};
}
Results upsampleGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output");
  const size_t rank = upsampledRank(call, grad);
  const Sizes all = call.integers("input_size", rank + 2),
              sizes(all.begin() + 2, all.end()),
              given(grad.sizes.begin() + 2, grad.sizes.end());
  if (upsampledSizes(call, sizes) != given)
    call.refuse(call.isNone("output_size")
                    ? "its factors do not give whole sizes"
                    : "its gradient does not fit its input");
  const bool isLinear = *call.detail == 'l',
             aligns = isLinear && call.flag("align_corners");
  return {resized(b, call, grad, sizes, [&](size_t k, int64_t outs) {
    return [=, ins = sizes[k]](int64_t row, int64_t column) {
      return upsampledShare(isLinear, aligns, column, row, outs, ins);
    };
  })};
}

/// The sum of the gradients of all places that an element was padded to.
Results padGradient(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), grad = call.tensor("grad_output");
  const Sizes padding = call.integers("padding"); // of the last dimension first
  const size_t rank = padding.size() / 2;
  const bool isPaired = padding.size() % 2 == 0 && x.sizes.size() >= rank;
  Sizes padded = x.sizes;
  for (size_t k = 0; isPaired && k < rank; ++k)
    padded[padded.size() - 1 - k] += padding[2 * k] + padding[2 * k + 1];
  if (!isPaired || padded != grad.sizes)
    call.refuse("its padding does not fit its input", ErrorKind::Invalid);
  const Sizes sizes(x.sizes.end() - long(rank), x.sizes.end());
  const bool reflects = *call.detail == 'r';
  return {resized(b, call, grad, sizes, [&](size_t k, int64_t) {
    return [=, low = padding[2 * (rank - 1 - k)],
            size = sizes[k]](int64_t row, int64_t column) {
      int64_t at = column - low;
      if (reflects)
        at = at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
      return double(std::clamp<int64_t>(at, 0, size - 1) == row);
    };
  })};
}

#define MGPU_POOL                                                              \
  "(self, kernel_size, stride=[], padding=0, dilation=1, ceil_mode=False)"
#define MGPU_MEAN                                                              \
  "(self, kernel_size, stride=[], padding=0, ceil_mode=False, "                \
  "count_include_pad=True"

constexpr Operation operations[] = {
    {"max_pool1d" MGPU_POOL, maxPool, "1"},
    {"max_pool2d" MGPU_POOL, maxPool, "2"},
    {"max_pool3d" MGPU_POOL, maxPool, "3"},
    {"max_pool2d_with_indices" MGPU_POOL, maxPool, "2"},
    {"max_pool3d_with_indices" MGPU_POOL, maxPool, "3"},
    {"max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, "
     "padding, dilation, ceil_mode, indices)",
     maxPoolGradient},
    {"avg_pool1d" MGPU_MEAN ")", averagePool, "1"},
    {"avg_pool2d" MGPU_MEAN ", divisor_override=None)", averagePool, "2"},
    {"avg_pool3d" MGPU_MEAN ", divisor_override=None)", averagePool, "3"},
    {"avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, "
     "ceil_mode, count_include_pad, divisor_override)",
     averagePoolGradient, "2"},
    {"avg_pool3d_backward(grad_output, self, kernel_size, stride, padding, "
     "ceil_mode, count_include_pad, divisor_override)",
     averagePoolGradient, "3"},
    {"adaptive_avg_pool1d(self, output_size)", adaptivePool, "1"},
    {"adaptive_avg_pool2d(self, output_size)", adaptivePool, "2"},
    {"_adaptive_avg_pool2d(self, output_size)", adaptivePool, "2"},
    {"_adaptive_avg_pool3d(self, output_size)", adaptivePool, "3"},
    {"_adaptive_avg_pool2d_backward(grad_output, self)", adaptivePoolGradient},
    {"upsample_nearest1d.vec(input, output_size, scale_factors)", upsample,
     "n1"},
    {"upsample_nearest1d(self, output_size, scales=None)", upsample, "n1"},
    {"upsample_nearest1d_backward.vec(grad_output, output_size, input_size, "
     "scale_factors)",
     upsampleGradient, "n1"},
    {"upsample_nearest1d_backward(grad_output, output_size, input_size, "
     "scales=None)",
     upsampleGradient, "n1"},
    {"upsample_nearest2d.vec(input, output_size, scale_factors)", upsample,
     "n2"},
    {"upsample_nearest2d(self, output_size, scales_h=None, scales_w=None)",
     upsample, "n2"},
    {"upsample_nearest2d_backward.vec(grad_output, output_size, input_size, "
     "scale_factors)",
     upsampleGradient, "n2"},
    {"upsample_nearest2d_backward(grad_output, output_size, input_size, "
     "scales_h=None, scales_w=None)",
     upsampleGradient, "n2"},
    {"upsample_linear1d.vec(input, output_size, align_corners, scale_factors)",
     upsample, "l1"},
    {"upsample_linear1d(self, output_size, align_corners, scales=None)",
     upsample, "l1"},
    {"upsample_linear1d_backward.vec(grad_output, output_size, input_size, "
     "align_corners, scale_factors)",
     upsampleGradient, "l1"},
    {"upsample_linear1d_backward(grad_output, output_size, input_size, "
     "align_corners, scales=None)",
     upsampleGradient, "l1"},
    {"upsample_bilinear2d.vec(input, output_size, align_corners, "
     "scale_factors)",
     upsample, "l2"},
    {"upsample_bilinear2d(self, output_size, align_corners, scales_h=None, "
     "scales_w=None)",
     upsample, "l2"},
    {"upsample_bilinear2d_backward.vec(grad_output, output_size, input_size, "
     "align_corners, scale_factors)",
     upsampleGradient, "l2"},
    {"upsample_bilinear2d_backward(grad_output, output_size, input_size, "
     "align_corners, scales_h=None, scales_w=None)",
     upsampleGradient, "l2"},
    {"reflection_pad1d_backward(grad_output, self, padding)", padGradient, "r"},
    {"reflection_pad2d_backward(grad_output, self, padding)", padGradient, "r"},
    {"reflection_pad3d_backward(grad_output, self, padding)", padGradient, "r"},
    {"replication_pad1d_backward(grad_output, self, padding)", padGradient,
     "c"},
    {"replication_pad2d_backward(grad_output, self, padding)", padGradient,
     "c"},
    {"replication_pad3d_backward(grad_output, self, padding)", padGradient,
     "c"},
};

} // namespace

std::span<const Operation> poolOperations() { return operations; }

} // namespace mgpu::pipeline::torch
