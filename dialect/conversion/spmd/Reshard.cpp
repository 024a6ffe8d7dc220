// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Reshard.h"

#include "dialect/conversion/spmd/Collectives.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Axes> cutsOf(spmd::LayoutAttr layout) {
  return llvm::map_to_vector(layout.getSplit(), [](DenseI64ArrayAttr axes) {
    return Axes(axes.asArrayRef());
  });
}

spmd::LayoutAttr layoutOfCuts(MLIRContext *context, ArrayRef<int64_t> mesh,
                              ArrayRef<Axes> cuts) {
  return spmd::LayoutAttr::get(context, mesh,
                               llvm::map_to_vector(cuts, [&](const Axes &axes) {
                                 return DenseI64ArrayAttr::get(context, axes);
                               }));
}

int64_t countAlong(ArrayRef<int64_t> mesh, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= mesh[axis];
  return count;
}

/// How far apart neighbours along `axis` are: devices are row-major.
static int64_t strideOf(ArrayRef<int64_t> mesh, int64_t axis) {
  int64_t stride = 1;
  for (int64_t size : mesh.drop_front(axis + 1))
    stride *= size;
  return stride;
}

ArrayAttr groupsAlong(Builder &b, ArrayRef<int64_t> mesh,
                      ArrayRef<int64_t> axes) {
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, int64_t(mesh.size())));
  std::map<int64_t, SmallVector<int64_t>> groups; // by the place elsewhere
  int64_t size = countAlong(mesh, axes);
  for (int64_t device = 0; device < countAlong(mesh, all); ++device) {
    int64_t rank = 0, elsewhere = device;
    for (int64_t axis : axes) {
      int64_t place = device / strideOf(mesh, axis) % mesh[axis];
      rank = rank * mesh[axis] + place;
      elsewhere -= place * strideOf(mesh, axis);
    }
    groups[elsewhere].resize(size);
    groups[elsewhere][rank] = device;
  }
  SmallVector<Attribute> attributes;
  for (auto &[elsewhere, members] : groups)
    attributes.push_back(b.getDenseI64ArrayAttr(members));
  return b.getArrayAttr(attributes);
}

Value rankAlong(OpBuilder &b, Location loc, ArrayRef<int64_t> mesh,
                ArrayRef<int64_t> axes, int64_t first) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value device = spmd::DeviceIndexOp::create(b, loc, b.getIndexType());
  if (first != 0)
    device = arith::SubIOp::create(b, loc, device, constant(first));
  Value rank;
  for (int64_t axis : axes) {
    Value place = device;
    if (int64_t stride = strideOf(mesh, axis); stride != 1)
      place = arith::DivUIOp::create(b, loc, place, constant(stride));
    if (axis != 0)
      place = arith::RemUIOp::create(b, loc, place, constant(mesh[axis]));
    if (rank) {
      rank = arith::MulIOp::create(b, loc, rank, constant(mesh[axis]));
      rank = arith::AddIOp::create(b, loc, rank, place);
    } else {
      rank = place;
    }
  }
  return rank ? rank : constant(0);
}

/// How many elements part `rank` has.
static OpFoldResult sizeOfPart(OpBuilder &b, Location loc, Value rank,
                               int64_t size, int64_t parts) {
  if (size % parts == 0)
    return b.getIndexAttr(size / parts);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value isLarge = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rank,
                                        constant(size % parts));
  return arith::SelectOp::create(b, loc, isLarge, constant(size / parts + 1),
                                 constant(size / parts))
      .getResult();
}

Value beginOfPart(OpBuilder &b, Location loc, Value rank, int64_t size,
                  int64_t parts) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value begin = arith::MulIOp::create(b, loc, rank, constant(size / parts));
  if (size % parts == 0)
    return begin;
  Value larger = arith::MinUIOp::create(b, loc, rank, constant(size % parts));
  return arith::AddIOp::create(b, loc, begin, larger);
}

/// The same where parts have sizes of their own.
static Value sizeBetween(OpBuilder &b, Location loc, Value rank,
                         ArrayRef<int64_t> bounds) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value size;
  for (size_t part = 0; part + 1 < bounds.size(); ++part) {
    Value own = constant(bounds[part + 1] - bounds[part]);
    if (!size) {
      size = own;
      continue;
    }
    Value isThis = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rank,
                                         constant(part));
    size = arith::SelectOp::create(b, loc, isThis, own, size);
  }
  return size;
}

