// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms of layers, groups and batches with their gradients, and dropout that
// does nothing. Means and variances are computed in f32 for narrow floats.
#include "pipeline/torch/Pointwise.h"

#include <algorithm>

namespace mgpu::pipeline::torch {

namespace {

std::optional<Tensor> wideOf(Builder &b, const Call &call, const char *name) {
  const std::optional<Tensor> x = call.maybeTensor(name);
  return x ? std::optional(forFunction(b, *x)) : std::nullopt;
}

/// (x - mean) / sqrt(variance + eps) over `dims`, with what it was made of.
struct Normed {
  Tensor value, mean, rstd;
};
Tensor inverseRoot(Builder &b, const Tensor &variance, double eps) {
  return b.unary("stablehlo.rsqrt", variance + eps);
}
Normed normalise(Builder &b, const Tensor &x, const Sizes &dims, double eps) {
  const Tensor mean = b.mean(x, dims, true), off = x - mean,
               rstd = inverseRoot(b, b.mean(off * off, dims, true), eps);
  return {off * rstd, mean, rstd};
}
/// The gradient of normalise()'s input from that of its value: `grad` is it,
/// `value` the normed input.
Tensor normGradient(Builder &b, const Tensor &grad, const Tensor &value,
                    const Tensor &rstd, const Sizes &dims) {
  return (grad - b.mean(grad, dims, true) -
          value * b.mean(grad * value, dims, true)) *
         rstd;
}

// Layers: the last dimensions.

Sizes lastDims(const Call &call, const Tensor &x) {
  const int64_t count = int64_t(call.integers("normalized_shape").size());
  if (count < 1 || count > x.rank() ||
      call.integers("normalized_shape") !=
          Sizes(x.sizes.end() - count, x.sizes.end()))
    call.refuse("its shape is not that of the last dimensions",
                ErrorKind::Invalid);
  Sizes dims = countUp(x.rank());
  dims.erase(dims.begin(), dims.end() - count);
  return dims;
}

Results layerNorm(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given);
  const Normed normed = normalise(b, x, lastDims(call, x), call.real("eps"));
  Tensor y = normed.value;
  if (const auto weight = wideOf(b, call, "weight"))
    y = y * *weight;
  if (const auto bias = wideOf(b, call, "bias"))
    y = y + *bias;
  return {b.convert(y, given.element), normed.mean, normed.rstd};
}

Results layerNormGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_out")),
               mean = forFunction(b, call.tensor("mean")),
               rstd = forFunction(b, call.tensor("rstd"));
  const Sizes dims = lastDims(call, x), mask = call.integers("output_mask", 3);
  Sizes outer = countUp(x.rank());
  outer.resize(outer.size() - dims.size());
  const Tensor value = (x - mean) * rstd;
  Results all(3);
  if (mask[0]) {
    const auto weight = wideOf(b, call, "weight");
    all[0] = b.convert(
        normGradient(b, weight ? grad * *weight : grad, value, rstd, dims),
        given.element);
  }
  if (mask[1])
    all[1] = b.convert(b.sum(grad * value, outer), given.element);
  if (mask[2])
    all[2] = b.convert(b.sum(grad, outer), given.element);
  return all;
}

Results rmsNorm(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given);
  const double eps =
      call.isNone("eps")
          ? (given.element == ElementType::F64 ? 0x1p-52 : 0x1p-23)
          : call.real("eps");
  Tensor y = x * inverseRoot(b, b.mean(x * x, lastDims(call, x), true), eps);
  if (const auto weight = wideOf(b, call, "weight"))
    y = y * *weight;
  return {b.convert(y, given.element)};
}

// Groups of channels.

/// [N, C, space...] as [N, groups, C / groups, space].
Tensor grouped(Builder &b, const Call &call, const Tensor &x, int64_t groups) {
  if (x.rank() < 2 || groups < 1 || x.sizes[1] % groups || x.count() == 0)
    call.refuse("its channels are no multiple of its groups",
                ErrorKind::Invalid);
  return b.reshape(x, {x.sizes[0], groups, x.sizes[1] / groups,
                       x.count() / x.sizes[0] / x.sizes[1]});
}
/// A tensor of channels in the shape of `x`.
Tensor alongChannels(Builder &b, const Tensor &channels, const Tensor &x) {
  return b.place(b.reshape(channels, {channels.count()}), {1}, x.sizes);
}

