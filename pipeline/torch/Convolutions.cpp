// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of one to three dimensions, with groups, transposed ones, and
// their gradients, which are convolutions too.
#include "pipeline/torch/AtenOps.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline::torch {

namespace {

/// The form of a convolution of StableHLO. Shapes: input [N, C, space...],
/// kernel [O, I, space...].
struct Form {
  Sizes strides, low, high, inputDilation, kernelDilation;
  int64_t groups = 1, batchGroups = 1;
  /// The first two dimensions of input, kernel and result have these roles.
  const char *input = "b, f", *kernel = "o, i", *result = "b, f";
};

Tensor convolve(Builder &b, const Tensor &x, const Tensor &kernel,
                const Form &form, Sizes sizes) {
  const size_t rank = form.strides.size();
  std::string pads;
  for (size_t k = 0; k < rank; ++k)
    pads += fmt::format("{}[{}, {}]", k ? ", " : "", form.low[k], form.high[k]);
  const std::string space =
      fmt::format("{}", fmt::join(countUp(int64_t(rank)), ", "));
  const std::string attributes = fmt::format(
      "window_strides = {}, padding = dense<[{}]> : tensor<{}x2xi64>, "
      "lhs_dilation = {}, rhs_dilation = {}, dimension_numbers = "
      "#stablehlo.conv<[{}, {}]x[{}, {}]->[{}, {}]>, feature_group_count = {} "
      ": i64, batch_group_count = {} : i64",
      mlirArray(form.strides), pads, rank, mlirArray(form.inputDilation),
      mlirArray(form.kernelDilation), form.input, space, form.kernel, space,
      form.result, space, form.groups, form.batchGroups);
  return b.emit("stablehlo.convolution", {x, kernel}, x.element,
                std::move(sizes), attributes);
}

/// The numbers of a call, for each dimension of space.
struct Sliding {
  Sliding(const Call &call, size_t rank)
      : strides(call.integers("stride", rank)),
        dilation(call.integers("dilation", rank)),
        padding(call.has("padding") && rank ? call.integers("padding", rank)
                                            : Sizes()),
        extra(call.has("output_padding") ? call.integers("output_padding", rank)
                                         : Sizes(rank, 0)),
        groups(call.integer("groups")) {
    constexpr int64_t most = int64_t(1) << 30;
    for (const Sizes *each : {&strides, &dilation, &padding, &extra})
      for (int64_t value : *each)
        if (value < (each == &strides || each == &dilation) || value > most)
          call.refuse("a number of its window is out of range",
                      ErrorKind::Invalid);
    if (groups < 1 || groups > most)
      call.refuse("it has no group", ErrorKind::Invalid);
  }
  Sizes strides, dilation, padding, extra;
  int64_t groups;
};

/// [I, O / groups, ...] as [I / groups, O, ...].
Tensor regroup(Builder &b, const Tensor &kernel, int64_t groups) {
  if (groups == 1)
    return kernel;
  Sizes split = kernel.sizes, order = countUp(kernel.rank() + 1),
        joined = kernel.sizes;
  split[0] = kernel.sizes[0] / groups;
  split.insert(split.begin(), groups);
  std::swap(order[0], order[1]);
  joined[0] /= groups;
  joined[1] *= groups;
  return b.reshape(b.transpose(b.reshape(kernel, split), order), joined);
}

Tensor forward(Builder &b, const Tensor &x, const Tensor &kernel,
               const Sliding &window) {
  const size_t rank = window.strides.size();
  Form form{window.strides, window.padding,  window.padding,
            Sizes(rank, 1), window.dilation, window.groups};
  Sizes sizes{x.sizes[0], kernel.sizes[0]};
  for (size_t k = 0; k < rank; ++k)
    sizes.push_back((x.sizes[k + 2] + 2 * window.padding[k] -
                     window.dilation[k] * (kernel.sizes[k + 2] - 1) - 1) /
                        window.strides[k] +
                    1);
  return convolve(b, x, kernel, form, sizes);
}

/// The gradient of forward()'s input, and so a transposed convolution: of
/// `sizes` in space.
Tensor transposed(Builder &b, const Tensor &x, const Tensor &kernel,
                  const Sliding &window, const Sizes &space) {
  const size_t rank = window.strides.size();
  Form form{Sizes(rank, 1),  {},           {}, window.strides,
            window.dilation, window.groups};
  form.kernel = "i, o";
  Sizes dims = countUp(int64_t(rank)), sizes{x.sizes[0]};
  for (int64_t &dim : dims)
    dim += 2;
  const Tensor grouped = regroup(b, kernel, window.groups),
               reversed =
                   b.emit("stablehlo.reverse", {grouped}, grouped.element,
                          grouped.sizes, "dimensions = " + mlirArray(dims));
  sizes.push_back(grouped.sizes[1]);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t extent = window.dilation[k] * (kernel.sizes[k + 2] - 1),
                  spread = (x.sizes[k + 2] - 1) * window.strides[k] + 1;
    form.low.push_back(extent - window.padding[k]);
    form.high.push_back(space[k] - spread - form.low[k] + extent);
    sizes.push_back(space[k]);
  }
  return convolve(b, x, reversed, form, sizes);
}

