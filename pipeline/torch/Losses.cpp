// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and their gradients. A reduction is 0 (none), 1 (mean) or 2 (sum).
#include "pipeline/torch/Pointwise.h"

#include <algorithm>

namespace mgpu::pipeline::torch {

namespace {

Tensor reduced(Builder &b, const Call &call, const Tensor &loss) {
  const int64_t how = call.integer("reduction");
  const Sizes all = countUp(loss.rank());
  if (how == 1)
    return b.mean(loss, all);
  if (how == 2)
    return b.sum(loss, all);
  return loss;
}
/// The gradient of the loss of each element.
Tensor spread(Builder &b, const Call &call, const Tensor &grad,
              const Tensor &like) {
  const Tensor each = b.broadcast(grad, like.sizes);
  return call.integer("reduction") == 1
             ? each / double(std::max<int64_t>(like.count(), 1))
             : each;
}

Tensor absolute(Builder &b, const Tensor &x) {
  return b.unary("stablehlo.abs", x);
}
Tensor number(Builder &b, double value, const Tensor &like) {
  return b.constant(value, like.element);
}
Tensor is(Builder &b, const char *direction, const Tensor &x, double y) {
  return b.compare(direction, x, number(b, y, x));
}

Tensor squared(Builder &, const Call &, const Tensor &x, const Tensor &y) {
  return (x - y) * (x - y);
}
Tensor squaredGradient(Builder &, const Call &, const Tensor &x,
                       const Tensor &y) {
  return (x - y) * 2;
}
Tensor distance(Builder &b, const Call &, const Tensor &x, const Tensor &y) {
  return absolute(b, x - y);
}
/// Squared up to a distance, linear from there on: Huber's (detail "huber",
/// `delta`) is `beta` times the smooth one.
double kneeOf(const Call &call) {
  return call.real(call.has("delta") ? "delta" : "beta");
}
Tensor smooth(Builder &b, const Call &call, const Tensor &x, const Tensor &y) {
  const double knee = kneeOf(call), scale = call.has("delta") ? 1 : 1 / knee;
  const Tensor z = absolute(b, x - y);
  if (knee == 0)
    return z;
  return b.select(is(b, "LT", z, knee), z * z * (0.5 * scale),
                  (z - 0.5 * knee) * (knee * scale));
}
Tensor smoothGradient(Builder &b, const Call &call, const Tensor &x,
                      const Tensor &y) {
  const double knee = kneeOf(call), scale = call.has("delta") ? 1 : 1 / knee;
  const Tensor off = x - y;
  const Tensor sign = b.unary("stablehlo.sign", off);
  if (knee == 0)
    return sign;
  return b.select(is(b, "LT", absolute(b, off), knee), off * scale,
                  sign * (knee * scale));
}
/// ln(x), at least -100.
Tensor boundedLog(Builder &b, const Tensor &x) {
  const Tensor log = b.unary("stablehlo.log", x);
  return b.binary("stablehlo.maximum", log, number(b, -100, log));
}
Tensor crossEntropy(Builder &b, const Call &, const Tensor &x,
                    const Tensor &y) {
  return (y - 1) * boundedLog(b, 1 - x) - y * boundedLog(b, x);
}
Tensor crossEntropyGradient(Builder &b, const Call &, const Tensor &x,
                            const Tensor &y) {
  const Tensor width = (1 - x) * x;
  return (x - y) /
         b.binary("stablehlo.maximum", width, number(b, 1e-12, width));
}
Tensor logitsEntropy(Builder &b, const Call &call, const Tensor &x,
                     const Tensor &y) {
  const Tensor below =
      b.unary("stablehlo.log_plus_one",
              b.unary("stablehlo.exponential", -absolute(b, x))) +
      b.binary("stablehlo.maximum", -x, number(b, 0, x));
  if (!call.isNone("pos_weight")) {
    const Tensor weight = (call.tensor("pos_weight") - 1) * y + 1;
    return (1 - y) * x + weight * below;
  }
  return (1 - y) * x + below;
}

using Each = Tensor (*)(Builder &, const Call &, const Tensor &,
                        const Tensor &);
/// A loss of pairs of elements.
template <Each each>
Results loss(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given);
  Tensor all = each(b, call, x, b.convert(call.tensor("target"), x.element));
  if (call.has("weight") && !call.isNone("weight"))
    all = all * b.convert(call.tensor("weight"), x.element);
  return {b.convert(reduced(b, call, all), given.element)};
}
template <Each each>
Results lossGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given);
  Tensor all = each(b, call, x, b.convert(call.tensor("target"), x.element));
  if (call.has("weight") && !call.isNone("weight"))
    all = all * b.convert(call.tensor("weight"), x.element);
  const Tensor grad = b.convert(call.tensor("grad_output"), x.element);
  return {b.convert(all * spread(b, call, grad, all), given.element)};
}

