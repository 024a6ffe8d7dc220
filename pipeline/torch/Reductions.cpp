// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums, extremes, statistics, scans, order and softmax.
#include "pipeline/torch/Pointwise.h"

#include <cmath>

namespace mgpu::pipeline::torch {

namespace {

bool keeps(const Call &call) {
  return call.has("keepdim") && call.flag("keepdim");
}
Sizes dimsOf(const Call &call, const Tensor &x) {
  return call.has("dim") ? call.dims("dim", x) : call.dims("dims", x);
}
/// Sums of whole numbers and truth values are of 64 bits.
ElementType sumType(const Call &call, const Tensor &x) {
  return call.element("dtype",
                      isFloat(x.element) ? x.element : ElementType::I64);
}
Sizes all(const Tensor &x) { return countUp(x.rank()); }

Results sum(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.sum(b.convert(x, sumType(call, x)),
                call.has("dim") ? dimsOf(call, x) : all(x), keeps(call))};
}
Results mean(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.mean(b.convert(x, call.element("dtype", x.element)),
                 call.has("dim") ? dimsOf(call, x) : all(x), keeps(call))};
}
Results product(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const ElementType result = sumType(call, x);
  return {b.convert(b.reduce("stablehlo.multiply", b.convert(x, wide(result)),
                             call.has("dim") ? dimsOf(call, x) : all(x),
                             keeps(call), Scalar::of(int64_t(1))),
                    result)};
}
Tensor smallest(Builder &b, const Tensor &x, const Sizes &dims, bool keeps) {
  return b.reduce("stablehlo.minimum", x, dims, keeps, mostOf(x.element));
}
Results extreme(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const Sizes dims = call.has("dim") ? dimsOf(call, x) : all(x);
  if (x.count() == 0)
    call.refuse("it has no elements to compare", ErrorKind::Invalid);
  return {call.detail ? smallest(b, x, dims, keeps(call))
                      : b.largest(x, dims, keeps(call))};
}
/// A norm of vectors: the root of the sum of powers, or what it comes to for 0,
/// 1, 2 and the infinities.
Results norm(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self");
  const ElementType result =
      call.has("dtype") ? call.element("dtype", given.element) : given.element;
  if (!isFloat(result))
    call.refuse("it is of whole numbers", ErrorKind::Invalid);
  const Tensor x = forFunction(b, b.convert(given, result)),
               size = b.unary("stablehlo.abs", x);
  const double p = call.isNone(call.detail) ? 2 : call.real(call.detail);
  const Sizes dims = call.has("dim") ? dimsOf(call, x) : all(x);
  const auto total = [&](const Tensor &of) {
    return b.sum(of, dims, keeps(call));
  };
  Tensor y;
  if (std::isinf(p) && x.count() == 0)
    call.refuse("it has no elements to compare", ErrorKind::Invalid);
  if (std::isinf(p))
    y = p > 0 ? b.largest(size, dims, keeps(call))
              : smallest(b, size, dims, keeps(call));
  else if (p == 0)
    y = total(
        b.convert(b.compare("NE", x, b.constant(0.0, x.element)), x.element));
  else if (p == 1)
    y = total(size);
  else if (p == 2)
    y = b.unary("stablehlo.sqrt", total(x * x));
  else {
    const auto power = [&](const Tensor &of, double exponent) {
      return b.binary("stablehlo.power", of, b.constant(exponent, of.element));
    };
    y = power(total(power(size, p)), 1 / p);
  }
  return {b.convert(y, result)};
}
/// any and all: or and and of truth values.
Results truth(Builder &b, const Call &call) {
  const Tensor x = b.convert(call.tensor("self"), ElementType::I1);
  return {b.reduce(
      call.detail, x, call.has("dim") ? dimsOf(call, x) : all(x), keeps(call),
      Scalar::of(int64_t(std::string_view(call.detail) == "stablehlo.and")))};
}

