// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/ThreadValues.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::facts {

ThreadValues::ThreadValues(AffineEvaluator &affine, int64_t most)
    : affine(affine) {
  for (uint32_t k = 0; k < 6; ++k) {
    sizes[k] = std::max<int64_t>(affine.sizeOf(k), 1);
    count = std::min(count * sizes[k], most);
  }
}

ThreadIds ThreadValues::idsOf(int64_t thread) const {
  ThreadIds ids;
  for (uint32_t k = 0; k < 6; thread /= sizes[k++])
    ids[k] = thread % sizes[k];
  return ids;
}

const std::vector<Attribute> &ThreadValues::of(Value value) {
  auto at = known.find(value);
  if (at != known.end())
    return *at->second;
  auto found = std::make_unique<std::vector<Attribute>>(find(value));
  return *(known[value] = std::move(found));
}

std::vector<Attribute> ThreadValues::find(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return std::vector(size_t(count), constant);
  std::vector<Attribute> result;
  Type type = value.getType();
  if (auto form = type.isIntOrIndex() ? affine.evaluate(value) : std::nullopt;
      form && affine.isOfIds(*form)) {
    const unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    for (int64_t thread = 0; thread < count; ++thread)
      result.push_back(IntegerAttr::get(
          type, APInt(width, uint64_t(affine.valueAt(*form, idsOf(thread))),
                      true, true)));
    return result;
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !isMemoryEffectFree(op))
    return {};
  std::vector<const std::vector<Attribute> *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(&of(operand));
    if (operands.back()->empty())
      return {};
  }
  for (size_t thread = 0; thread < size_t(count); ++thread) {
    SmallVector<Attribute> given;
    for (const std::vector<Attribute> *each : operands)
      given.push_back((*each)[thread]);
    SmallVector<OpFoldResult> folded;
    if (failed(op->fold(given, folded)) || folded.size() != 1)
      return {};
    Attribute made = dyn_cast<Attribute>(folded[0]);
    if (!made) { // one of its operands
      auto from = llvm::find(op->getOperands(), cast<Value>(folded[0]));
      if (from == op->operand_end())
        return {};
      made = given[from - op->operand_begin()];
    }
    result.push_back(made);
  }
  return result;
}

} // namespace mgpu::facts
