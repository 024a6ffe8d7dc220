// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations and their gradients, by the formulas of ATen's CPU kernels, in
// the type that functions are computed in, and rounded once.
#include "pipeline/torch/Pointwise.h"

#include <cmath>
#include <numbers>

namespace mgpu::pipeline::torch {

namespace {

Tensor maximum(const Tensor &x, double y) {
  return x.builder->binary("stablehlo.maximum", x,
                           x.builder->constant(y, x.element));
}
Tensor minimum(const Tensor &x, double y) {
  return x.builder->binary("stablehlo.minimum", x,
                           x.builder->constant(y, x.element));
}
Tensor is(const char *direction, const Tensor &x, double y) {
  return x.builder->compare(direction, x, x.builder->constant(y, x.element));
}
Tensor function(const char *name, const Tensor &x) {
  return x.builder->unary(name, x);
}
Tensor sigmoid(const Tensor &x) { return function("stablehlo.logistic", x); }
Tensor tanh(const Tensor &x) { return function("stablehlo.tanh", x); }
Tensor exp(const Tensor &x) { return function("stablehlo.exponential", x); }

/// The activation of `self`, as `make` has it.
template <auto make>
Results of(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.convert(make(forFunction(b, x), call), functionResult(x.element))};
}
/// The gradient from that of the result and what is called `name`.
template <auto make>
Results gradient(Builder &b, const Call &call) {
  const Tensor grad = call.tensor("grad_output"),
               x = call.tensor(call.detail ? call.detail : "self");
  return {b.convert(make(forFunction(b, grad), forFunction(b, x), call),
                    grad.element)};
}

Tensor cubic(const Tensor &x) {
  constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return (x + x * x * x * 0.044715) * scale;
}
Tensor gelu(const Tensor &x, const Call &call) {
  if (call.text("approximate") == "tanh")
    return x * 0.5 * (tanh(cubic(x)) + 1);
  return x * 0.5 * (function("chlo.erf", x * (std::numbers::sqrt2 / 2)) + 1);
}
Tensor geluGradient(const Tensor &grad, const Tensor &x, const Call &call) {
  constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  if (call.text("approximate") == "tanh") {
    const Tensor t = tanh(cubic(x)),
                 inner = (x * x * (3 * 0.044715) + 1) * scale;
    return grad * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * inner);
  }
  const Tensor below =
      (function("chlo.erf", x * (std::numbers::sqrt2 / 2)) + 1) * 0.5;
  return grad * (below + x * (exp(x * x * -0.5) * (scale / 2)));
}

