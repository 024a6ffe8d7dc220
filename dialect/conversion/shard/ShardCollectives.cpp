// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of the shard dialect. A group is the devices that differ along
// `grid_axes` alone; without axes a device is a group by itself. Results that
// the dialect leaves undefined, as on devices that are not the root, are what
// the root has.
#include "dialect/conversion/shard/ShardPatterns.h"
#include "dialect/conversion/spmd/Collectives.h"
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

// Members that send to one other: shift, send with recv, update_halo.

/// Adds a pair for each group along `axes`: its members of these ranks.
static void addPairs(Builder &b, ArrayRef<int64_t> grid, ArrayRef<int64_t> axes,
                     int64_t from, int64_t to,
                     SmallVectorImpl<Attribute> &pairs) {
  for (auto group : groupsAlong(b, grid, axes).getAsRange<DenseI64ArrayAttr>())
    pairs.push_back(b.getDenseI64ArrayAttr({group[from], group[to]}));
}

/// The member at place p sends to place p + offset along the axis.
static LogicalResult convertShift(shard::ShiftOp op) {
  OpBuilder b(op);
  ArrayRef<int64_t> grid = gridOf(op, op.getGridAttr());
  int64_t axis = op.getShiftAxis().getZExtValue();
  if (!llvm::is_contained(axesOf(op.getGridAxes()), axis))
    return op.emitOpError() << "'shift_axis' is none of 'grid_axes'";
  SmallVector<Attribute> pairs;
  int64_t size = grid[axis], offset = op.getOffset();
  for (int64_t from = 0; from < size; ++from) {
    int64_t to = from + offset;
    if (op.getRotate())
      to = ((to % size) + size) % size;
    if (to >= 0 && to < size)
      addPairs(b, grid, {axis}, from, to, pairs);
  }
  op.getResult().replaceAllUsesWith(
      permute(b, op.getLoc(), op.getInput(), b.getArrayAttr(pairs)));
  return success();
}

/// The rank in its group of a device that a constant multi-index names.
static std::optional<int64_t> rankIn(ArrayRef<int64_t> grid,
                                     ArrayRef<int64_t> axes,
                                     ArrayRef<int64_t> fixed,
                                     ValueRange dynamic) {
  auto index = foldIndices(fixed, dynamic);
  if (!index || index->size() != axes.size())
    return std::nullopt;
  SmallVector<int64_t> sizes;
  for (int64_t axis : axes)
    sizes.push_back(grid[axis]);
  for (auto [at, size] : llvm::zip(*index, sizes))
    if (at < 0 || at >= size)
      return std::nullopt;
  return linearIndex(sizes, *index);
}

/// Which ranks are known when the program runs alone.
static Value receivedByIndex(shard::RecvOp op, shard::SendOp send) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  ArrayRef<int64_t> grid = gridOf(op, op.getGridAttr());
  SmallVector<int64_t> axes = axesOf(op.getGridAxes());
  Value to = rankOf(b, loc, grid, axes, send.getDestination(),
                    send.getDestinationDynamic());
  Value from =
      rankOf(b, loc, grid, axes, *op.getSource(), op.getSourceDynamic());
  Value got = ofMember(b, loc, send.getInput(), grid, axes, from);
  auto type = cast<RankedTensorType>(got.getType());
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       rankAlong(b, loc, grid, axes), to);
  return arith::SelectOp::create(b, loc, isHere, got, zeros);
}

/// A send and the next recv in the block are one exchange: in each group the
/// source sends to the destination; the other members have zeros.
static LogicalResult convertReceive(shard::RecvOp op) {
  shard::SendOp send;
  for (Operation *before = op->getPrevNode(); before && !send;
       before = before->getPrevNode()) {
    if (isa<shard::RecvOp>(before))
      break;
    send = dyn_cast<shard::SendOp>(before);
  }
  if (!send || send.getGridAttr() != op.getGridAttr() ||
      send.getGridAxes() != op.getGridAxes() ||
      send.getInput().getType() != op.getResult().getType())
    return ir::emitUnsupported(op)
           << "has no 'shard.send' of the same type, grid and axes before it "
              "in its block; write both, one after the other";
  OpBuilder b(op);
  ArrayRef<int64_t> grid = gridOf(op, op.getGridAttr());
  SmallVector<int64_t> axes = axesOf(op.getGridAxes());
  auto to =
      rankIn(grid, axes, send.getDestination(), send.getDestinationDynamic());
  auto from = op.getSource()
                  ? rankIn(grid, axes, *op.getSource(), op.getSourceDynamic())
                  : std::nullopt;
  bool isKnown =
      op.getSource() && foldIndices(*op.getSource(), op.getSourceDynamic()) &&
      foldIndices(send.getDestination(), send.getDestinationDynamic());
  if (op.getSource() && !isKnown) {
    op.getResult().replaceAllUsesWith(receivedByIndex(op, send));
    return success();
  }
  if (!from || !to)
    return ir::emitUnsupported(op)
           << "needs a 'source' and a 'destination' of the 'shard.send' before "
              "it within the grid";
  SmallVector<Attribute> pairs;
  addPairs(b, grid, axes, *from, *to, pairs);
  op.getResult().replaceAllUsesWith(
      permute(b, op.getLoc(), send.getInput(), b.getArrayAttr(pairs)));
  return success();
}

