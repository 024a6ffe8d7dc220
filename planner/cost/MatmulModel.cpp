// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/MatmulModel.h"

#include "planner/cost/Tables.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

// The roofline that is corrected, not a claim: the fit absorbs both.
static constexpr double kernelStartUs = 4;
static constexpr double reachableShare = 0.8;
static constexpr double ridge = 1e-3;
static constexpr int degree = 3;

Product productOf(const MatmulRow &row) {
  const ElementType type = row.isBf16 ? ElementType::BF16 : ElementType::F32;
  return {row.m, row.n, row.k, row.batch, type, type};
}

/// Each operand and the result once.
static double bytesOf(const Product &product) {
  return product.factorBytes() * product.batch *
         (product.m * product.k + product.k * product.n +
          product.m * product.n);
}

double rooflineUs(const Product &product, const MatmulRates &rates) {
  return std::max(product.flops() / rates.flopsPerUs,
                  bytesOf(product) / rates.bytesPerUs);
}

static double correctedUs(const Product &product, const MatmulRates &rates) {
  return kernelStartUs +
         std::max(product.flops() / rates.flopsPerUs / reachableShare,
                  bytesOf(product) / rates.bytesPerUs);
}

/// How much longer the tiles take than if the last wave were full, as a
/// logarithm.
static double waveLoss(const Product &product, const MatmulRates &rates,
                       double tileM, double tileN) {
  double tiles = product.batch * std::ceil(product.m / tileM) *
                 std::ceil(product.n / tileN);
  return std::log(std::ceil(tiles / rates.smCount) * rates.smCount / tiles);
}

static std::vector<double> features(const Product &product,
                                    const MatmulRates &rates) {
  auto scaled = [](double value, double low, double high, double middle,
                   double half) {
    return (std::log2(std::clamp(value, low, high)) - middle) / half;
  };
  double x[4] = {
      scaled(product.batch, 1, 4, 1, 1), scaled(product.m, 256, 4096, 10, 2),
      scaled(product.n, 256, 4096, 10, 2), scaled(product.k, 256, 4096, 10, 2)};
  std::vector<double> out;
  for (int a = 0; a <= degree; ++a)
    for (int b = 0; a + b <= degree; ++b)
      for (int c = 0; a + b + c <= degree; ++c)
        for (int d = 0; a + b + c + d <= degree; ++d)
          out.push_back(std::pow(x[0], a) * std::pow(x[1], b) *
                        std::pow(x[2], c) * std::pow(x[3], d));
  // Two tile shapes in common use; at most a wave's loss counts as such.
  for (double tileN : {256.0, 128.0}) {
    double loss = waveLoss(product, rates, 128, tileN);
    out.push_back(loss);
    out.push_back(std::min(loss, 1.0));
    out.push_back(loss * x[3]);
  }
  return out;
}

MatmulModel MatmulModel::fit(std::span<const MatmulRow> rows,
                             const MatmulRates &rates) {
  std::vector<double> matrix, values;
  size_t width = 0;
  for (const MatmulRow &row : rows) {
    const Product product = productOf(row);
    std::vector<double> x = features(product, rates);
    width = x.size();
    matrix.insert(matrix.end(), x.begin(), x.end());
    values.push_back(std::log(row.us / correctedUs(product, rates)));
  }
  return MatmulModel(ridgeFit(matrix, width, values, ridge));
}

double MatmulModel::us(const Product &product, const MatmulRates &rates) const {
  std::vector<double> x = features(product, rates);
  double sum = 0;
  for (size_t i = 0; i < x.size() && i < weights.size(); ++i)
    sum += weights[i] * x[i];
  return correctedUs(product, rates) * std::exp(sum);
}

const MatmulModel *MatmulModel::shipped(uint32_t architecture, bool isBf16) {
  struct Entry {
    uint32_t architecture;
    bool isBf16;
    MatmulModel model;
  };
  static const std::vector<Entry> entries = {
#define MGPU_MATMUL(ARCHITECTURE, IS_BF16, ...)                                \
  {ARCHITECTURE, IS_BF16, MatmulModel(std::vector<double>{__VA_ARGS__})},
#define MGPU_COLLECTIVE(...)
#include "planner/cost/Fitted.inc"
#undef MGPU_MATMUL
#undef MGPU_COLLECTIVE
  };
  for (const Entry &entry : entries)
    if (entry.architecture == architecture && entry.isBf16 == isBf16)
      return &entry.model;
  return nullptr;
}

} // namespace mgpu::planner
