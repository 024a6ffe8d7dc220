// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of the shard dialect. A group is the devices that differ along
// `grid_axes` alone; without axes a device is a group by itself. Results that
// the dialect leaves undefined, as on devices that are not the root, are what
// the root has.
#include "dialect/conversion/spmd/Collectives.h"

#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The group of a collective, and how its operations are made.
class Group {
public:
  template <typename OpTy>
  explicit Group(OpTy op)
      : op(op), b(op), grid(gridOf(op, op.getGridAttr())),
        axes(axesOf(op.getGridAxes())), size(countAlong(grid, axes)) {}

  Collectives among() {
    return Collectives(b, op->getLoc(), groupsAlong(b, grid, axes), size);
  }
  Value slice(Value input, unsigned dim) {
    return sliceOf(b, op->getLoc(), input, dim,
                   rankAlong(b, op->getLoc(), grid, axes), size);
  }
  /// Nothing for a kind that has no meaning; `scatter` is the dimension of
  /// which each member keeps its part.
  Value reduce(Value input, shard::ReductionKind kind,
               std::optional<unsigned> scatter);
  Value convertTo(Value input, Type element);

  Operation *op;
  OpBuilder b;
  ArrayRef<int64_t> grid;
  SmallVector<int64_t> axes;
  int64_t size;

private:
  Value combine(Value input, ir::ReductionKind kind,
                std::optional<unsigned> scatter);
  Value fold(Value input, StringRef combiner);
};

/// Each element in the type of the result, in which the members add.
Value Group::convertTo(Value input, Type element) {
  Type from = typeOf(input).getElementType();
  if (from == element)
    return input;
  Location loc = op->getLoc();
  Type type = typeOf(input).clone(element);
  auto bits = [](Type each) { return each.getIntOrFloatBitWidth(); };
  bool isWider = bits(element) > bits(from);
  if (isa<FloatType>(from) && isa<FloatType>(element))
    return isWider ? arith::ExtFOp::create(b, loc, type, input).getResult()
                   : arith::TruncFOp::create(b, loc, type, input).getResult();
  if (isa<FloatType>(from))
    return arith::FPToSIOp::create(b, loc, type, input);
  if (isa<FloatType>(element))
    return arith::SIToFPOp::create(b, loc, type, input);
  return isWider ? arith::ExtSIOp::create(b, loc, type, input).getResult()
                 : arith::TruncIOp::create(b, loc, type, input).getResult();
}

Value Group::combine(Value input, ir::ReductionKind kind,
                     std::optional<unsigned> scatter) {
  return scatter ? among().reduceScatter(input, kind, *scatter)
                 : among().allReduce(input, kind);
}

/// Gathers all tensors in a new dimension, and combines them in rank order.
Value Group::fold(Value input, StringRef combiner) {
  Location loc = op->getLoc();
  RankedTensorType type = typeOf(input);
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    groups.push_back({dim + 1});
  if (!groups.empty())
    groups[0].insert(groups[0].begin(), 0);
  Value all = among().allGather(
      tensor::ExpandShapeOp::create(b, loc, type.clone(shape), input, groups),
      0);
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(shape.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t each : shape)
    sizes.push_back(b.getIndexAttr(each));
  Value result;
  for (int64_t rank = 0; rank < size; ++rank) {
    offsets[0] = b.getIndexAttr(rank);
    Value next =
        tensor::ExtractSliceOp::create(b, loc, type, all, offsets, sizes, ones);
    if (result) {
      OperationState state(loc, combiner);
      state.addOperands({result, next});
      state.addTypes(type);
      next = b.create(state)->getResult(0);
    }
    result = next;
  }
  return result;
}