/// A send gives what it was given; the recv behind it makes the exchange.
static LogicalResult convertSend(shard::SendOp op) {
  Operation *next = op->getNextNode();
  while (next && !isa<shard::RecvOp, shard::SendOp>(next))
    next = next->getNextNode();
  if (!isa_and_nonnull<shard::RecvOp>(next))
    return ir::emitUnsupported(op)
           << "has no 'shard.recv' behind it in its block; write both, one "
              "after the other";
  op.getResult().replaceAllUsesWith(op.getInput());
  return success();
}

LogicalResult convertExchange(Operation *op) {
  if (auto shift = dyn_cast<shard::ShiftOp>(op))
    return convertShift(shift);
  if (auto receive = dyn_cast<shard::RecvOp>(op))
    return convertReceive(receive);
  return convertSend(cast<shard::SendOp>(op));
}

//===----------------------------------------------------------------------===//
// Halos
//===----------------------------------------------------------------------===//

namespace {

/// One dimension of a tensor with halos, and the axes it is cut along.
class HaloDim {
public:
  HaloDim(OpBuilder &b, Location loc, ArrayRef<int64_t> grid,
          ArrayRef<int64_t> axes, unsigned dim)
      : b(b), loc(loc), grid(grid), axes(axes), dim(dim),
        count(countAlong(grid, axes)) {}

  /// `tensor` with `size` elements from `at` on that the neighbour at distance
  /// `step` has from `source` on. Where there is no neighbour nothing changes.
  Value update(Value tensor, int64_t at, int64_t source, int64_t size,
               int64_t step);

private:
  Value slice(Value tensor, int64_t at, int64_t size) {
    box(tensor, at, size);
    return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, ones);
  }
  void box(Value tensor, int64_t at, int64_t size) {
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    offsets.assign(shape.size(), b.getIndexAttr(0));
    ones.assign(shape.size(), b.getIndexAttr(1));
    sizes.clear();
    for (int64_t each : shape)
      sizes.push_back(b.getIndexAttr(each));
    offsets[dim] = b.getIndexAttr(at);
    sizes[dim] = b.getIndexAttr(size);
  }

  OpBuilder &b;
  Location loc;
  ArrayRef<int64_t> grid, axes;
  unsigned dim;
  int64_t count;
  SmallVector<OpFoldResult> offsets, sizes, ones;
};

Value HaloDim::update(Value tensor, int64_t at, int64_t source, int64_t size,
                      int64_t step) {
  if (size == 0)
    return tensor;
  SmallVector<Attribute> pairs;
  for (int64_t to = 0; to < count; ++to)
    if (to + step >= 0 && to + step < count)
      addPairs(b, grid, axes, to + step, to, pairs);
  Value received =
      permute(b, loc, slice(tensor, source, size), b.getArrayAttr(pairs));
  Value rank = rankAlong(b, loc, grid, axes);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value edge = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rank,
                                     constant(step < 0 ? 0 : count - 1));
  Value old = slice(tensor, at, size);
  auto type = cast<RankedTensorType>(old.getType());
  Value isEdge =
      tensor::SplatOp::create(b, loc, edge, type.clone(b.getI1Type()));
  Value kept = arith::SelectOp::create(b, loc, isEdge, old, received);
  box(tensor, at, size);
  return tensor::InsertSliceOp::create(b, loc, kept, tensor, offsets, sizes,
                                       ones);
}

} // namespace

/// Dimension by dimension, so that corners come from diagonal neighbours.
LogicalResult convertHalo(shard::UpdateHaloOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getDestination().getType());
  auto halos = foldIndices(op.getStaticHaloSizes(), op.getHaloSizes());
  if (!type || !type.hasStaticShape() || !halos)
    return ir::emitUnsupported(op)
           << "needs a tensor of static shape, and constants for 'halo_sizes'";
  OpBuilder b(op);
  ArrayRef<int64_t> grid = gridOf(op, op.getGridAttr());
  Value tensor = op.getDestination();
  size_t next = 0; // two sizes for each dimension that is cut
  for (auto [dim, split] : llvm::enumerate(op.getSplitAxes())) {
    SmallVector<int64_t> axes = axesOf(split.asArrayRef());
    if (axes.empty())
      continue;
    if (next + 2 > halos->size() || dim >= size_t(type.getRank()))
      return op.emitOpError() << "needs two sizes in 'halo_sizes' for each "
                                 "dimension that is split";
    int64_t low = (*halos)[next++], high = (*halos)[next++];
    int64_t size = type.getDimSize(dim);
    if (low < 0 || high < 0 || low + high + std::max(low, high) > size)
      return op.emitOpError()
             << "has halos of " << low << " and " << high << " in dimension "
             << dim << " of " << type << ", whose other elements are fewer";
    HaloDim each(b, op.getLoc(), grid, axes, dim);
    tensor = each.update(tensor, 0, size - high - low, low, -1);
    tensor = each.update(tensor, size - high, low, high, 1);
  }
  op.getResult().replaceAllUsesWith(tensor);
  return success();
}

} // namespace mgpu::conversion
