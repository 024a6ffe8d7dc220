// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TimesRun.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

using namespace mlir;

namespace mgpu::planner {

namespace {

/// The values of an affine form, each as often as any other: first,
/// first + step, ...
struct Values {
  int64_t first = 0, step = 1, count = 1;
  int64_t last() const { return first + step * (count - 1); }
};

/// None where the counters do not tile: some values are then more frequent.
std::optional<Values> valuesOf(const AffineForm &form,
                               const AffineEvaluator &affine) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dims; // stride, size
  for (auto [counter, coefficient] : form.terms)
    dims.push_back({std::abs(coefficient), affine.sizeOf(counter)});
  llvm::sort(dims);
  Values values{affine.range(form).first};
  if (!dims.empty())
    values.step = dims.front().first;
  for (auto [stride, size] : dims) {
    if (stride != values.step * values.count)
      return std::nullopt;
    values.count *= size;
  }
  return values;
}

/// Sum of floor((a i + b) / m) over 0 <= i < n, of a, b >= 0: points under a
/// line, counted by columns and by rows in turn as in Euclid's algorithm.
double floorSum(int64_t n, int64_t m, int64_t a, int64_t b) {
  for (double sum = 0;;) {
    sum += double(n) * double(n - 1) / 2 * double(a / m) +
           double(n) * double(b / m);
    const __int128 top = __int128(a % m) * n + b % m;
    if (top < m)
      return sum;
    n = int64_t(top / m);
    b = int64_t(top % m);
    m = std::exchange(a, m) % m;
  }
}

/// Trips of a counted loop, the mean of all that come to it.
double tripsOf(scf::ForOp loop, AffineEvaluator &affine) {
  auto lower = affine.evaluate(loop.getLowerBound());
  auto upper = affine.evaluate(loop.getUpperBound());
  auto step = affine.evaluate(loop.getStep());
  if (!lower || !upper || !step || !step->isConstant() || step->constant <= 0 ||
      loop.getUnsignedCmp())
    return 1;
  AffineForm length = *upper;
  length.add(*lower, -1);
  auto values = valuesOf(length, affine);
  if (!values)
    return 1;
  // Those that run at all; the first of them has a positive length.
  const int64_t skipped =
      values->first > 0
          ? 0
          : std::min(values->count, -values->first / values->step + 1);
  const int64_t running = values->count - skipped;
  if (running == 0)
    return 0;
  return floorSum(running, step->constant, values->step,
                  values->first + skipped * values->step + step->constant - 1) /
         double(values->count);
}

/// Affine forms without their constants, and the values that conditions leave
/// of them.
class Conditions {
public:
  explicit Conditions(AffineEvaluator &affine) : affine(affine) {}

  /// Both sides of `and` hold where it does; of what is no comparison nothing
  /// is known.
  void hold(Value condition) {
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      hold(both.getLhs());
      hold(both.getRhs());
    } else if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
      hold(compare.getPredicate(), compare.getLhs(), compare.getRhs());
    }
  }
  /// Neither side of `or` holds where it does not.
  void fail(Value condition) {
    if (auto either = condition.getDefiningOp<arith::OrIOp>()) {
      fail(either.getLhs());
      fail(either.getRhs());
    } else if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
      hold(arith::invertPredicate(compare.getPredicate()), compare.getLhs(),
           compare.getRhs());
    }
  }

  double share() const {
    double share = 1;
    for (const auto &[terms, range] : ranges) {
      AffineForm form;
      form.terms.assign(terms.begin(), terms.end());
      auto values = valuesOf(form, affine);
      if (!values)
        continue;
      int64_t low = std::max(range.first, values->first),
              high = std::min(range.second, values->last());
      if (low > high)
        return 0;
      // Of first + k step those that lie between.
      int64_t from = llvm::divideCeilSigned(low - values->first, values->step),
              to = llvm::divideFloorSigned(high - values->first, values->step);
      share *=
          double(std::max<int64_t>(to - from + 1, 0)) / double(values->count);
    }
    return share;
  }

private:
  using Predicate = arith::CmpIPredicate;

  void hold(Predicate predicate, Value left, Value right) {
    auto x = affine.evaluate(left), y = affine.evaluate(right);
    if (!x || !y)
      return;
    const bool isUnsigned =
        predicate == Predicate::ult || predicate == Predicate::ule ||
        predicate == Predicate::ugt || predicate == Predicate::uge;
    if (isUnsigned &&
        (affine.range(*x).first < 0 || affine.range(*y).first < 0))
      return;
    AffineForm form = *x; // x - y compared with 0
    form.add(*y, -1);
    constexpr int64_t least = INT64_MIN / 4, most = INT64_MAX / 4;
    int64_t low = least, high = most;
    switch (predicate) {
    case Predicate::eq:
      low = high = 0;
      break;
    case Predicate::slt:
    case Predicate::ult:
      high = -1;
      break;
    case Predicate::sle:
    case Predicate::ule:
      high = 0;
      break;
    case Predicate::sgt:
    case Predicate::ugt:
      low = 1;
      break;
    case Predicate::sge:
    case Predicate::uge:
      low = 0;
      break;
    case Predicate::ne:
      return; // all but one, at most
    }
    low -= form.constant;
    high -= form.constant;
    llvm::sort(form.terms);
    // One sign for i < n and n > i.
    if (!form.terms.empty() && form.terms.front().second < 0) {
      for (auto &[counter, coefficient] : form.terms)
        coefficient = -coefficient;
      std::tie(low, high) = std::pair(-high, -low);
    }
    auto [at, isNew] = ranges.try_emplace(
        {form.terms.begin(), form.terms.end()}, std::pair(low, high));
    if (!isNew)
      at->second = {std::max(at->second.first, low),
                    std::min(at->second.second, high)};
  }

  AffineEvaluator &affine;
  std::map<std::vector<std::pair<uint32_t, int64_t>>,
           std::pair<int64_t, int64_t>>
      ranges;
};

} // namespace

double timesRun(Operation *op, Region &body, AffineEvaluator &affine) {
  double times = 1;
  Conditions conditions(affine);
  for (Region *inner = op->getParentRegion(); inner != &body;
       inner = inner->getParentRegion()) {
    Operation *at = inner->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(at))
      times *= tripsOf(loop, affine);
    else if (auto branch = dyn_cast<scf::IfOp>(at))
      inner == &branch.getThenRegion() ? conditions.hold(branch.getCondition())
                                       : conditions.fail(branch.getCondition());
  }
  return times * conditions.share();
}

} // namespace mgpu::planner