/// The cost of each element's class: [N, C, space...] and [N, space...]. The
/// weights of ignored elements are 0.
struct Classes {
  Tensor index, weight; ///< both of the target's shape
  int64_t dim = 0;      ///< of the classes
};
Classes classesOf(Builder &b, const Call &call, const Tensor &x) {
  const Tensor target = b.convert(call.tensor("target"), ElementType::I64);
  Classes classes;
  classes.dim = x.rank() == 1 ? 0 : 1;
  if (x.rank() < 1 || without(x.sizes, {classes.dim}, false) != target.sizes)
    call.refuse("its target does not fit its input", ErrorKind::Invalid);
  const Tensor counts = b.compare(
      "NE", target, b.constant(call.scalar("ignore_index"), ElementType::I64));
  classes.index = b.select(counts, target, b.constant(0.0, ElementType::I64));
  const auto weights = call.maybeTensor("weight");
  const Tensor each =
      weights ? b.gather(forFunction(b, *weights), {0}, {classes.index}, 0)
              : b.constant(1.0, x.element, target.sizes);
  classes.weight = b.select(counts, each, b.constant(0.0, x.element));
  return classes;
}
/// The element of each class: x where the class is the target's, summed.
Tensor picked(Builder &b, const Tensor &x, const Classes &classes) {
  std::vector<Tensor> where;
  Sizes dims;
  int64_t next = 0;
  for (int64_t k = 0; k < x.rank(); ++k) {
    dims.push_back(k);
    where.push_back(k == classes.dim
                        ? classes.index
                        : b.iota(next, ElementType::I64, classes.index.sizes));
    next += k != classes.dim;
  }
  return b.gather(x, dims, where, 0);
}

Results nll(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given);
  const Classes classes = classesOf(b, call, x);
  const Tensor losses = -(picked(b, x, classes) * classes.weight);
  const Sizes all = countUp(losses.rank());
  const Tensor weight = b.sum(classes.weight, all);
  const int64_t how = call.integer("reduction");
  const Tensor result = how == 0   ? losses
                        : how == 2 ? b.sum(losses, all)
                                   : b.sum(losses, all) / weight;
  return {b.convert(result, given.element), b.convert(weight, given.element)};
}

Results nllGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given),
               grad = forFunction(b, call.tensor("grad_output"));
  const Classes classes = classesOf(b, call, x);
  Tensor each = b.broadcast(grad, classes.weight.sizes) * classes.weight;
  if (call.integer("reduction") == 1)
    each = each / forFunction(b, call.tensor("total_weight"));
  const Tensor isIt = b.compare("EQ", b.unsqueeze(classes.index, {classes.dim}),
                                b.iota(classes.dim, ElementType::I64, x.sizes));
  return {b.convert(b.select(isIt, b.unsqueeze(-each, {classes.dim}),
                             b.constant(0.0, x.element)),
                    given.element)};
}