/// The gradient of forward()'s kernel.
Tensor kernelGradient(Builder &b, const Tensor &grad, const Tensor &x,
                      const Sizes &kernel, const Sliding &window) {
  const size_t rank = window.strides.size();
  Form form{window.dilation, window.padding, {},
            Sizes(rank, 1),  window.strides, 1,
            window.groups};
  form.input = "f, b", form.kernel = "i, o", form.result = "f, b";
  for (size_t k = 0; k < rank; ++k) {
    const int64_t spread = (grad.sizes[k + 2] - 1) * window.strides[k] + 1;
    form.high.push_back((kernel[k + 2] - 1) * window.dilation[k] + spread -
                        x.sizes[k + 2] - window.padding[k]);
  }
  return convolve(b, x, grad, form, kernel);
}

void check(const Call &call, const Tensor &x, const Tensor &kernel,
           bool isTransposed, int64_t groups) {
  if (x.rank() < 3 || x.rank() > 5 || kernel.rank() != x.rank())
    call.refuse("its input has another number of dimensions than a batch of "
                "one to three of space");
  for (size_t k = 0; k < x.sizes.size(); ++k)
    if (x.sizes[k] > int64_t(1) << 30 || kernel.sizes[k] > int64_t(1) << 30)
      call.refuse("its input is too large", ErrorKind::Invalid);
  const int64_t channels =
      isTransposed ? kernel.sizes[0] : kernel.sizes[1] * groups;
  if (x.sizes[1] != channels || kernel.sizes[0] % groups ||
      x.sizes[1] % groups || x.count() == 0 || kernel.count() == 0)
    call.refuse("its kernel does not fit its input", ErrorKind::Invalid);
}

Results convolution(Builder &b, const Call &call) {
  Tensor x = call.tensor("input");
  const Tensor kernel = call.tensor("weight");
  const bool hasBatch = x.rank() == kernel.rank();
  if (!hasBatch) // one of a batch
    x = b.unsqueeze(x, {0});
  const size_t rank = size_t(std::max<int64_t>(kernel.rank() - 2, 0));
  const bool isTransposed =
      call.has("transposed") ? call.flag("transposed") : call.detail != nullptr;
  Sliding window(call, rank);
  check(call, x, kernel, isTransposed, window.groups);
  Tensor y;
  if (isTransposed) {
    Sizes space;
    for (size_t k = 0; k < rank; ++k)
      space.push_back(
          (x.sizes[k + 2] - 1) * window.strides[k] - 2 * window.padding[k] +
          window.dilation[k] * (kernel.sizes[k + 2] - 1) + window.extra[k] + 1);
    y = transposed(b, x, kernel, window, space);
  } else {
    y = forward(b, x, kernel, window);
  }
  if (const std::optional<Tensor> bias = call.maybeTensor("bias"))
    y = y + b.place(b.convert(*bias, y.element), {1}, y.sizes);
  return {hasBatch ? y : b.reshape(y, {y.sizes.begin() + 1, y.sizes.end()})};
}

Results gradients(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output"), x = call.tensor("input"),
               kernel = call.tensor("weight");
  const bool isTransposed = call.flag("transposed");
  const size_t rank = size_t(std::max<int64_t>(kernel.rank() - 2, 0));
  const Sliding window(call, rank);
  check(call, x, kernel, isTransposed, window.groups);
  if (grad.rank() != x.rank() || grad.count() == 0 ||
      std::ranges::any_of(grad.sizes,
                          [](int64_t size) { return size > 1 << 30; }))
    call.refuse("its gradient does not fit its input", ErrorKind::Invalid);
  const Sizes mask = call.integers("output_mask", 3);
  Results all(3);
  if (mask[0]) {
    all[0] = isTransposed ? forward(b, grad, kernel, window)
                          : transposed(b, grad, kernel, window,
                                       {x.sizes.begin() + 2, x.sizes.end()});
    // An output_padding of a stride or more makes windows behind the input.
    for (int64_t dim = 2; dim < x.rank(); ++dim)
      if (all[0].sizes[size_t(dim)] > x.sizes[size_t(dim)])
        all[0] = b.slice(all[0], dim, 0, x.sizes[size_t(dim)]);
  }
  if (mask[1])
    all[1] = isTransposed ? kernelGradient(b, x, grad, kernel.sizes, window)
                          : kernelGradient(b, grad, x, kernel.sizes, window);
  if (mask[2]) {
    Sizes dims = countUp(grad.rank());
    dims.erase(dims.begin() + 1);
    all[2] = b.sum(grad, dims);
  }
  return all;
}

#define MGPU_CONV(name)                                                        \
  name "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)"
#define MGPU_TRANSPOSED(name)                                                  \
  name "(input, weight, bias=None, stride=1, padding=0, output_padding=0, "    \
       "groups=1, dilation=1)"

constexpr Operation operations[] = {
    {"convolution(input, weight, bias, stride, padding, dilation, transposed, "
     "output_padding, groups)",
     convolution},
    {MGPU_CONV("conv1d"), convolution},
    {MGPU_CONV("conv2d"), convolution},
    {MGPU_CONV("conv3d"), convolution},
    {MGPU_TRANSPOSED("conv_transpose1d"), convolution, "transposed"},
    {MGPU_TRANSPOSED("conv_transpose2d.input"), convolution, "transposed"},
    {MGPU_TRANSPOSED("conv_transpose3d.input"), convolution, "transposed"},
    {"convolution_backward(grad_output, input, weight, bias_sizes, stride, "
     "padding, dilation, transposed, output_padding, groups, output_mask)",
     gradients},
};

} // namespace

std::span<const Operation> convolutionOperations() { return operations; }

} // namespace mgpu::pipeline::torch
