// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Reshard.h"

#include "dialect/conversion/spmd/Collectives.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Cut> cutsOf(spmd::LayoutAttr layout) {
  SmallVector<Cut> cuts(layout.getSplit().size());
  for (auto [dim, cut] : llvm::enumerate(cuts)) {
    cut.axes = Axes(layout.getSplit()[dim].asArrayRef());
    if (!layout.getOffsets().empty())
      cut.bounds.assign(layout.getOffsets()[dim].asArrayRef().begin(),
                        layout.getOffsets()[dim].asArrayRef().end());
    if (!layout.getHalos().empty() && !layout.getHalos()[dim].empty()) {
      cut.low = layout.getHalos()[dim][0];
      cut.high = layout.getHalos()[dim][1];
    }
  }
  return cuts;
}

spmd::LayoutAttr layoutOfCuts(MLIRContext *context, ArrayRef<int64_t> mesh,
                              ArrayRef<Cut> cuts) {
  auto list = [&](ArrayRef<int64_t> values) {
    return DenseI64ArrayAttr::get(context, values);
  };
  SmallVector<DenseI64ArrayAttr> split, offsets, halos;
  for (const Cut &cut : cuts) {
    split.push_back(list(cut.axes));
    offsets.push_back(list(cut.bounds));
    halos.push_back(cut.hasHalo() ? list({cut.low, cut.high}) : list({}));
  }
  if (llvm::all_of(offsets, [](auto each) { return each.empty(); }))
    offsets.clear();
  if (llvm::all_of(halos, [](auto each) { return each.empty(); }))
    halos.clear();
  return spmd::LayoutAttr::get(context, mesh, split, std::nullopt, offsets,
                               halos);
}

spmd::LayoutAttr layoutOfCuts(MLIRContext *context, ArrayRef<int64_t> mesh,
                              ArrayRef<Axes> cuts) {
  return spmd::LayoutAttr::get(context, mesh,
                               llvm::map_to_vector(cuts, [&](const Axes &axes) {
                                 return DenseI64ArrayAttr::get(context, axes);
                               }));
}

SmallVector<int64_t> equalBounds(int64_t size, int64_t parts) {
  SmallVector<int64_t> bounds;
  for (int64_t part = 0; part <= parts; ++part)
    bounds.push_back(size / parts * part + std::min(part, size % parts));
  return bounds;
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

OpFoldResult valueOfRank(OpBuilder &b, Location loc, Value rank,
                         ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return b.getIndexAttr(values[0]);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  Value found = constant(values[0]);
  for (size_t k = 1; k < values.size(); ++k) {
    if (values[k] == values[k - 1])
      continue;
    Value isFrom = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                         rank, constant(k));
    found = arith::SelectOp::create(b, loc, isFrom, constant(values[k]), found);
  }
  return found;
}

SmallVector<OpFoldResult> sizesOfPart(OpBuilder &b, Location loc,
                                      ArrayRef<int64_t> full,
                                      spmd::LayoutAttr layout) {
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(layout.shardShape(full))) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(b.getIndexAttr(size));
      continue;
    }
    Value rank =
        rankAlong(b, loc, layout.getMesh(), layout.getSplit()[dim].asArrayRef(),
                  layout.firstDevice());
    if (layout.getOffsets().empty() && layout.getHalos().empty()) {
      sizes.push_back(sizeOfPart(b, loc, rank, full[dim], layout.parts(dim)));
      continue;
    }
    SmallVector<int64_t> each;
    for (auto [begin, end] : layout.rangesOf(dim, full[dim]))
      each.push_back(end - begin);
    sizes.push_back(valueOfRank(b, loc, rank, each));
  }
  return sizes;
}

Value emptyPart(OpBuilder &b, Location loc, ArrayRef<int64_t> full,
                Type element, spmd::LayoutAttr layout) {
  return tensor::EmptyOp::create(b, loc, sizesOfPart(b, loc, full, layout),
                                 element);
}

/// `size` elements of dimension `dim`, from `begin` on.
static Value sliceBetween(OpBuilder &b, Location loc, Value tensor,
                          unsigned dim, OpFoldResult begin, OpFoldResult size) {
  auto rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  offsets[dim] = begin;
  sizes[dim] = size;
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, ones);
}