Tensor silu(const Tensor &x, const Call &) { return x * sigmoid(x); }
Tensor siluGradient(const Tensor &grad, const Tensor &x, const Call &) {
  const Tensor s = sigmoid(x);
  return grad * s * (x * (1 - s) + 1);
}
Tensor sigmoidGradient(const Tensor &grad, const Tensor &y, const Call &) {
  return grad * (1 - y) * y;
}
Tensor tanhGradient(const Tensor &grad, const Tensor &y, const Call &) {
  return grad * (1 - y * y);
}
Tensor thresholdGradient(const Tensor &grad, const Tensor &x,
                         const Call &call) {
  return grad.builder->select(is("LE", x, call.real("threshold")),
                              grad.builder->constant(0.0, grad.element), grad);
}
Tensor leaky(const Tensor &x, const Call &call) {
  return x.builder->select(is("GT", x, 0), x, x * call.real("negative_slope"));
}
Tensor leakyGradient(const Tensor &grad, const Tensor &x, const Call &call) {
  return x.builder->select(is("GT", x, 0), grad,
                           grad * call.real("negative_slope"));
}
Tensor eluOf(const Tensor &x, double alpha, double scale, double input) {
  return x.builder->select(
      is("LE", x, 0),
      function("stablehlo.exponential_minus_one", x * input) * (alpha * scale),
      x * scale);
}
Tensor elu(const Tensor &x, const Call &call) {
  return eluOf(x, call.real("alpha"), call.real("scale"),
               call.real("input_scale"));
}
Tensor celu(const Tensor &x, const Call &call) {
  const double alpha = call.real("alpha");
  if (alpha == 0)
    call.refuse("its alpha is 0", ErrorKind::Invalid);
  return eluOf(x, alpha, 1, 1 / alpha);
}
Tensor selu(const Tensor &x, const Call &) {
  return eluOf(x, 1.6732632423543772848170429916717,
               1.0507009873554804934193349852946, 1);
}
Tensor eluGradient(const Tensor &grad, const Tensor &x, const Call &call) {
  const double scale = call.real("scale"), input = call.real("input_scale"),
               alpha = call.real("alpha") * scale;
  const Tensor below = call.flag("is_result")
                           ? grad * input * (x + alpha)
                           : grad * input * alpha * exp(x * input);
  return x.builder->select(is("LE", x, 0), below, grad * scale);
}
Tensor hardtanh(const Tensor &x, const Call &call) {
  return minimum(maximum(x, call.real("min_val")), call.real("max_val"));
}
Tensor hardtanhGradient(const Tensor &grad, const Tensor &x, const Call &call) {
  Builder &b = *x.builder;
  return b.select(b.binary("stablehlo.or", is("LE", x, call.real("min_val")),
                           is("GE", x, call.real("max_val"))),
                  b.constant(0.0, grad.element), grad);
}
Tensor relu6(const Tensor &x) { return minimum(maximum(x, 0), 6); }
Tensor hardswish(const Tensor &x, const Call &) { return x * relu6(x + 3) / 6; }
Tensor hardswishGradient(const Tensor &grad, const Tensor &x, const Call &) {
  Builder &b = *x.builder;
  const Tensor zero = b.constant(0.0, x.element);
  return b.select(is("LT", x, -3), zero,
                  b.select(is("LE", x, 3), grad * (x / 3 + 0.5), grad));
}
Tensor hardsigmoid(const Tensor &x, const Call &) { return relu6(x + 3) / 6; }
Tensor hardsigmoidGradient(const Tensor &grad, const Tensor &x, const Call &) {
  Builder &b = *x.builder;
  return b.select(b.binary("stablehlo.and", is("GT", x, -3), is("LT", x, 3)),
                  grad / 6, b.constant(0.0, grad.element));
}
Tensor softplus(const Tensor &x, const Call &call) {
  const double beta = call.real("beta");
  return x.builder->select(is("GT", x * beta, call.real("threshold")), x,
                           function("stablehlo.log_plus_one", exp(x * beta)) /
                               beta);
}
Tensor softplusGradient(const Tensor &grad, const Tensor &x, const Call &call) {
  const Tensor z = exp(x * call.real("beta"));
  return x.builder->select(
      is("GT", x * call.real("beta"), call.real("threshold")), grad,
      grad * z / (z + 1));
}
Tensor mish(const Tensor &x, const Call &) {
  return x * tanh(function("stablehlo.log_plus_one", exp(x)));
}
Tensor mishGradient(const Tensor &grad, const Tensor &x, const Call &) {
  const Tensor t = tanh(function("stablehlo.log_plus_one", exp(x)));
  return grad * (t + x * sigmoid(x) * (1 - t * t));
}
Tensor threshold(const Tensor &x, const Call &call) {
  return x.builder->select(is("LE", x, call.real("threshold")),
                           x.builder->constant(call.real("value"), x.element),
                           x);
}
/// `of` but where `x` lies within lambd of 0, which both ends count to.
Tensor outside(const Tensor &of, const Tensor &x, const Call &call) {
  Builder &b = *x.builder;
  return b.select(b.binary("stablehlo.and", is("GE", x, -call.real("lambd")),
                           is("LE", x, call.real("lambd"))),
                  b.constant(0.0, of.element), of);
}
Tensor hardshrink(const Tensor &x, const Call &call) {
  return outside(x, x, call);
}
Tensor softshrink(const Tensor &x, const Call &call) {
  const double lambda = call.real("lambd");
  Builder &b = *x.builder;
  return b.select(
      is("GT", x, lambda), x - lambda,
      b.select(is("LT", x, -lambda), x + lambda, b.constant(0.0, x.element)));
}
Results shrinkGradient(Builder &, const Call &call) {
  return {outside(call.tensor(call.detail), call.tensor("self"), call)};
}

/// The weight of a prelu in the shape of `x`: one, or one of each channel.
Tensor slopes(Builder &b, const Call &call, const Tensor &x) {
  const Tensor weight = b.convert(call.tensor("weight"), x.element);
  if (weight.sizes == x.sizes)
    return weight;
  if (weight.count() == 1)
    return b.broadcast(b.reshape(weight, {}), x.sizes);
  if (x.rank() < 2 || weight.count() != x.sizes[1])
    call.refuse("its weights are not one of each channel", ErrorKind::Invalid);
  return b.place(b.reshape(weight, {weight.count()}), {1}, x.sizes);
}
Results prelu(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given);
  return {b.convert(b.select(is("GT", x, 0), x, x * slopes(b, call, x)),
                    given.element)};
}
/// The gradients of input and weight; before torch 2 that of the weight is
/// summed here, in the weight's shape. The kernel of torch 2 (`detail`) leaves
/// it in the input's.
Results preluGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_output")),
               weight = call.tensor("weight"), isAbove = is("GT", x, 0);
  const Tensor ofInput = b.select(isAbove, grad, grad * slopes(b, call, x));
  Tensor ofWeight = b.select(isAbove, b.constant(0.0, x.element), grad * x);
  if (!call.detail && weight.sizes != x.sizes) {
    Sizes dims = countUp(x.rank());
    if (weight.count() != 1)
      dims.erase(dims.begin() + 1);
    ofWeight = b.reshape(b.sum(ofWeight, dims), weight.sizes);
  }
  return {b.convert(ofInput, given.element),
          b.convert(ofWeight, weight.element)};
}