/// Whether a comes before b: the larger (or smaller), of equal ones the one of
/// the lower index; NaN is before all.
Tensor isBefore(Builder &b, const char *direction, const Tensor &x,
                const Tensor &y) {
  if (!isFloat(x.element))
    return b.compare(direction, x, y);
  const Tensor isNan = b.compare("NE", x, x), other = b.compare("EQ", y, y);
  return b.binary("stablehlo.or", b.compare(direction, x, y),
                  b.binary("stablehlo.and", isNan, other));
}
/// The extreme along a dimension, and where it is.
std::vector<Tensor> indexed(Builder &b, const Tensor &x, int64_t dim,
                            bool isLargest, bool keepsDim) {
  const Tensor at = b.iota(dim, ElementType::I64, x.sizes);
  const char *direction = isLargest ? "GT" : "LT";
  const std::string choose = b.region(
      {x.element, ElementType::I64, x.element, ElementType::I64},
      [&](std::vector<Tensor> v) -> std::vector<Tensor> {
        const Tensor first = isBefore(b, direction, v[0], v[2]),
                     second = isBefore(b, direction, v[2], v[0]),
                     isTie = b.unary("stablehlo.not",
                                     b.binary("stablehlo.or", first, second)),
                     takes = b.binary("stablehlo.or", first,
                                      b.binary("stablehlo.and", isTie,
                                               b.compare("LT", v[1], v[3])));
        return {b.select(takes, v[0], v[2]), b.select(takes, v[1], v[3])};
      });
  const Sizes sizes = without(x.sizes, {dim}, false);
  const Tensor operands[] = {
      x, at,
      b.constant(isLargest ? leastOf(x.element) : mostOf(x.element), x.element),
      b.constant(mostOf(ElementType::I64), ElementType::I64)};
  std::vector<Tensor> results =
      b.emitSeveral("stablehlo.reduce", operands,
                    {{x.element, sizes}, {ElementType::I64, sizes}},
                    "dimensions = " + mlirArray({dim}), choose);
  if (keepsDim)
    for (Tensor &each : results)
      each = b.reshape(each, without(x.sizes, {dim}, true));
  return results;
}
Results extremeAt(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() == 0)
    return {x, b.constant(0.0, ElementType::I64)};
  return indexed(b, x, call.dim("dim", x), !call.detail, keeps(call));
}
Results argument(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() == 0)
    return {b.constant(0.0, ElementType::I64)};
  if (!call.isNone("dim"))
    return {indexed(b, x, call.dim("dim", x), !call.detail, keeps(call))[1]};
  const Tensor found =
      indexed(b, b.reshape(x, {x.count()}), 0, !call.detail, false)[1];
  return {keeps(call) ? b.reshape(found, Sizes(x.sizes.size(), 1)) : found};
}

/// The variance in two passes, over the count less `correction`.
Results variance(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self"), x = forFunction(b, given);
  double correction = 1;
  if (call.has("unbiased"))
    correction = call.flag("unbiased");
  else if (!call.isNone("correction"))
    correction = call.real("correction");
  const Sizes dims = call.has("dim") ? dimsOf(call, x) : all(x);
  const Tensor centre = b.mean(x, dims, true);
  const Tensor off = x - centre;
  const Tensor total = b.sum(off * off, dims, keeps(call));
  const double count =
      double(x.count()) / double(std::max<int64_t>(total.count(), 1));
  const std::string_view what = call.detail;
  Tensor result = total / std::max(count - correction, 0.0);
  if (what == "std")
    result = b.unary("stablehlo.sqrt", result);
  result = b.convert(result, given.element);
  if (what != "var_mean")
    return {result};
  return {result,
          b.convert(b.reshape(centre, without(x.sizes, dims, keeps(call))),
                    given.element)};
}

