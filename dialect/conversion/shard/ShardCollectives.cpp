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

/// All members' tensors, in a new first dimension.
Value stack(OpBuilder &b, Location loc, Collectives among, Value input) {
  RankedTensorType type = typeOf(input);
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    groups.push_back({dim + 1});
  if (!groups.empty())
    groups[0].insert(groups[0].begin(), 0);
  return among.allGather(
      tensor::ExpandShapeOp::create(b, loc, type.clone(shape), input, groups),
      0);
}

/// Member `rank`'s tensor of what stack() gives.
Value member(OpBuilder &b, Location loc, Value stacked, OpFoldResult rank) {
  ArrayRef<int64_t> shape = typeOf(stacked).getShape();
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(shape.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t each : shape)
    sizes.push_back(b.getIndexAttr(each));
  offsets[0] = rank;
  sizes[0] = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      b, loc, typeOf(stacked).clone(shape.drop_front()), stacked, offsets,
      sizes, ones);
}

/// Gathers all tensors, and combines them in rank order.
Value Group::fold(Value input, StringRef combiner) {
  Value all = stack(b, op->getLoc(), among(), input);
  Value result;
  for (int64_t rank = 0; rank < size; ++rank) {
    Value next = member(b, op->getLoc(), all, b.getIndexAttr(rank));
    if (result) {
      OperationState state(op->getLoc(), combiner);
      state.addOperands({result, next});
      state.addTypes(next.getType());
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
    Value sum = combine(input, ir::ReductionKind::Sum, scatter);
    auto type = typeOf(sum);
    auto count = isInteger
                     ? Attribute(b.getIntegerAttr(type.getElementType(), size))
                     : Attribute(b.getFloatAttr(type.getElementType(), size));
    Value divisor = arith::ConstantOp::create(
        b, op->getLoc(), type, DenseElementsAttr::get(type, count));
    if (isInteger)
      return arith::DivSIOp::create(b, op->getLoc(), sum, divisor);
    return arith::DivFOp::create(b, op->getLoc(), sum, divisor);
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

/// The root's value.
template <typename OpTy>
Value ofRoot(OpTy op, Group &group) {
  SmallVector<int64_t> sizes;
  for (int64_t axis : group.axes)
    sizes.push_back(group.grid[axis]);
  if (auto index = foldIndices(op.getRoot(), op.getRootDynamic()))
    return group.among().broadcast(op.getInput(), linearIndex(sizes, *index));
  return ofMember(group.b, op.getLoc(), op.getInput(), group.grid, group.axes,
                  rankOf(group.b, op.getLoc(), group.grid, group.axes,
                         op.getRoot(), op.getRootDynamic()));
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

Value rankOf(OpBuilder &b, Location loc, ArrayRef<int64_t> grid,
             ArrayRef<int64_t> axes, ArrayRef<int64_t> fixed,
             ValueRange dynamic) {
  Value rank = arith::ConstantIndexOp::create(b, loc, 0);
  auto next = dynamic.begin();
  for (auto [place, axis] : llvm::zip(fixed, axes)) {
    Value size = arith::ConstantIndexOp::create(b, loc, grid[axis]);
    Value at = ShapedType::isDynamic(place)
                   ? *next++
                   : arith::ConstantIndexOp::create(b, loc, place).getResult();
    rank = arith::MulIOp::create(b, loc, rank, size);
    rank = arith::AddIOp::create(b, loc, rank, at);
  }
  return rank;
}

Value ofMember(OpBuilder &b, Location loc, Value input, ArrayRef<int64_t> grid,
               ArrayRef<int64_t> axes, Value rank) {
  Collectives among(b, loc, groupsAlong(b, grid, axes), countAlong(grid, axes));
  return member(b, loc, stack(b, loc, among, input), rank);
}

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
            return reduced(each, group, std::nullopt);
          })
          .Case([](shard::BroadcastOp each) {
            Group group(each);
            return ofRoot(each, group);
          })
          .Case([](shard::GatherOp each) {
            Group group(each);
            return group.among().allGather(each.getInput(),
                                           each.getGatherAxis().getZExtValue());
          })
          .Case([](shard::ScatterOp each) {
            Group group(each);
            return group.slice(ofRoot(each, group),
                               each.getScatterAxis().getZExtValue());
          });
  if (!result)
    return failure();
  op->getResult(0).replaceAllUsesWith(result);
  return success();
}

} // namespace mgpu::conversion