Results groupNorm(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given);
  const int64_t groups = call.integer(call.detail ? "num_groups" : "group");
  const Normed normed =
      normalise(b, grouped(b, call, x, groups), {2, 3}, call.real("eps"));
  Tensor y = b.reshape(normed.value, x.sizes);
  if (const auto weight = wideOf(b, call, "weight"))
    y = y * alongChannels(b, *weight, x);
  if (const auto bias = wideOf(b, call, "bias"))
    y = y + alongChannels(b, *bias, x);
  const Sizes ofGroups{x.sizes[0], groups};
  return {b.convert(y, given.element), b.reshape(normed.mean, ofGroups),
          b.reshape(normed.rstd, ofGroups)};
}

Results groupNormGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_out"));
  const int64_t groups = call.integer("group");
  const Sizes mask = call.integers("output_mask", 3);
  const Tensor parts = grouped(b, call, x, groups);
  const Sizes ofGroups{x.sizes[0], groups, 1, 1};
  const Tensor mean = b.reshape(forFunction(b, call.tensor("mean")), ofGroups),
               rstd = b.reshape(forFunction(b, call.tensor("rstd")), ofGroups),
               value = (parts - mean) * rstd;
  Sizes others = countUp(x.rank());
  others.erase(others.begin() + 1);
  Results all(3);
  if (mask[0]) {
    const auto weight = wideOf(b, call, "weight");
    const Tensor scaled = weight ? grad * alongChannels(b, *weight, x) : grad;
    all[0] =
        b.convert(b.reshape(normGradient(b, grouped(b, call, scaled, groups),
                                         value, rstd, {2, 3}),
                            x.sizes),
                  given.element);
  }
  if (mask[1])
    all[1] = b.convert(b.sum(grad * b.reshape(value, x.sizes), others),
                       given.element);
  if (mask[2])
    all[2] = b.convert(b.sum(grad, others), given.element);
  return all;
}

// Batches: all dimensions but that of channels.

Sizes batchDims(const Call &call, const Tensor &x) {
  if (x.rank() < 2 || x.count() == 0)
    call.refuse("its input has no channels", ErrorKind::Invalid);
  Sizes dims = countUp(x.rank());
  dims.erase(dims.begin() + 1);
  return dims;
}

/// The result, the mean and 1 / deviation that a gradient takes (of the batch,
/// in training; else empty), and the next running mean and variance.
Results batchNorm(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given);
  const Sizes dims = batchDims(call, x);
  const std::string_view form = call.detail;
  const auto mean = call.has("running_mean") ? wideOf(b, call, "running_mean")
                                             : std::nullopt,
             variance = call.has("running_var") ? wideOf(b, call, "running_var")
                                                : std::nullopt;
  const bool trains = form == "no_training"  ? false
                      : call.has("training") ? call.flag("training")
                                             : true;
  const double eps = call.real("eps");
  Tensor y;
  Results all;
  if (trains) {
    if (form == "composite" && mean)
      call.refuse(
          "it trains, and its running statistics change where the graph "
          "does not say it: export it with run_decompositions()");
    const Normed normed = normalise(b, x, dims, eps);
    y = normed.value;
    const Tensor ofBatch = b.reshape(normed.mean, {x.sizes[1]}),
                 deviation = b.reshape(normed.rstd, {x.sizes[1]});
    all = {Tensor(), ofBatch, deviation};
    if (form == "functional" && mean && variance) {
      const Tensor off = x - normed.mean;
      const double count = double(x.count()) / double(x.sizes[1]),
                   momentum = call.real("momentum");
      const Tensor spread = b.sum(off * off, dims) / std::max(count - 1, 0.0);
      all.push_back(ofBatch * momentum + *mean * (1 - momentum));
      all.push_back(spread * momentum + *variance * (1 - momentum));
    }
  } else {
    if (!mean || !variance)
      call.refuse("it has no running statistics", ErrorKind::Invalid);
    y = (x - alongChannels(b, *mean, x)) *
        alongChannels(b, inverseRoot(b, *variance, eps), x);
    const Tensor none = b.constant(0.0, x.element, {0});
    all = {Tensor(), none, none};
    if (form == "functional")
      all.insert(all.end(), {*mean, *variance});
  }
  if (const auto weight = wideOf(b, call, "weight"))
    y = y * alongChannels(b, *weight, x);
  if (const auto bias = wideOf(b, call, "bias"))
    y = y + alongChannels(b, *bias, x);
  all[0] = b.convert(y, given.element);
  return all;
}

