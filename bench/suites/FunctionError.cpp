// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/FunctionError.h"

#include "device/host/KernelObject.h"
#include "pipeline/compiler/KernelBuild.h"
#include "support/Random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>

namespace mgpu::bench {

namespace {

template <typename Wide>
struct Function {
  std::string_view operation;
  Wide (*one)(Wide) = nullptr;
  Wide (*two)(Wide, Wide) = nullptr;
};

template <typename Wide>
const Function<Wide> *findFunction(std::string_view operation) {
  using F = Wide (*)(Wide);
  static const Function<Wide> all[] = {
      {"acos", F(std::acos)},
      {"acosh", F(std::acosh)},
      {"asin", F(std::asin)},
      {"asinh", F(std::asinh)},
      {"atan", F(std::atan)},
      {"atan2", nullptr, [](Wide y, Wide x) { return std::atan2(y, x); }},
      {"atanh", F(std::atanh)},
      {"cbrt", F(std::cbrt)},
      {"cos", F(std::cos)},
      {"cosh", F(std::cosh)},
      {"erf", F(std::erf)},
      {"erfc", F(std::erfc)},
      {"exp", F(std::exp)},
      {"exp2", F(std::exp2)},
      {"expm1", F(std::expm1)},
      {"log", F(std::log)},
      {"log10", F(std::log10)},
      {"log1p", F(std::log1p)},
      {"log2", F(std::log2)},
      {"powf", nullptr, [](Wide x, Wide y) { return std::pow(x, y); }},
      {"rsqrt", [](Wide x) -> Wide { return 1 / std::sqrt(x); }},
      {"sin", F(std::sin)},
      {"sinh", F(std::sinh)},
      {"sqrt", F(std::sqrt)},
      {"tan", F(std::tan)},
      {"tanh", F(std::tanh)},
  };
  for (const Function<Wide> &each : all)
    if (each.operation == operation)
      return &each;
  return nullptr;
}

constexpr uint32_t atOnce = 1 << 14, threads = 256;

Result<device::KernelObject> build(std::string_view operation, bool two,
                                   std::string_view type) {
  const std::string buffer = fmt::format("memref<{}x{}>", atOnce, type);
  planner::KernelSpec spec;
  spec.name = operation;
  spec.block = {threads, 1, 1};
  spec.numArguments = 3;
  spec.source = planner::MlirKernel{fmt::format(
      R"(func.func @entry(%x: {0}, %y: {0}, %z: {0}) {{
  %b = gpu.block_id x
  %t = gpu.thread_id x
  %n = arith.constant {1} : index
  %first = arith.muli %b, %n : index
  %i = arith.addi %first, %t : index
  %u = memref.load %x[%i] : {0}
  %v = memref.load %y[%i] : {0}
  %w = math.{2} %u{3} : {4}
  memref.store %w, %z[%i] : {0}
  return
}}
)",
      buffer, threads, operation, two ? ", %v" : "", type)};
  const Dim3 grid{atOnce / threads, 1, 1};
  MGPU_TRY_ASSIGN(auto space, kernels::kernelSpaceOf(
                                  spec, grid, kernels::KernelTarget::Host));
  MGPU_TRY_ASSIGN(auto made,
                  kernels::buildHostKernel(spec, space, space.defaults));
  return device::KernelObject::load(spec.name, made.object);
}

/// Numbers of a type by place: equal steps of `at` from 0 to 1 are equal steps
/// among all that are finite.
template <typename T, typename Bits>
T finiteAt(double at) {
  const Bits most = std::bit_cast<Bits>(std::numeric_limits<T>::max());
  const double place = 2 * at - 1;
  const T size =
      std::bit_cast<T>(std::min(most, Bits(std::abs(place) * double(most))));
  return place < 0 ? -size : size;
}

/// Between `found` and `exact` rounded to T: what is off by half a unit and no
/// more is off by none.
template <typename T, typename Wide>
double ulpsBetween(T found, Wide exact) {
  const Wide most = Wide(std::numeric_limits<T>::max());
  const Wide x = std::clamp(Wide(found), -most, most),
             y = std::clamp(exact, -most, most);
  int exponent;
  std::frexp(T(y), &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Wide unit =
      std::ldexp(Wide(1), exponent - std::numeric_limits<T>::digits);
  // The error of `exact` itself is below the last part.
  return std::max(0.0, std::ceil(double(std::abs(x - y) / unit) - 0.501));
}

template <typename T, typename Bits, typename Wide>
Result<FunctionError> measure(std::string_view operation, uint64_t samples) {
  const Function<Wide> *function = findFunction<Wide>(operation);
  if (!function)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not a function that is known", operation));
  const bool two = function->two != nullptr;
  MGPU_TRY_ASSIGN(device::KernelObject object,
                  build(operation, two, sizeof(T) == 8 ? "f64" : "f32"));
  std::vector<T> x(atOnce), y(atOnce), z(atOnce);
  const uint64_t arguments[] = {std::bit_cast<uint64_t>(x.data()),
                                std::bit_cast<uint64_t>(y.data()),
                                std::bit_cast<uint64_t>(z.data())};
  const uint32_t blocks = atOnce / threads;
  const kernels::HostKernelShape &shape = object.shape();
  const kernels::HostLaunch launch{
      {blocks, 1, 1}, 0, 0, kernels::blocksAlong(shape, 0, blocks), {0, 0, 0},
      {blocks, 1, 1}};
  FunctionError worst;
  Random random(1);
  const uint64_t chunks = std::max<uint64_t>(samples / atOnce, 2);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint32_t k = 0; k < atOnce; ++k) {
      const double at = (double(chunk / 2 * atOnce + k) + 0.5) /
                        (double((chunks + 1) / 2) * atOnce);
      const bool isWide = chunk % 2 == 0;
      // The second of two arguments is drawn: a grid would be coarse.
      const double other = double(random.below(1 << 30)) / double(1 << 30);
      x[k] = isWide ? finiteAt<T, Bits>(at) : T(40 * at - 20);
      y[k] = isWide ? finiteAt<T, Bits>(other) : T(40 * other - 20);
    }
    object.entry()(arguments, &launch);
    for (uint32_t k = 0; k < atOnce; ++k) {
      const Wide exact = two ? function->two(Wide(x[k]), Wide(y[k]))
                             : function->one(Wide(x[k]));
      if (std::isnan(exact) && std::isnan(z[k]))
        continue;
      const double off = std::isnan(exact) || std::isnan(z[k])
                             ? std::numeric_limits<double>::infinity()
                             : ulpsBetween(z[k], exact);
      if (off > worst.ulps)
        worst = {off, double(x[k]), two ? double(y[k]) : 0};
    }
  }
  return worst;
}

} // namespace

Result<FunctionError> measureFunction(std::string_view operation, bool isF64,
                                      uint64_t samples) {
  return isF64 ? measure<double, uint64_t, long double>(operation, samples)
               : measure<float, uint32_t, double>(operation, samples);
}

} // namespace mgpu::bench