/// e^x over the sum of them, in steps that do not overflow.
Tensor softmaxOf(Builder &b, const Tensor &x, int64_t dim, bool isLog) {
  if (x.rank() == 0)
    return b.constant(isLog ? 0.0 : 1.0, x.element);
  const Tensor off = x - b.largest(x, {dim}, true),
               e = b.unary("stablehlo.exponential", off),
               total = b.sum(e, {dim}, true);
  return isLog ? off - b.unary("stablehlo.log", total) : e / total;
}
Results softmax(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  const ElementType result =
      call.has("half_to_float")
          ? (call.flag("half_to_float") ? ElementType::F32 : x.element)
          : call.element("dtype", x.element);
  return {b.convert(
      softmaxOf(b, b.convert(x, wide(result)), call.dim("dim", x), call.detail),
      result)};
}
Results softmaxGradient(Builder &b, const Call &call) {
  const Tensor given = call.tensor("grad_output"), grad = forFunction(b, given),
               y = forFunction(b, call.tensor("output"));
  const ElementType result = call.element("input_dtype", given.element);
  if (grad.rank() == 0)
    return {b.constant(0.0, result)};
  const Sizes dims{call.dim("dim", grad)};
  if (call.detail)
    return {b.convert(grad - b.unary("stablehlo.exponential", y) *
                                 b.sum(grad, dims, true),
                      result)};
  return {b.convert((grad - b.sum(grad * y, dims, true)) * y, result)};
}
Results logSumExp(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self"), in = forFunction(b, x);
  const Sizes dims = dimsOf(call, x);
  const Tensor most = b.largest(in, dims, true),
               safe = b.select(b.compare("EQ", b.unary("stablehlo.abs", most),
                                         b.constant(INFINITY, in.element)),
                               b.constant(0.0, in.element), most);
  const Tensor total =
      b.sum(b.unary("stablehlo.exponential", in - safe), dims, true);
  return {b.convert(b.reshape(b.unary("stablehlo.log", total) + safe,
                              without(x.sizes, dims, keeps(call))),
                    functionResult(x.element))};
}

/// Each element with all before it, in steps of 1, 2, 4, ...
Results scan(Builder &b, const Call &call) {
  const Tensor given = call.tensor("self");
  const ElementType result = sumType(call, given);
  Tensor x = b.convert(given, wide(result));
  if (x.rank() == 0)
    return {b.convert(x, result)};
  const int64_t dim = call.dim("dim", x), size = x.sizes[size_t(dim)];
  const bool isSum = std::string_view(call.detail) == "stablehlo.add";
  for (int64_t step = 1; step < size; step *= 2) {
    Sizes low(x.sizes.size(), 0), high = low;
    low[size_t(dim)] = step;
    high[size_t(dim)] = -step;
    x = b.binary(call.detail, x,
                 b.pad(x, Scalar::of(int64_t(!isSum)), low, high));
  }
  return {b.convert(x, result)};
}

/// Values and indices in order along a dimension; equal ones keep theirs.
std::vector<Tensor> sorted(Builder &b, const Tensor &x, int64_t dim,
                           bool isDescending) {
  const std::string less = b.region(
      {x.element, x.element, ElementType::I64, ElementType::I64},
      [&](std::vector<Tensor> v) -> std::vector<Tensor> {
        if (!isFloat(x.element))
          return {b.compare(isDescending ? "GT" : "LT", v[0], v[1])};
        // NaN is the largest.
        const Tensor &low = isDescending ? v[1] : v[0],
                     &high = isDescending ? v[0] : v[1];
        return {b.binary("stablehlo.or", b.compare("LT", low, high),
                         b.binary("stablehlo.and", b.compare("NE", high, high),
                                  b.compare("EQ", low, low)))};
      });
  const Tensor operands[] = {x, b.iota(dim, ElementType::I64, x.sizes)};
  return b.emitSeveral(
      "stablehlo.sort", operands,
      {{x.element, x.sizes}, {ElementType::I64, x.sizes}},
      "dimension = " + std::to_string(dim) + " : i64, is_stable = true", less);
}
Results sortOf(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() == 0)
    return {x, b.constant(0.0, ElementType::I64)};
  std::vector<Tensor> both =
      sorted(b, x, call.dim("dim", x), call.flag("descending"));
  return call.detail ? Results{both[1]} : both;
}
Results topK(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  if (x.rank() == 0)
    return {x, b.constant(0.0, ElementType::I64)};
  const int64_t dim = call.dim("dim", x), k = call.integer("k");
  if (k < 0 || k > x.sizes[size_t(dim)])
    call.refuse("it asks for more elements than there are", ErrorKind::Invalid);
  std::vector<Tensor> both = sorted(b, x, dim, call.flag("largest"));
  for (Tensor &each : both)
    each = b.slice(each, dim, 0, k);
  return both;
}

