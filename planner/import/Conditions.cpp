// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/Conditions.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>

using namespace mlir;

namespace mgpu::planner {

Line lineOf(const AffineForm &form) {
  Line line{form.terms, 0};
  llvm::sort(line.terms);
  for (auto [counter, coefficient] : line.terms)
    line.factor = std::gcd(line.factor, coefficient);
  if (line.terms.empty())
    line.factor = 1;
  else if (line.terms.front().second < 0)
    line.factor = -line.factor;
  for (auto &[counter, coefficient] : line.terms)
    coefficient /= line.factor;
  return line;
}

LineValues LineValues::within(LineRange range) const {
  const int64_t low = std::max(range.first, first),
                high = std::min(range.last, last());
  if (low > high)
    return {first, step, 0};
  const int64_t from = llvm::divideCeilSigned(low - first, step),
                to = llvm::divideFloorSigned(high - first, step);
  return {first + from * step, step, std::max<int64_t>(to - from + 1, 0)};
}

std::optional<LineValues> valuesOf(const Terms &terms,
                                   const AffineEvaluator &affine) {
  const AffineForm form{0, terms};
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dims; // stride, size
  for (auto [counter, coefficient] : terms)
    dims.push_back({std::abs(coefficient), affine.sizeOf(counter)});
  llvm::sort(dims);
  LineValues values{affine.range(form).first};
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
static double floorSum(int64_t n, int64_t m, int64_t a, int64_t b) {
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

/// Both sides of `and` hold where it does, neither of `or` where it does not.
void Conditions::require(Value condition, bool holds) {
  Operation *op = condition.getDefiningOp();
  if (holds ? isa_and_nonnull<arith::AndIOp>(op)
            : isa_and_nonnull<arith::OrIOp>(op)) {
    for (Value side : op->getOperands())
      require(side, holds);
  } else if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    const arith::CmpIPredicate predicate = compare.getPredicate();
    hold(holds ? predicate : arith::invertPredicate(predicate),
         compare.getLhs(), compare.getRhs());
  } else {
    isNever |= holds ? matchPattern(condition, m_Zero())
                     : matchPattern(condition, m_One());
    // A constant that holds says nothing.
    whole &= isNever || (holds ? matchPattern(condition, m_One())
                               : matchPattern(condition, m_Zero()));
  }
}

void Conditions::requireAround(Region &region, Region &body) {
  for (Region *inner = &region; inner != &body;
       inner = inner->getParentRegion()) {
    Operation *at = inner->getParentOp();
    if (auto branch = dyn_cast<scf::IfOp>(at))
      require(branch.getCondition(), inner == &branch.getThenRegion());
    else if (auto loop = dyn_cast<scf::ForOp>(at))
      whole &= affine.evaluate(loop.getInductionVar()).has_value();
    else
      whole = false;
  }
  // A second block means unstructured control flow.
  whole &= body.hasOneBlock();
}

void Conditions::hold(arith::CmpIPredicate predicate, Value left, Value right) {
  using Predicate = arith::CmpIPredicate;
  auto x = affine.evaluate(left), y = affine.evaluate(right);
  if (!x || !y) {
    whole = false;
    return;
  }
  const bool isUnsigned =
      predicate == Predicate::ult || predicate == Predicate::ule ||
      predicate == Predicate::ugt || predicate == Predicate::uge;
  if (isUnsigned &&
      (affine.range(*x).first < 0 || affine.range(*y).first < 0)) {
    whole = false;
    return;
  }
  AffineForm form = *x; // x - y compared with 0
  form.add(*y, -1);
  LineRange range;
  switch (predicate) {
  case Predicate::eq:
    range = {0, 0};
    break;
  case Predicate::slt:
  case Predicate::ult:
    range.last = -1;
    break;
  case Predicate::sle:
  case Predicate::ule:
    range.last = 0;
    break;
  case Predicate::sgt:
  case Predicate::ugt:
    range.first = 1;
    break;
  case Predicate::sge:
  case Predicate::uge:
    range.first = 0;
    break;
  case Predicate::ne: {
    // All but the first value or the last one is a range; else it is two.
    const auto [least, most] = affine.range(form);
    if (least > 0 || most < 0)
      return;
    if (least < 0 && most > 0) {
      whole = false;
      return;
    }
    (least == 0 ? range.first : range.last) = least == 0 ? 1 : -1;
    break;
  }
  }
  const Line line = lineOf(form);
  int64_t low = range.first - form.constant, high = range.last - form.constant;
  if (line.factor < 0)
    std::tie(low, high) = std::pair(-high, -low);
  const int64_t factor = std::abs(line.factor);
  LineRange &known = ranges[line.terms];
  known.first = std::max(known.first, llvm::divideCeilSigned(low, factor));
  known.last = std::min(known.last, llvm::divideFloorSigned(high, factor));
}

double Conditions::trips(scf::ForOp loop) {
  auto lower = affine.evaluate(loop.getLowerBound());
  auto upper = affine.evaluate(loop.getUpperBound());
  auto step = affine.evaluate(loop.getStep());
  if (!lower || !upper || !step || !step->isConstant() || step->constant <= 0 ||
      loop.getUnsignedCmp())
    return 1;
  AffineForm length = *upper;
  length.add(*lower, -1);
  const Line line = lineOf(length);
  auto all = valuesOf(line.terms, affine);
  if (!all)
    return 1;
  LineRange range;
  if (auto at = ranges.find(line.terms); at != ranges.end()) {
    range = at->second;
    ranges.erase(at);
  }
  const LineValues some = all->within(range);
  if (some.count == 0)
    return 0;
  // From the shortest on; those of no length do not run.
  const int64_t apart = std::abs(line.factor) * some.step;
  const int64_t shortest =
      length.constant +
      line.factor * (line.factor > 0 ? some.first : some.last());
  const int64_t skipped =
      shortest > 0 ? 0 : std::min(some.count, -shortest / apart + 1);
  if (skipped == some.count)
    return 0;
  return floorSum(some.count - skipped, step->constant, apart,
                  shortest + skipped * apart + step->constant - 1) /
         double(all->count);
}

double Conditions::share() const {
  double share = isNever ? 0 : 1;
  for (const auto &[terms, range] : ranges)
    if (auto values = valuesOf(terms, affine))
      share *= double(values->within(range).count) / double(values->count);
  return share;
}

double timesRun(Region &region, Region &body, AffineEvaluator &affine) {
  Conditions conditions(affine);
  SmallVector<scf::ForOp> loops;
  for (Region *inner = &region; inner != &body;
       inner = inner->getParentRegion())
    if (auto loop = dyn_cast<scf::ForOp>(inner->getParentOp()))
      loops.push_back(loop);
  conditions.requireAround(region, body);
  double times = 1;
  for (scf::ForOp loop : loops)
    times *= conditions.trips(loop);
  return times * conditions.share();
}

} // namespace mgpu::planner
