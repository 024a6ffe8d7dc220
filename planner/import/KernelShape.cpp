// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelShape.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

class Encoder {
public:
  Encoder(KernelShape &shape, Region &body) : shape(shape), body(body) {}

  void region(Region &region) {
    // Inverted, so that it is not a pointer and not the 0 that ends a block.
    word(~uintptr_t(std::distance(region.begin(), region.end())));
    for (Block &block : region) {
      word(numberOf(&block));
      word(block.getNumArguments());
      for (BlockArgument argument : block.getArguments())
        define(argument);
      // Post-order, so that captures come in the order of
      // getUsedValuesDefinedAbove.
      for (Operation &op : block)
        operation(op);
      word(uintptr_t(0)); // no operation's name: the block ends
    }
  }

private:
  void word(uintptr_t value) { shape.words.push_back(value); }
  void pointer(const void *at) { word(reinterpret_cast<uintptr_t>(at)); }
  uintptr_t numberOf(const void *pointer) {
    return numbers.try_emplace(pointer, numbers.size()).first->second;
  }
  void define(Value value) {
    word(numberOf(value.getAsOpaquePointer()));
    pointer(value.getType().getAsOpaquePointer());
  }

  void header(Operation &op) {
    pointer(op.getName().getAsOpaquePointer());
    pointer(op.getDiscardableAttrDictionary().getAsOpaquePointer());
    word(op.hashProperties());
    word(op.getNumResults());
    shape.ops.push_back(&op);
  }

  void operation(Operation &op) {
    for (Region &inner : op.getRegions())
      region(inner);
    header(op);
    word(op.getNumRegions());
    word(op.getNumOperands());
    for (Value operand : op.getOperands())
      use(operand);
    for (Value result : op.getResults())
      define(result);
    word(op.getNumSuccessors());
    for (Block *successor : op.getSuccessors())
      word(numberOf(successor));
  }

  void use(Value value) {
    auto [at, isNew] =
        numbers.try_emplace(value.getAsOpaquePointer(), numbers.size());
    word(at->second);
    if (!isNew || body.isAncestor(value.getParentRegion()))
      return;
    shape.captures.push_back(value);
    pointer(value.getType().getAsOpaquePointer());
    // Constants are copied into the kernel, other captures are arguments.
    Operation *op = value.getDefiningOp();
    bool constant = op && matchPattern(op, m_Constant());
    word(constant);
    if (constant)
      header(*op);
  }

  KernelShape &shape;
  Region &body;
  llvm::SmallDenseMap<const void *, uintptr_t, 32> numbers;
};

} // namespace

KernelShape::KernelShape(Region &body) { Encoder(*this, body).region(body); }

/// Equal words name equal operations, so the lists match one to one.
static bool haveEqualProperties(ArrayRef<Operation *> some,
                                ArrayRef<Operation *> others) {
  for (auto [mine, theirs] : llvm::zip_equal(some, others))
    if (!mine->getName().compareOpProperties(mine->getPropertiesStorage(),
                                             theirs->getPropertiesStorage()))
      return false;
  return true;
}

uint32_t KernelShapes::numberOf(const KernelShape &shape) {
  // DenseMap keeps the two largest keys for itself.
  uint64_t hash = uint64_t(llvm::hash_combine_range(shape.words)) >> 1;
  uint32_t number = uint32_t(shapes.size());
  auto [at, isNew] = byHash.try_emplace(hash, number);
  uint32_t next = at->second;
  for (uint32_t known = next; !isNew; known = shapes[known].next) {
    if (shapes[known].words == ArrayRef(shape.words) &&
        haveEqualProperties(shapes[known].ops, shape.ops))
      return known;
    if (shapes[known].next == known)
      break;
  }
  shapes.push_back({ArrayRef(shape.words).copy(memory),
                    ArrayRef(shape.ops).copy(memory), next});
  at->second = number;
  return number;
}

} // namespace mgpu::planner