Value emptyPart(OpBuilder &b, Location loc, ArrayRef<int64_t> full,
                Type element, spmd::LayoutAttr layout) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(layout.shardShape(full))) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    Value rank =
        rankAlong(b, loc, layout.getMesh(), layout.getSplit()[dim].asArrayRef(),
                  layout.firstDevice());
    if (layout.getOffsets().empty())
      sizes.push_back(sizeOfPart(b, loc, rank, full[dim], layout.parts(dim)));
    else
      sizes.push_back(
          sizeBetween(b, loc, rank, layout.boundsOf(dim, full[dim])));
  }
  return tensor::EmptyOp::create(b, loc, sizes, element);
}

Value sliceOf(OpBuilder &b, Location loc, Value tensor, unsigned dim,
              Value rank, int64_t parts) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  sizes[dim] = sizeOfPart(b, loc, rank, type.getDimSize(dim), parts);
  offsets[dim] = beginOfPart(b, loc, rank, type.getDimSize(dim), parts);
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, ones);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

/// The cuts on the way from one layout to another.
class Way {
public:
  Way(ArrayRef<int64_t> full, spmd::LayoutAttr from, spmd::LayoutAttr to)
      : now(cutsOf(from)), target(cutsOf(to)), full(full), from(from), to(to) {}

  /// Whether the parts of `dim` have the same size, before and after.
  bool isEven(unsigned dim) const {
    return full[dim] % to.parts(dim) == 0 && full[dim] % from.parts(dim) == 0;
  }

  /// Whether parts of different sizes change otherwise than by a cut of what
  /// each device has whole.
  bool mustMove() const {
    for (unsigned dim = 0; dim < now.size(); ++dim)
      if (now[dim] != target[dim] && !isEven(dim) && !now[dim].empty())
        return true;
    return false;
  }

  /// The axis that cuts `dim` next, where nothing of it must be undone first.
  std::optional<int64_t> nextAxis(unsigned dim) const {
    ArrayRef<int64_t> have = now[dim], want = target[dim];
    if (have.size() >= want.size() || want.take_front(have.size()) != have)
      return std::nullopt;
    return want[have.size()];
  }

  bool mustUndo(unsigned dim) const {
    ArrayRef<int64_t> have = now[dim], want = target[dim];
    return have.size() > want.size() || want.take_front(have.size()) != have;
  }

  void reduce(ArrayRef<int64_t> partial);
  void slice();
  void undo(unsigned dim);

  SmallVector<Axes> now, target;
  SmallVector<ReshardStep> steps;

private:
  ArrayRef<int64_t> full;
  spmd::LayoutAttr from, to;

  bool isUsed(int64_t axis) const {
    return llvm::any_of(
        now, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
  }
};

void Way::reduce(ArrayRef<int64_t> partial) {
  Axes rest(partial);
  for (unsigned dim = 0; dim < now.size(); ++dim)
    while (auto axis = nextAxis(dim)) {
      if (!llvm::is_contained(rest, *axis) || !isEven(dim))
        break;
      steps.push_back({ReshardStep::ReduceScatter, dim, 0, {*axis}});
      now[dim].push_back(*axis);
      llvm::erase(rest, *axis);
    }
  if (!rest.empty())
    steps.push_back({ReshardStep::AllReduce, 0, 0, rest});
}

void Way::slice() {
  for (unsigned dim = 0; dim < now.size(); ++dim) {
    // Parts of different sizes are not cut again, so that is done at once.
    if (!isEven(dim) &&
        llvm::any_of(target[dim], [&](int64_t axis) { return isUsed(axis); }))
      continue;
    for (auto axis = nextAxis(dim); axis && !isUsed(*axis);
         axis = nextAxis(dim)) {
      if (!steps.empty() && steps.back().kind == ReshardStep::Slice &&
          steps.back().dim == dim)
        steps.back().axes.push_back(*axis);
      else
        steps.push_back({ReshardStep::Slice, dim, 0, {*axis}});
      now[dim].push_back(*axis);
    }
  }
}

/// Takes the innermost axis from `dim`: to the dimension that wants it next, or
/// by gathering.
void Way::undo(unsigned dim) {
  int64_t axis = now[dim].pop_back_val();
  for (unsigned other = 0; other < now.size(); ++other)
    if (other != dim && nextAxis(other) == axis && isEven(other)) {
      steps.push_back({ReshardStep::AllToAll, other, dim, {axis}});
      now[other].push_back(axis);
      return;
    }
  if (!steps.empty() && steps.back().kind == ReshardStep::AllGather &&
      steps.back().dim == dim)
    steps.back().axes.insert(steps.back().axes.begin(), axis);
  else
    steps.push_back({ReshardStep::AllGather, dim, 0, {axis}});
}

} // namespace