/// The loss of logits: log_softmax and then nll, of indices or of shares of
/// classes.
Results crossEntropyLoss(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given),
               target = call.tensor("target");
  const int64_t dim = x.rank() == 1 ? 0 : 1;
  if (x.rank() < 1)
    call.refuse("its input has no classes", ErrorKind::Invalid);
  const double smoothing = call.real("label_smoothing");
  const Tensor off = x - b.largest(x, {dim}, true),
               logs = off - b.unary("stablehlo.log",
                                    b.sum(b.unary("stablehlo.exponential", off),
                                          {dim}, true));
  const int64_t how = call.integer("reduction");
  if (target.sizes == x.sizes && isFloat(target.element)) {
    if (smoothing != 0 || !call.isNone("weight"))
      call.refuse("shares of classes with weights or smoothing are not read");
    const Tensor losses = -b.sum(logs * b.convert(target, x.element), {dim});
    const Sizes all = countUp(losses.rank());
    return {b.convert(how == 0 ? losses
                      : how == 2
                          ? b.sum(losses, all)
                          : b.sum(losses, all) /
                                double(std::max<int64_t>(losses.count(), 1)),
                      given.element)};
  }
  const Classes classes = classesOf(b, call, x);
  Tensor losses = -(picked(b, logs, classes) * classes.weight);
  if (smoothing != 0) {
    if (!call.isNone("weight"))
      call.refuse("smoothing with weights is not read");
    const double classCount = double(x.sizes[size_t(dim)]);
    losses = losses * (1 - smoothing) -
             b.sum(logs, {dim}) * classes.weight * (smoothing / classCount);
  }
  const Sizes all = countUp(losses.rank());
  return {b.convert(how == 0 ? losses
                    : how == 2
                        ? b.sum(losses, all)
                        : b.sum(losses, all) / b.sum(classes.weight, all),
                    given.element)};
}

#define MGPU_NLL "(self, target, weight, reduction, ignore_index)"
#define MGPU_NLL_GRADIENT                                                      \
  "(grad_output, self, target, weight, reduction, ignore_index, total_weight)"

constexpr Operation operations[] = {
    {"mse_loss(self, target, reduction=1)", loss<squared>},
    {"l1_loss(self, target, reduction=1)", loss<distance>},
    {"smooth_l1_loss(self, target, reduction=1, beta=1.0)", loss<smooth>},
    {"huber_loss(self, target, reduction=1, delta=1.0)", loss<smooth>},
    {"binary_cross_entropy(self, target, weight=None, reduction=1)",
     loss<crossEntropy>},
    {"binary_cross_entropy_with_logits(self, target, weight=None, "
     "pos_weight=None, reduction=1)",
     loss<logitsEntropy>},
    {"mse_loss_backward(grad_output, self, target, reduction)",
     lossGradient<squaredGradient>},
    {"smooth_l1_loss_backward(grad_output, self, target, reduction, beta)",
     lossGradient<smoothGradient>},
    {"huber_loss_backward(grad_output, self, target, reduction, delta)",
     lossGradient<smoothGradient>},
    {"binary_cross_entropy_backward(grad_output, self, target, weight=None, "
     "reduction=1)",
     lossGradient<crossEntropyGradient>},
    {"nll_loss_forward" MGPU_NLL, nll},
    {"nll_loss2d_forward" MGPU_NLL, nll},
    {"nll_loss_nd(self, target, weight=None, reduction=1, ignore_index=-100)",
     nll},
    {"nll_loss(self, target, weight=None, reduction=1, ignore_index=-100)",
     nll},
    {"nll_loss_backward" MGPU_NLL_GRADIENT, nllGradient},
    {"nll_loss2d_backward" MGPU_NLL_GRADIENT, nllGradient},
    {"cross_entropy_loss(self, target, weight=None, reduction=1, "
     "ignore_index=-100, label_smoothing=0.0)",
     crossEntropyLoss},
};

} // namespace

std::span<const Operation> lossOperations() { return operations; }

} // namespace mgpu::pipeline::torch