/// The halves of `self` along `dim`.
std::pair<Tensor, Tensor> halves(Builder &b, const Call &call,
                                 const Tensor &x) {
  if (x.rank() == 0 || x.sizes[size_t(call.dim("dim", x))] % 2)
    call.refuse("its dimension has no halves", ErrorKind::Invalid);
  const int64_t dim = call.dim("dim", x), size = x.sizes[size_t(dim)];
  return {b.slice(x, dim, 0, size / 2), b.slice(x, dim, size / 2, size)};
}
Results glu(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self");
  const auto [value, gate] = halves(b, call, forFunction(b, given));
  return {b.convert(value * sigmoid(gate), given.element)};
}
Results gluGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_output"));
  const auto [value, gate] = halves(b, call, x);
  const Tensor s = sigmoid(gate);
  const Tensor both[] = {grad * s, grad * value * s * (1 - s)};
  return {b.convert(b.concatenate(both, call.dim("dim", x)), given.element)};
}

Tensor logSigmoid(const Tensor &x) {
  const Tensor size = function("stablehlo.abs", x);
  return minimum(x, 0) - function("stablehlo.log_plus_one", exp(-size));
}
Results logSigmoidForward(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), in = forFunction(b, x);
  // The second result is a buffer of the CPU's kernel.
  return {b.convert(logSigmoid(in), x.element),
          b.convert(exp(-function("stablehlo.abs", in)), x.element)};
}
Tensor logSigmoidGradient(const Tensor &grad, const Tensor &x, const Call &) {
  return grad * sigmoid(-x);
}

constexpr Operation operations[] = {
    {"relu(self)",
     [](Builder &b, const Call &call) -> Results {
       const Tensor x = call.tensor("self");
       return {b.binary("stablehlo.maximum", x, b.constant(0.0, x.element))};
     }},
    {"relu6(self)", of<[](const Tensor &x, const Call &) { return relu6(x); }>},
    {"gelu(self, approximate=none)", of<gelu>},
    {"silu(self)", of<silu>},
    {"mish(self)", of<mish>},
    {"elu(self, alpha=1, scale=1, input_scale=1)", of<elu>},
    {"celu(self, alpha=1)", of<celu>},
    {"selu(self)", of<selu>},
    {"leaky_relu(self, negative_slope=0.01)", of<leaky>},
    {"prelu(self, weight)", prelu},
    {"_prelu_kernel(self, weight)", prelu},
    {"threshold(self, threshold, value)", of<threshold>},
    {"hardshrink(self, lambd=0.5)", of<hardshrink>},
    {"softshrink(self, lambd=0.5)", of<softshrink>},
    {"glu(self, dim=-1)", glu},
    {"hardtanh(self, min_val=-1, max_val=1)", of<hardtanh>},
    {"hardswish(self)", of<hardswish>},
    {"hardsigmoid(self)", of<hardsigmoid>},
    {"softplus(self, beta=1, threshold=20)", of<softplus>},
    {"log_sigmoid(self)",
     of<[](const Tensor &x, const Call &) { return logSigmoid(x); }>},
    {"log_sigmoid_forward(self)", logSigmoidForward},
    {"gelu_backward(grad_output, self, approximate=none)",
     gradient<geluGradient>},
    {"silu_backward(grad_output, self)", gradient<siluGradient>},
    {"sigmoid_backward(grad_output, output)", gradient<sigmoidGradient>,
     "output"},
    {"tanh_backward(grad_output, output)", gradient<tanhGradient>, "output"},
    {"mish_backward(grad_output, self)", gradient<mishGradient>},
    {"prelu_backward(grad_output, self, weight)", preluGradient},
    {"_prelu_kernel_backward(grad_output, self, weight)", preluGradient,
     "kernel"},
    {"hardshrink_backward(grad_out, self, lambd)", shrinkGradient, "grad_out"},
    {"softshrink_backward(grad_output, self, lambd)", shrinkGradient,
     "grad_output"},
    {"glu_backward(grad_output, self, dim)", gluGradient},
    {"threshold_backward(grad_output, self, threshold)",
     gradient<thresholdGradient>},
    {"leaky_relu_backward(grad_output, self, negative_slope, "
     "self_is_result)",
     gradient<leakyGradient>},
    {"elu_backward(grad_output, alpha, scale, input_scale, is_result, "
     "self_or_result)",
     gradient<eluGradient>, "self_or_result"},
    {"hardtanh_backward(grad_output, self, min_val, max_val)",
     gradient<hardtanhGradient>},
    {"hardswish_backward(grad_output, self)", gradient<hardswishGradient>},
    {"hardsigmoid_backward(grad_output, self)", gradient<hardsigmoidGradient>},
    {"softplus_backward(grad_output, self, beta, threshold)",
     gradient<softplusGradient>},
    {"log_sigmoid_backward(grad_output, self, buffer)",
     gradient<logSigmoidGradient>},
};

} // namespace

std::span<const Operation> activationOperations() { return operations; }

} // namespace mgpu::pipeline::torch