/// A norm of each channel of each image; with running statistics it is a batch
/// norm.
Results instanceNorm(Builder &b, const Call &call) {
  if (!call.flag("use_input_stats"))
    return {batchNorm(b, call)[0]};
  const Tensor given = call.tensor("input"), x = forFunction(b, given);
  if (!call.isNone("running_mean"))
    call.refuse("it trains, and its running statistics change where the graph "
                "does not say it: export it with run_decompositions()");
  if (x.rank() < 3 || x.count() == 0)
    call.refuse("its input has no images", ErrorKind::Invalid);
  Sizes dims = countUp(x.rank());
  dims.erase(dims.begin(), dims.begin() + 2);
  Tensor y = normalise(b, x, dims, call.real("eps")).value;
  if (const auto weight = wideOf(b, call, "weight"))
    y = y * alongChannels(b, *weight, x);
  if (const auto bias = wideOf(b, call, "bias"))
    y = y + alongChannels(b, *bias, x);
  return {b.convert(y, given.element)};
}

Results batchNormGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("input"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_out"));
  const Sizes dims = batchDims(call, x), mask = call.integers("output_mask", 3);
  const bool trains = call.flag("train");
  const auto mean = wideOf(b, call, trains ? "save_mean" : "running_mean"),
             spread = wideOf(b, call, trains ? "save_invstd" : "running_var");
  if (!mean || !spread)
    call.refuse("it has no statistics", ErrorKind::Invalid);
  const Tensor rstd = alongChannels(
      b, trains ? *spread : inverseRoot(b, *spread, call.real("eps")), x);
  const Tensor value = (x - alongChannels(b, *mean, x)) * rstd;
  Results all(3);
  if (mask[0]) {
    const auto weight = wideOf(b, call, "weight");
    const Tensor scaled = weight ? grad * alongChannels(b, *weight, x) : grad;
    all[0] = b.convert(trains ? normGradient(b, scaled, value, rstd, dims)
                              : scaled * rstd,
                       given.element);
  }
  if (mask[1])
    all[1] = b.sum(grad * value, dims);
  if (mask[2])
    all[2] = b.sum(grad, dims);
  return all;
}

// Dropout.

Results dropout(Builder &b, const Call &call) {
  const Tensor x = call.tensor("input");
  const bool trains = call.isNone("train") || call.flag("train");
  if (trains && call.real("p") != 0)
    call.refuse("its dropout is of random numbers: export the module in eval() "
                "mode");
  return {x, b.constant(1.0, ElementType::I1, x.sizes)};
}
Results dropoutGradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output");
  return {grad * b.convert(call.tensor("mask"), grad.element) *
          call.real("scale")};
}

constexpr Operation operations[] = {
    {"layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, "
     "cudnn_enable=True)",
     layerNorm},
    {"native_layer_norm(input, normalized_shape, weight, bias, eps)",
     layerNorm},
    {"native_layer_norm_backward(grad_out, input, normalized_shape, mean, "
     "rstd, weight, bias, output_mask)",
     layerNormGradient},
    {"rms_norm(input, normalized_shape, weight=None, eps=None)", rmsNorm},
    {"group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, "
     "cudnn_enabled=True)",
     groupNorm, "num_groups"},
    {"native_group_norm(input, weight, bias, N, C, HxW, group, eps)",
     groupNorm},
    {"native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, "
     "HxW, group, output_mask)",
     groupNormGradient},
    {"batch_norm(input, weight, bias, running_mean, running_var, training, "
     "momentum, eps, cudnn_enabled)",
     batchNorm, "composite"},
    {"native_batch_norm(input, weight, bias, running_mean, running_var, "
     "training, momentum, eps)",
     batchNorm, "composite"},
    {"instance_norm(input, weight, bias, running_mean, running_var, "
     "use_input_stats, momentum, eps, cudnn_enabled)",
     instanceNorm, "no_training"},
    {"_native_batch_norm_legit_no_training(input, weight, bias, running_mean, "
     "running_var, momentum, eps)",
     batchNorm, "no_training"},
    {"_native_batch_norm_legit.no_stats(input, weight, bias, training, "
     "momentum, eps)",
     batchNorm, "no_stats"},
    {"_native_batch_norm_legit_functional(input, weight, bias, running_mean, "
     "running_var, training, momentum, eps)",
     batchNorm, "functional"},
    {"native_batch_norm_backward(grad_out, input, weight, running_mean, "
     "running_var, save_mean, save_invstd, train, eps, output_mask)",
     batchNormGradient},
    {"dropout(input, p, train)", dropout},
    {"native_dropout(input, p, train)", dropout},
    {"native_dropout_backward(grad_output, mask, scale)", dropoutGradient},
};

} // namespace

std::span<const Operation> normOperations() { return operations; }

} // namespace mgpu::pipeline::torch