Value sliceOf(OpBuilder &b, Location loc, Value tensor, unsigned dim,
              Value rank, int64_t parts) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  return sliceBetween(b, loc, tensor, dim,
                      beginOfPart(b, loc, rank, size, parts),
                      sizeOfPart(b, loc, rank, size, parts));
}

/// The same where parts are not as equal as they can be.
static Value sliceOf(OpBuilder &b, Location loc, Value tensor, unsigned dim,
                     Value rank, ArrayRef<std::pair<int64_t, int64_t>> ranges) {
  SmallVector<int64_t> begins, sizes;
  for (auto [begin, end] : ranges) {
    begins.push_back(begin);
    sizes.push_back(end - begin);
  }
  return sliceBetween(b, loc, tensor, dim, valueOfRank(b, loc, rank, begins),
                      valueOfRank(b, loc, rank, sizes));
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
    return now[dim].bounds.empty() && target[dim].bounds.empty() &&
           !target[dim].hasHalo() && full[dim] % to.parts(dim) == 0 &&
           full[dim] % from.parts(dim) == 0;
  }

  /// Whether parts of different sizes change otherwise than by a cut of what
  /// each device has whole.
  bool mustMove() const {
    for (unsigned dim = 0; dim < now.size(); ++dim)
      if (now[dim] != target[dim] && !isEven(dim) && !now[dim].axes.empty())
        return true;
    return false;
  }

  /// The axis that cuts `dim` next, where nothing of it must be undone first.
  std::optional<int64_t> nextAxis(unsigned dim) const {
    ArrayRef<int64_t> have = now[dim].axes, want = target[dim].axes;
    if (have.size() >= want.size() || want.take_front(have.size()) != have)
      return std::nullopt;
    return want[have.size()];
  }

  bool mustUndo(unsigned dim) const {
    ArrayRef<int64_t> have = now[dim].axes, want = target[dim].axes;
    return have.size() > want.size() || want.take_front(have.size()) != have;
  }

  void reduce(ArrayRef<int64_t> partial);
  void slice();
  void undo(unsigned dim);

  SmallVector<Cut> now, target;
  SmallVector<ReshardStep> steps;

private:
  ArrayRef<int64_t> full;
  spmd::LayoutAttr from, to;

  bool isUsed(int64_t axis) const {
    return llvm::any_of(now, [&](const Cut &cut) {
      return llvm::is_contained(cut.axes, axis);
    });
  }
};

void Way::reduce(ArrayRef<int64_t> partial) {
  Axes rest(partial);
  for (unsigned dim = 0; dim < now.size(); ++dim)
    while (auto axis = nextAxis(dim)) {
      if (!llvm::is_contained(rest, *axis) || !isEven(dim))
        break;
      steps.push_back({ReshardStep::ReduceScatter, dim, 0, {*axis}});
      now[dim].axes.push_back(*axis);
      llvm::erase(rest, *axis);
    }
  if (!rest.empty())
    steps.push_back({ReshardStep::AllReduce, 0, 0, rest});
}

void Way::slice() {
  for (unsigned dim = 0; dim < now.size(); ++dim) {
    // Parts of different sizes are not cut again, so that is done at once.
    if (!isEven(dim) && llvm::any_of(target[dim].axes, [&](int64_t axis) {
          return isUsed(axis);
        }))
      continue;
    for (auto axis = nextAxis(dim); axis && !isUsed(*axis);
         axis = nextAxis(dim)) {
      if (!steps.empty() && steps.back().kind == ReshardStep::Slice &&
          steps.back().dim == dim)
        steps.back().axes.push_back(*axis);
      else
        steps.push_back({ReshardStep::Slice, dim, 0, {*axis}});
      now[dim].axes.push_back(*axis);
    }
    if (now[dim] != target[dim] && now[dim].axes == target[dim].axes) {
      steps.back().ranges = to.rangesOf(dim, full[dim]);
      now[dim] = target[dim];
    }
  }
}