constexpr Operation operations[] = {
    {"sum(self, dtype=None)", sum},
    {"sum.dim_IntList(self, dim, keepdim=False, dtype=None)", sum},
    {"mean(self, dtype=None)", mean},
    {"mean.dim(self, dim, keepdim=False, dtype=None)", mean},
    {"prod(self, dtype=None)", product},
    {"prod.dim_int(self, dim, keepdim=False, dtype=None)", product},
    {"amax(self, dim=[], keepdim=False)", extreme},
    {"amin(self, dim=[], keepdim=False)", extreme, "least"},
    {"max(self)", extreme},
    {"min(self)", extreme, "least"},
    {"max.dim(self, dim, keepdim=False)", extremeAt},
    {"min.dim(self, dim, keepdim=False)", extremeAt, "least"},
    {"argmax(self, dim=None, keepdim=False)", argument},
    {"argmin(self, dim=None, keepdim=False)", argument, "least"},
    {"norm.Scalar(self, p=2)", norm, "p"},
    {"norm.ScalarOpt_dim(self, p, dim, keepdim=False)", norm, "p"},
    {"linalg_vector_norm(self, ord=2, dim=None, keepdim=False, dtype=None)",
     norm, "ord"},
    {"any(self)", truth, "stablehlo.or"},
    {"any.dim(self, dim, keepdim=False)", truth, "stablehlo.or"},
    {"any.dims(self, dim=None, keepdim=False)", truth, "stablehlo.or"},
    {"all(self)", truth, "stablehlo.and"},
    {"all.dim(self, dim, keepdim=False)", truth, "stablehlo.and"},
    {"all.dims(self, dim=None, keepdim=False)", truth, "stablehlo.and"},
    {"var(self, unbiased=True)", variance, "var"},
    {"var.dim(self, dim, unbiased=True, keepdim=False)", variance, "var"},
    {"var.correction(self, dim=None, correction=None, keepdim=False)", variance,
     "var"},
    {"std(self, unbiased=True)", variance, "std"},
    {"std.dim(self, dim, unbiased=True, keepdim=False)", variance, "std"},
    {"std.correction(self, dim=None, correction=None, keepdim=False)", variance,
     "std"},
    {"var_mean.dim(self, dim, unbiased=True, keepdim=False)", variance,
     "var_mean"},
    {"var_mean.correction(self, dim=None, correction=None, keepdim=False)",
     variance, "var_mean"},
    {"_softmax(self, dim, half_to_float)", softmax},
    {"_log_softmax(self, dim, half_to_float)", softmax, "log"},
    {"softmax.int(self, dim, dtype=None)", softmax},
    {"log_softmax.int(self, dim, dtype=None)", softmax, "log"},
    {"_softmax_backward_data(grad_output, output, dim, input_dtype)",
     softmaxGradient},
    {"_log_softmax_backward_data(grad_output, output, dim, input_dtype)",
     softmaxGradient, "log"},
    {"logsumexp(self, dim, keepdim=False)", logSumExp},
    {"cumsum(self, dim, dtype=None)", scan, "stablehlo.add"},
    {"cumprod(self, dim, dtype=None)", scan, "stablehlo.multiply"},
    {"sort(self, dim=-1, descending=False)", sortOf},
    {"sort.stable(self, stable, dim=-1, descending=False)", sortOf},
    {"argsort(self, dim=-1, descending=False)", sortOf, "indices"},
    {"topk(self, k, dim=-1, largest=True, sorted=True)", topK},
};

} // namespace

std::span<const Operation> reductionOperations() { return operations; }

} // namespace mgpu::pipeline::torch