SmallVector<ReshardStep> planReshard(ArrayRef<int64_t> full,
                                     spmd::LayoutAttr from, spmd::LayoutAttr to,
                                     ArrayRef<int64_t> partial) {
  Way way(full, from, to);
  if (way.mustMove()) {
    if (!partial.empty())
      way.steps.push_back({ReshardStep::AllReduce, 0, 0, Axes(partial)});
    way.steps.push_back({ReshardStep::Move, 0, 0, {}});
    return way.steps;
  }
  way.reduce(partial);
  way.slice();
  for (unsigned dim = 0; dim < way.now.size(); ++dim)
    while (way.mustUndo(dim))
      way.undo(dim);
  way.slice();
  return way.steps;
}

int64_t bytesReceived(ArrayRef<ReshardStep> steps, ArrayRef<int64_t> mesh,
                      int64_t bytes) {
  int64_t received = 0;
  for (const ReshardStep &step : steps) {
    int64_t count = countAlong(mesh, step.axes);
    switch (step.kind) {
    case ReshardStep::Slice:
      bytes /= count;
      break;
    case ReshardStep::AllToAll:
      received += bytes / count * (count - 1);
      break;
    case ReshardStep::AllGather:
      received += bytes * (count - 1);
      bytes *= count;
      break;
    case ReshardStep::ReduceScatter:
      received += bytes / count * (count - 1);
      bytes /= count;
      break;
    case ReshardStep::AllReduce:
      received += 2 * bytes / count * (count - 1);
      break;
    case ReshardStep::Move:
      received += bytes; // about as much as a device has before
      break;
    }
  }
  return received;
}

int64_t bytesOf(RankedTensorType type, ArrayRef<int64_t> shape) {
  Type element = type.getElementType();
  return ShapedType::getNumElements(shape) *
         (element.isIntOrFloat()
              ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
              : 8);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static Value emitStep(OpBuilder &b, Location loc, Value local,
                      ArrayRef<int64_t> mesh, const ReshardStep &step,
                      ir::ReductionKind kind) {
  int64_t count = countAlong(mesh, step.axes);
  if (step.kind == ReshardStep::Slice)
    return sliceOf(b, loc, local, step.dim, rankAlong(b, loc, mesh, step.axes),
                   count);
  Collectives among(b, loc, groupsAlong(b, mesh, step.axes), count);
  switch (step.kind) {
  case ReshardStep::AllToAll:
    return among.allToAll(local, step.dim, step.other);
  case ReshardStep::AllGather:
    return among.allGather(local, step.dim);
  case ReshardStep::ReduceScatter:
    return among.reduceScatter(local, kind, step.dim);
  case ReshardStep::AllReduce:
    return among.allReduce(local, kind);
  default:
    llvm_unreachable("a step that is made elsewhere");
  }
}

Value reshard(OpBuilder &b, Location loc, ArrayRef<int64_t> full, Value local,
              spmd::LayoutAttr from, spmd::LayoutAttr to,
              ArrayRef<ReshardStep> steps, ir::ReductionKind kind) {
  for (const ReshardStep &step : steps) {
    if (step.kind != ReshardStep::Move) {
      local = emitStep(b, loc, local, from.getMesh(), step, kind);
      continue;
    }
    auto type = cast<RankedTensorType>(local.getType());
    Value init = emptyPart(b, loc, full, type.getElementType(), to);
    local = spmd::MoveOp::create(b, loc, TypeRange(init.getType()), local, init,
                                 from, to, full)
                ->getResult(0);
  }
  return local;
}

} // namespace mgpu::conversion