Value Group::reduce(Value input, shard::ReductionKind kind,
                    std::optional<unsigned> scatter) {
  auto sliced = [&](Value all) { return scatter ? slice(all, *scatter) : all; };
  bool isInteger = isa<IntegerType>(typeOf(input).getElementType());
  switch (kind) {
  case shard::ReductionKind::Sum:
    return combine(input, ir::ReductionKind::Sum, scatter);
  case shard::ReductionKind::Product:
    return combine(input, ir::ReductionKind::Prod, scatter);
  case shard::ReductionKind::Min:
    return combine(input, ir::ReductionKind::Min, scatter);
  case shard::ReductionKind::Max:
    return combine(input, ir::ReductionKind::Max, scatter);
  case shard::ReductionKind::Average: {
    if (isInteger)
      return {};
    Value sum = combine(input, ir::ReductionKind::Sum, scatter);
    auto type = typeOf(sum);
    Value count = arith::ConstantOp::create(
        b, op->getLoc(), type,
        DenseElementsAttr::get(
            type, Attribute(b.getFloatAttr(type.getElementType(), size))));
    return arith::DivFOp::create(b, op->getLoc(), sum, count);
  }
  case shard::ReductionKind::BitwiseAnd:
    return isInteger ? sliced(fold(input, arith::AndIOp::getOperationName()))
                     : Value();
  case shard::ReductionKind::BitwiseOr:
    return isInteger ? sliced(fold(input, arith::OrIOp::getOperationName()))
                     : Value();
  case shard::ReductionKind::BitwiseXor:
    return isInteger ? sliced(fold(input, arith::XOrIOp::getOperationName()))
                     : Value();
  case shard::ReductionKind::Generic:
    return {};
  }
  llvm_unreachable("an unknown reduction");
}

/// The rank of the root, by its constant multi-index. Null after a report.
template <typename OpTy>
std::optional<int64_t> rootOf(OpTy op, const Group &group) {
  auto index = foldIndices(op.getRoot(), op.getRootDynamic());
  if (!index) {
    ir::emitUnsupported(op)
        << "takes a root that is not a constant; devices cannot agree on it";
    return std::nullopt;
  }
  SmallVector<int64_t> sizes;
  for (int64_t axis : group.axes)
    sizes.push_back(group.grid[axis]);
  return linearIndex(sizes, *index);
}

template <typename OpTy>
Value reduced(OpTy op, Group &group, std::optional<unsigned> scatter) {
  auto type = dyn_cast<RankedTensorType>(op.getResult().getType());
  Value result;
  if (type && group.size > 0)
    result = group.reduce(group.convertTo(op.getInput(), type.getElementType()),
                          op.getReduction(), scatter);
  if (!result)
    ir::emitUnsupported(op)
        << "the reduction '" << stringifyReductionKind(op.getReduction())
        << "' of " << op.getResult().getType() << " is not supported";
  return result;
}

} // namespace

LogicalResult convertCollective(Operation *op) {
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                         llvm::to_vector(op->getResults())))
    if (auto type = dyn_cast<ShapedType>(value.getType());
        type && (!isa<RankedTensorType>(type) || !type.hasStaticShape()))
      return ir::emitUnsupported(op)
             << "works on " << type << "; it must be a tensor of static shape";
  Value result =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([](shard::AllGatherOp each) {
            return Group(each).among().allGather(
                each.getInput(), each.getGatherAxis().getZExtValue());
          })
          .Case([](shard::AllSliceOp each) {
            return Group(each).slice(each.getInput(),
                                     each.getSliceAxis().getZExtValue());
          })
          .Case([](shard::AllToAllOp each) {
            return Group(each).among().allToAll(
                each.getInput(), each.getSplitAxis().getZExtValue(),
                each.getConcatAxis().getZExtValue());
          })
          .Case([](shard::AllReduceOp each) {
            Group group(each);
            return reduced(each, group, std::nullopt);
          })
          .Case([](shard::ReduceScatterOp each) {
            Group group(each);
            return reduced(each, group, each.getScatterAxis().getZExtValue());
          })
          .Case([](shard::ReduceOp each) {
            Group group(each);
            return rootOf(each, group) ? reduced(each, group, std::nullopt)
                                       : Value();
          })
          .Case([](shard::BroadcastOp each) {
            Group group(each);
            auto root = rootOf(each, group);
            return root ? group.among().broadcast(each.getInput(), *root)
                        : Value();
          })
          .Case([](shard::GatherOp each) {
            Group group(each);
            return rootOf(each, group)
                       ? group.among().allGather(
                             each.getInput(),
                             each.getGatherAxis().getZExtValue())
                       : Value();
          })
          .Case([](shard::ScatterOp each) {
            Group group(each);
            auto root = rootOf(each, group);
            return root ? group.slice(
                              group.among().broadcast(each.getInput(), *root),
                              each.getScatterAxis().getZExtValue())
                        : Value();
          });
  if (!result)
    return failure();
  op->getResult(0).replaceAllUsesWith(result);
  return success();
}

} // namespace mgpu::conversion
