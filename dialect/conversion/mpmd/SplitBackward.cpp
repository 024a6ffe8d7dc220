// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MeshAssignment.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"

#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SPLITBACKWARD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

using Operations = llvm::SetVector<Operation *>;

/// The operations of the body that compute `values`, in its order.
Operations sliceOf(Block &body, ArrayRef<Value> values) {
  Operations slice;
  auto insert = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && op->getBlock() == &body)
      slice.insert(op);
  };
  llvm::for_each(values, insert);
  for (size_t k = 0; k < slice.size(); ++k)
    llvm::for_each(usedBy(slice[k]), insert);
  Operations ordered;
  for (Operation &op : body)
    if (slice.contains(&op))
      ordered.insert(&op);
  return ordered;
}

/// Splits one fragment into what other meshes wait for and the rest.
class Splitting {
public:
  explicit Splitting(mpmd::FragmentOp op)
      : op(op), body(op.getRegion().front()), b(op) {
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), op->getOperands()))
      outside[argument] = operand;
  }
  void run();

private:
  struct Part {
    Operations ops;
    SmallVector<Value> returned;
    SmallVector<Type> types;
    SmallVector<unsigned> results; ///< of the fragment: the first ones returned
    StringRef mark;
    void add(unsigned result, mpmd::FragmentOp op) {
      results.push_back(result);
      returned.push_back(
          op.getRegion().front().getTerminator()->getOperand(result));
      types.push_back(op->getResult(result).getType());
    }
  };
  void choose(Part &first, Part &rest);
  void pass(Part &first, const Part &rest);
  Type typeOf(Value value);
  void build(const Part &part);

  mpmd::FragmentOp op;
  Block &body;
  OpBuilder b;
  llvm::DenseMap<Value, Value> outside; ///< of the body's values, those on the
                                        ///< mesh
};

/// Operations that compute results which are transferred are the first part.
/// The others are the rest, which may be empty.
void Splitting::choose(Part &first, Part &rest) {
  Operation *end = body.getTerminator();
  SmallVector<Value> waitedFor, others;
  for (auto [value, result] : llvm::zip(end->getOperands(), op->getResults()))
    (isWaitedFor(result) ? waitedFor : others).push_back(value);
  first.ops = sliceOf(body, waitedFor);
  rest.ops = sliceOf(body, others);
  // An operation without operands is computed in both rather than kept.
  rest.ops.remove_if([&](Operation *each) {
    return first.ops.contains(each) && !usedBy(each).empty();
  });
  for (auto [k, value] : llvm::enumerate(end->getOperands())) {
    Operation *source = value.getDefiningOp();
    const bool isFirst =
        isWaitedFor(op->getResult(k)) || !source || first.ops.contains(source);
    (isFirst ? first : rest).add(k, op);
  }
}

/// The first part gives what the rest takes of it.
void Splitting::pass(Part &first, const Part &rest) {
  llvm::SetVector<Value> kept;
  for (Operation *each : rest.ops)
    for (Value used : usedBy(each)) {
      Operation *source = used.getDefiningOp();
      if (source && !rest.ops.contains(source))
        kept.insert(used);
    }
  for (Value value : kept) {
    first.returned.push_back(value);
    first.types.push_back(typeOf(value));
  }
}

/// Shared as a value of the fragment of the same shape is, if there is one.
Type Splitting::typeOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  SmallVector<Type> all(op->getOperandTypes());
  llvm::append_range(all, op->getResultTypes());
  for (Type each : all)
    if (auto type = dyn_cast<mpmd::MeshTensorType>(each);
        type && type.getShape() == tensor.getShape() && type.getSharding())
      return mpmd::MeshTensorType::get(b.getContext(), op.getMeshName(), tensor,
                                       type.getSharding());
  return mpmd::MeshTensorType::get(b.getContext(), op.getMeshName(), tensor);
}

void Splitting::build(const Part &part) {
  llvm::SetVector<Value> inputs;
  auto take = [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (!source || !part.ops.contains(source))
      inputs.insert(value);
  };
  for (Operation *each : part.ops)
    llvm::for_each(usedBy(each), take);
  llvm::for_each(part.returned, take);
  SmallVector<Value> operands = llvm::map_to_vector(
      inputs, [&](Value input) { return outside.lookup(input); });
  auto made = mpmd::FragmentOp::create(
      b, op.getLoc(), part.types, operands, op.getOrigin(),
      op.getMeshNameAttr(), op.getStageIdAttr(),
      sdy::TensorShardingPerValueAttr(), sdy::TensorShardingPerValueAttr());
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  made->setAttr(part.mark, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&made.getRegion());
  IRMapping map;
  for (Value input : inputs)
    map.map(input, block->addArgument(input.getType(), input.getLoc()));
  for (Operation *each : part.ops)
    b.clone(*each, map);
  mpmd::ReturnOp::create(b, op.getLoc(),
                         llvm::map_to_vector(part.returned, [&](Value value) {
                           return map.lookup(value);
                         }));
  for (auto [k, result] : llvm::enumerate(part.results))
    op->getResult(result).replaceAllUsesWith(made->getResult(k));
  for (size_t k = part.results.size(); k < part.returned.size(); ++k)
    outside[part.returned[k]] = made->getResult(k);
}

void Splitting::run() {
  Part first, rest;
  first.mark = keepTransferredName;
  rest.mark = dropTransferredName;
  choose(first, rest);
  if (first.ops.empty() || rest.results.empty())
    return;
  pass(first, rest);
  build(first);
  build(rest);
  op->erase();
}

struct SplitBackward : impl::SplitBackwardBase<SplitBackward> {
  using SplitBackwardBase::SplitBackwardBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    const std::optional<PipelineSchedule> order =
        parsePipelineSchedule(std::string_view(schedule));
    if (!function || function.isExternal() || !mpmd::topologyOf(function) ||
        !order || !splitsBackward(*order))
      return markAllAnalysesPreserved();
    const Pipeline pipeline = findPipeline(function);
    for (const Pipeline::Mesh &mesh : pipeline.meshes)
      for (const auto &[work, fragments] : mesh.works)
        if (work.kind == PipelineWork::Kind::Backward)
          for (Operation *op : fragments)
            Splitting(cast<mpmd::FragmentOp>(op)).run();
  }
};

} // namespace

} // namespace mgpu::conversion
