// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/Surrogate.h"

#include "support/Random.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mgpu;
using namespace mgpu::tuner;

namespace {

ConfigSpace makeMixedSpace() {
  return *ConfigSpace::generate({{"a", {1, 2, 4, 8, 16, 32}, {}},
                                 {"b", {0, 1, 2, 3, 4}, {}},
                                 {"c", {0, 1, 2}, {"x", "y", "z"}},
                                 {"fixed", {7}, {}}},
                                {});
}

/// Solves A x = b by elimination; nothing of the class under test.
std::vector<double> solve(std::vector<std::vector<double>> a,
                          std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t r = k; r < n; ++r)
      if (std::abs(a[r][k]) > std::abs(a[pivot][k]))
        pivot = r;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t r = k + 1; r < n; ++r) {
      double factor = a[r][k] / a[k][k];
      for (size_t c = k; c < n; ++c)
        a[r][c] -= factor * a[k][c];
      b[r] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t c = k + 1; c < n; ++c)
      b[k] -= a[k][c] * b[c];
    b[k] /= a[k][k];
  }
  return b;
}

/// The kernel written out anew: Matern 3/2 with all scales 1.
double alike(const ConfigSpace &space, ConfigId p, ConfigId q) {
  double a = std::log2(space.value(p, 0) / space.value(q, 0)) / 5;
  double b = (space.value(p, 1) - space.value(q, 1)) / 4;
  double c = space.value(p, 2) != space.value(q, 2);
  double distance = std::sqrt(3 * (a * a + b * b + c * c));
  return (1 + distance) * std::exp(-distance);
}

TEST(GaussianProcess, PosteriorIsThatOfTheTextbook) {
  ConfigSpace space = makeMixedSpace();
  constexpr double noise = 1e-2;
  Random random(4);
  std::vector<ConfigId> points;
  std::vector<float> targets;
  for (int k = 0; k < 12; ++k) {
    ConfigId id = ConfigId(k * 7 % space.size());
    points.push_back(id);
    targets.push_back(float(random.uniform() * 2 - 1));
  }
  // Half of the points come later, one by one, as observations of candidates.
  GaussianProcess model(space, float(noise));
  model.condition(std::span(points).first(6), std::span(targets).first(6));
  for (ConfigId id = 0; id < space.size(); ++id)
    if (std::find(points.begin(), points.begin() + 6, id) == points.begin() + 6)
      model.addCandidate(id);
  for (int k = 6; k < 12; ++k)
    for (size_t c = 0; c < model.numCandidates(); ++c)
      if (model.candidate(c) == points[k]) {
        model.observe(c, targets[k]);
        break;
      }
  ASSERT_EQ(model.numObservations(), 12u);
  ASSERT_EQ(model.numCandidates(), space.size() - 12);

  std::vector<std::vector<double>> matrix(12, std::vector<double>(12));
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 12; ++j)
      matrix[i][j] = alike(space, points[i], points[j]) + (i == j ? noise : 0);
  std::vector<double> weights =
      solve(matrix, std::vector<double>(targets.begin(), targets.end()));
  for (size_t c = 0; c < model.numCandidates(); ++c) {
    std::vector<double> k;
    for (ConfigId point : points)
      k.push_back(alike(space, point, model.candidate(c)));
    std::vector<double> solved = solve(matrix, k);
    double mean = 0, variance = 1;
    for (int i = 0; i < 12; ++i) {
      mean += k[i] * weights[i];
      variance -= k[i] * solved[i];
    }
    EXPECT_NEAR(model.mean(c), mean, 1e-4);
    EXPECT_NEAR(model.deviation(c), std::sqrt(variance), 1e-3);
  }
}

TEST(GaussianProcess, LearnsWhichParameterMatters) {
  ConfigSpace space = makeMixedSpace();
  std::vector<ConfigId> points;
  std::vector<float> targets;
  for (ConfigId id = 0; id < space.size(); id += 2) {
    points.push_back(id);
    targets.push_back(float(std::sin(space.value(id, 1) * 1.5)));
  }
  auto meanError = [&](GaussianProcess &model) {
    model.condition(points, targets);
    double error = 0;
    for (ConfigId id = 1; id < space.size(); id += 2)
      model.addCandidate(id);
    for (size_t c = 0; c < model.numCandidates(); ++c)
      error += std::abs(model.mean(c) -
                        std::sin(space.value(model.candidate(c), 1) * 1.5));
    return error / double(model.numCandidates());
  };
  GaussianProcess plain(space, 1e-4f), fitted(space, 1e-4f);
  fitted.fitScales(points, targets, 200, 1);
  EXPECT_LT(meanError(fitted), meanError(plain) / 2);
}

} // namespace