/// Takes the innermost axis from `dim`: to the dimension that wants it next, or
/// by gathering.
void Way::undo(unsigned dim) {
  int64_t axis = now[dim].axes.pop_back_val();
  for (unsigned other = 0; other < now.size(); ++other)
    if (other != dim && nextAxis(other) == axis && isEven(other)) {
      steps.push_back({ReshardStep::AllToAll, other, dim, {axis}});
      now[other].axes.push_back(axis);
      return;
    }
  if (!steps.empty() && steps.back().kind == ReshardStep::AllGather &&
      steps.back().dim == dim)
    steps.back().axes.insert(steps.back().axes.begin(), axis);
  else
    steps.push_back({ReshardStep::AllGather, dim, 0, {axis}});
}

} // namespace

/// The most elements that a device lacks of its part under `to`.
static int64_t mostLacking(ArrayRef<int64_t> full, spmd::LayoutAttr from,
                           spmd::LayoutAttr to) {
  SmallVector<SmallVector<std::pair<int64_t, int64_t>>> has, gets;
  for (auto [dim, size] : llvm::enumerate(full)) {
    has.push_back(from.rangesOf(dim, size));
    gets.push_back(to.rangesOf(dim, size));
  }
  int64_t most = 0;
  for (int64_t device = to.firstDevice(); device < to.endDevice(); ++device) {
    int64_t wanted = 1, own = from.holds(device);
    for (unsigned dim = 0; dim < full.size(); ++dim) {
      auto [begin, end] = gets[dim][to.partOf(dim, device)];
      wanted *= end - begin;
      if (own == 0)
        continue;
      auto [first, last] = has[dim][from.partOf(dim, device)];
      own *= std::max<int64_t>(std::min(end, last) - std::max(begin, first), 0);
    }
    most = std::max(most, wanted - own);
  }
  return most;
}

/// Bytes that a device receives in the steps from `from` to `to`.
static int64_t bytesReceived(ArrayRef<ReshardStep> steps,
                             ArrayRef<int64_t> full, int64_t elementBytes,
                             spmd::LayoutAttr from, spmd::LayoutAttr to) {
  int64_t received = 0;
  int64_t has = elementBytes * ShapedType::getNumElements(
                                   from.shardShape(full, from.firstDevice()));
  for (const ReshardStep &step : steps) {
    int64_t count = countAlong(from.getMesh(), step.axes);
    switch (step.kind) {
    case ReshardStep::Slice:
      has /= count;
      break;
    case ReshardStep::AllToAll:
      received += has / count * (count - 1);
      break;
    case ReshardStep::AllGather:
      received += has * (count - 1);
      has *= count;
      break;
    case ReshardStep::ReduceScatter:
      received += has / count * (count - 1);
      has /= count;
      break;
    case ReshardStep::AllReduce:
      received += 2 * has / count * (count - 1);
      break;
    case ReshardStep::Move:
      received += elementBytes * mostLacking(full, from, to);
      break;
    }
  }
  return received;
}

SmallVector<ReshardStep> planReshard(ArrayRef<int64_t> full,
                                     spmd::LayoutAttr from, spmd::LayoutAttr to,
                                     ArrayRef<int64_t> partial) {
  Way way(full, from, to);
  SmallVector<ReshardStep> moved;
  if (!partial.empty())
    moved.push_back({ReshardStep::AllReduce, 0, 0, Axes(partial)});
  moved.push_back({ReshardStep::Move, 0, 0, {}});
  if (way.mustMove())
    return moved;
  bool isEven = llvm::all_of(llvm::seq<unsigned>(0, full.size()),
                             [&](unsigned dim) { return way.isEven(dim); });
  way.reduce(partial);
  way.slice();
  for (unsigned dim = 0; dim < way.now.size(); ++dim)
    while (way.mustUndo(dim))
      way.undo(dim);
  way.slice();
  constexpr int64_t any = 8; // bytes: both have as many
  if (isEven || bytesReceived(way.steps, full, any, from, to) <=
                    bytesReceived(moved, full, any, from, to))
    return way.steps;
  return moved;
}

int64_t bytesReceived(ArrayRef<ReshardStep> steps, RankedTensorType full,
                      spmd::LayoutAttr from, spmd::LayoutAttr to) {
  return bytesReceived(steps, full.getShape(), bytesOf(full, {}), from, to);
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
  if (step.kind == ReshardStep::Slice) {
    Value rank = rankAlong(b, loc, mesh, step.axes);
    return step.ranges.empty()
               ? sliceOf(b, loc, local, step.dim, rank, count)
               : sliceOf(b, loc, local, step.dim, rank, step.ranges);
  }
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
