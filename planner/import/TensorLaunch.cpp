// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TensorLaunch.h"

#include "planner/import/TensorFusion.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

/// The device handle a memref was allocated with; null where the text does not
/// show it.
Value deviceOf(Value memref) {
  while (memref) {
    memref = rootOf(memref);
    if (auto argument = dyn_cast<BlockArgument>(memref)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop || argument == loop.getInductionVar())
        return {};
      memref = loop.getTiedLoopInit(argument)->get();
      continue;
    }
    Operation *op = memref.getDefiningOp();
    if (auto alloc = dyn_cast<ir::AllocOp>(op))
      return alloc.getDevice();
    if (auto alloc = dyn_cast<ir::ShardedAllocOp>(op))
      return alloc.getDevices()[cast<OpResult>(memref).getResultNumber()];
    return {};
  }
  return {};
}

/// The one device of several memrefs. Fails after a diagnostic.
FailureOr<Value> deviceOfAll(Operation *op, ValueRange memrefs) {
  Value device;
  for (Value memref : memrefs) {
    Value here = deviceOf(memref);
    if (!here) {
      op->emitOpError("computes on a memref that is no device's as far as the "
                      "text shows; copy it to a buffer of mgpu.alloc in this "
                      "function, or write an mgpu.launch");
      return failure();
    }
    device = device ? device : here;
  }
  if (!device)
    return op->emitOpError("uses no memref, so nothing says which device is "
                           "to run it; write an mgpu.launch");
  return device;
}

/// Threads of a block along an axis of `extent`: all of it, a divisor that is
/// no less than half of `most`, or `most`, the last block being guarded then.
int64_t threadsAlong(int64_t extent, int64_t most) {
  if (extent <= most)
    return extent;
  for (int64_t threads = most; 2 * threads >= most; --threads)
    if (extent % threads == 0)
      return threads;
  return most;
}

/// A launch with a thread for each point of a box.
class PointLaunch {
public:
  /// `extents`: static ones, the last innermost. Their axes are x, y, and z,
  /// which has all others.
  PointLaunch(Operation *op, Value device, ArrayRef<int64_t> extents);
  ir::LaunchOp launch;
  /// Where the body of a thread is to be built, and the point it stands for.
  OpBuilder &body() { return *inside; }
  SmallVector<Value> point;
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(*inside, location, value);
  }

private:
  Location location;
  std::optional<OpBuilder> inside;
};

/// "matmul" of linalg.matmul.
StringRef shortName(Operation *op) { return op->getName().stripDialect(); }

ir::LaunchOp makeLaunch(OpBuilder &b, Operation *op, Value device,
                        ValueRange grid, ValueRange block) {
  auto launch =
      ir::LaunchOp::create(b, op->getLoc(), device, grid, block, Value());
  launch->setAttr("mgpu.name", b.getStringAttr(shortName(op)));
  if (auto name = op->getAttrOfType<StringAttr>("mgpu.name"))
    launch->setAttr("mgpu.name", name);
  return launch;
}

/// So that messages, `plan --explain` and the kernel's name show all of them.
void joinNames(ir::LaunchOp launch, ArrayRef<linalg::LinalgOp> run) {
  constexpr size_t most = 4;
  std::string name;
  SmallVector<Location> locations;
  for (linalg::LinalgOp op : run) {
    auto given = op->getAttrOfType<StringAttr>("mgpu.name");
    if (locations.size() < most)
      name += (name.empty() ? "" : "_") +
              (given ? given.getValue() : shortName(op)).str();
    locations.push_back(op.getLoc());
  }
  if (run.size() > most)
    name += "_and_" + std::to_string(run.size() - most);
  launch->setAttr("mgpu.name", StringAttr::get(launch.getContext(), name));
  launch->setLoc(FusedLoc::get(launch.getContext(), locations));
}

/// block id * threads + thread id along an axis.
Value globalId(OpBuilder &b, Location loc, unsigned axis, Value threads) {
  auto dimension = gpu::Dimension(axis);
  Value block = gpu::BlockIdOp::create(b, loc, dimension);
  Value thread = gpu::ThreadIdOp::create(b, loc, dimension);
  Value base = arith::MulIOp::create(b, loc, block, threads);
  return arith::AddIOp::create(b, loc, base, thread);
}

/// Goes on inside `if (id < extent)`.
void guard(OpBuilder &b, Location loc, Value id, Value extent) {
  Value isInside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, id, extent);
  auto branch = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

PointLaunch::PointLaunch(Operation *op, Value device, ArrayRef<int64_t> extents)
    : location(op->getLoc()) {
  constexpr int64_t mostAlone = 256, mostX = 32, mostY = 8;
  int64_t size[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
  for (auto [k, extent] : llvm::enumerate(llvm::reverse(extents)))
    size[std::min<size_t>(k, 2)] *= extent;
  threads[0] = threadsAlong(size[0], extents.size() > 1 ? mostX : mostAlone);
  threads[1] = threadsAlong(size[1], mostY);
  OpBuilder b(op);
  SmallVector<Value> grid, block;
  for (unsigned axis = 0; axis < 3; ++axis) {
    grid.push_back(arith::ConstantIndexOp::create(
        b, location, llvm::divideCeil(size[axis], threads[axis])));
    block.push_back(arith::ConstantIndexOp::create(b, location, threads[axis]));
  }
  launch = makeLaunch(b, op, device, grid, block);
  inside.emplace(launch.getBody().front().getTerminator());
  Value ids[3];
  for (unsigned axis = 0; axis < std::min<size_t>(extents.size(), 3); ++axis)
    ids[axis] = globalId(*inside, location, axis, index(threads[axis]));
  for (unsigned axis = 0; axis < 3; ++axis)
    if (size[axis] % threads[axis] != 0)
      guard(*inside, location, ids[axis], index(size[axis]));
  point.resize(extents.size());
  for (size_t k = 0; k < extents.size(); ++k) {
    size_t fromLast = extents.size() - 1 - k;
    if (fromLast < 2 || extents.size() == 3) {
      point[k] = ids[fromLast];
      continue;
    }
    // z counts the outer dimensions together, the last of them fastest.
    int64_t below = 1;
    for (size_t j = k + 1; j + 2 < extents.size(); ++j)
      below *= extents[j];
    Value at = ids[2];
    if (below > 1)
      at = arith::DivUIOp::create(*inside, location, at, index(below));
    if (k > 0)
      at = arith::RemUIOp::create(*inside, location, at, index(extents[k]));
    point[k] = at;
  }
}

/// `make` builds one trip from the loop's counter and what is carried, and
/// returns what goes on. Afterwards `b` is where it was.
SmallVector<Value> makeLoop(
    OpBuilder &b, Location loc, int64_t trips, ValueRange carried,
    function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> make) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = arith::ConstantIndexOp::create(b, loc, trips);
  auto loop = scf::ForOp::create(
      b, loc, zero, end, one, carried,
      [&](OpBuilder &inner, Location, Value counter, ValueRange values) {
        scf::YieldOp::create(inner, loc, make(inner, counter, values));
      });
  return SmallVector<Value>(loop.getResults());
}

/// A structured operation, whatever its name.
class StructuredLaunch {
public:
  StructuredLaunch(linalg::LinalgOp op, PointLaunch &launch)
      : op(op), launch(launch), extents(op.getStaticLoopRanges()),
        loc(op->getLoc()), point(extents.size()) {}
  void build();

private:
  Value load(OpBuilder &b, OpOperand &operand) {
    if (!isa<MemRefType>(operand.get().getType()))
      return operand.get();
    return memref::LoadOp::create(b, loc, operand.get(), indices(b, operand));
  }
  SmallVector<Value> indices(OpBuilder &b, OpOperand &operand) {
    SmallVector<Value> all;
    for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults())
      all.push_back(
          isa<AffineDimExpr>(each)
              ? point[cast<AffineDimExpr>(each).getPosition()]
              : affine::expandAffineExpr(b, loc, each, point, ValueRange()));
    return all;
  }
  /// The body at `point`, on the outputs' values so far.
  SmallVector<Value> step(OpBuilder &b, ValueRange outputs);
  SmallVector<Value> reduce(OpBuilder &b, ArrayRef<unsigned> dimensions,
                            ValueRange outputs);

  linalg::LinalgOp op;
  PointLaunch &launch;
  SmallVector<int64_t> extents;
  Location loc;
  SmallVector<Value> point; ///< of the whole iteration space
};

SmallVector<Value> StructuredLaunch::step(OpBuilder &b, ValueRange outputs) {
  IRMapping map;
  Block *body = op.getBlock();
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (!argument.use_empty())
      map.map(argument, load(b, *operand));
  }
  for (auto [argument, value] : llvm::zip(op.getRegionOutputArgs(), outputs))
    if (value)
      map.map(argument, value);
  for (Operation &each : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(each))
      map.map(index.getResult(), point[index.getDim()]);
    else
      b.clone(each, map);
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  return results;
}

SmallVector<Value> StructuredLaunch::reduce(OpBuilder &b,
                                            ArrayRef<unsigned> dimensions,
                                            ValueRange outputs) {
  if (dimensions.empty())
    return step(b, outputs);
  return makeLoop(b, loc, extents[dimensions.front()], outputs,
                  [&](OpBuilder &inner, Value counter, ValueRange values) {
                    point[dimensions.front()] = counter;
                    return reduce(inner, dimensions.drop_front(), values);
                  });
}

void StructuredLaunch::build() {
  SmallVector<unsigned> parallel, reductions;
  for (auto [k, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    (kind == utils::IteratorType::parallel ? parallel : reductions)
        .push_back(k);
  for (auto [k, dimension] : llvm::enumerate(parallel))
    point[dimension] = launch.point[k];
  OpBuilder &b = launch.body();
  SmallVector<Value> outputs;
  for (OpOperand &init : op.getDpsInitsMutable())
    outputs.push_back(!reductions.empty() ||
                              op.payloadUsesValueFromOperand(&init)
                          ? load(b, init)
                          : Value());
  SmallVector<Value> results = reduce(b, reductions, outputs);
  for (auto [init, result] : llvm::zip(op.getDpsInitsMutable(), results))
    memref::StoreOp::create(b, loc, result, init.get(), indices(b, init));
}

/// Of operations that fusibleFrom found, or of one alone.
LogicalResult launchStructured(ArrayRef<linalg::LinalgOp> run,
                               llvm::SetVector<Value> &forwarded) {
  linalg::LinalgOp last = run.back();
  SmallVector<int64_t> parallel = parallelExtents(last);
  SmallVector<Value> memrefs;
  for (Value operand : last->getOperands())
    if (isa<MemRefType>(operand.getType()))
      memrefs.push_back(operand);
  FailureOr<Value> device = deviceOfAll(last, memrefs);
  if (failed(device))
    return failure();
  if (!llvm::is_contained(parallel, 0)) {
    PointLaunch launch(last, *device, parallel);
    for (linalg::LinalgOp op : run)
      StructuredLaunch(op, launch).build();
    if (isPlainMatmul(last)) {
      // Which operand is which, for a target with a text of its own.
      launch.launch.getArgsMutable().assign(last->getOperands());
      launch.launch->setAttr("mgpu.matmul", UnitAttr::get(last->getContext()));
    }
    if (run.size() > 1) {
      joinNames(launch.launch, run);
      forwardStores(launch.launch, forwarded);
    }
  }
  for (linalg::LinalgOp op : run)
    op->erase();
  return success();
}

/// A thread for each row: its largest element, the sum of the exponentials of
/// what is below that, in order, and the quotients.
LogicalResult launchSoftmax(linalg::SoftmaxOp op) {
  auto input = dyn_cast<MemRefType>(op.getInput().getType());
  auto output = dyn_cast<MemRefType>(op.getOutput().getType());
  if (!input || !output || !input.hasStaticShape() || !output.hasStaticShape())
    return success();
  FailureOr<Value> device =
      deviceOfAll(op, ValueRange{op.getInput(), op.getOutput()});
  if (failed(device))
    return failure();
  Location loc = op.getLoc();
  unsigned along = op.getDimension();
  int64_t length = input.getDimSize(along);
  SmallVector<int64_t> rows(input.getShape());
  rows.erase(rows.begin() + along);
  if (length == 0 || llvm::is_contained(rows, 0)) {
    op->erase();
    return success();
  }
  PointLaunch launch(op, *device, rows);
  OpBuilder &b = launch.body();
  auto element = cast<FloatType>(input.getElementType());
  SmallVector<Value> at(launch.point);
  at.insert(at.begin() + along, Value());
  auto loadAt = [&](OpBuilder &inner, Value memref, Value counter) -> Value {
    at[along] = counter;
    return memref::LoadOp::create(inner, loc, memref, at);
  };
  auto store = [&](OpBuilder &inner, Value value, Value counter) {
    at[along] = counter;
    memref::StoreOp::create(inner, loc, value, op.getOutput(), at);
  };
  Value lowest = arith::ConstantOp::create(
      b, loc,
      FloatAttr::get(element, APFloat::getInf(element.getFloatSemantics(),
                                              /*Negative=*/true)));
  Value zero = arith::ConstantOp::create(b, loc, FloatAttr::get(element, 0.0));
  Value largest = makeLoop(b, loc, length, lowest,
                           [&](OpBuilder &inner, Value k, ValueRange carried) {
                             Value x = loadAt(inner, op.getInput(), k);
                             return SmallVector<Value>{arith::MaxNumFOp::create(
                                 inner, loc, carried[0], x)};
                           })[0];
  Value sum = makeLoop(
      b, loc, length, zero, [&](OpBuilder &inner, Value k, ValueRange carried) {
        Value x = loadAt(inner, op.getInput(), k);
        Value below = arith::SubFOp::create(inner, loc, x, largest);
        Value power = math::ExpOp::create(inner, loc, below);
        store(inner, power, k);
        return SmallVector<Value>{
            arith::AddFOp::create(inner, loc, carried[0], power)};
      })[0];
  makeLoop(b, loc, length, {}, [&](OpBuilder &inner, Value k, ValueRange) {
    Value power = loadAt(inner, op.getOutput(), k);
    store(inner, arith::DivFOp::create(inner, loc, power, sum), k);
    return SmallVector<Value>();
  });
  op->erase();
  return success();
}

/// The memrefs from outside that a region names.
SmallVector<Value> memrefsOf(Operation *op) {
  llvm::SetVector<Value> found;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<MemRefType>(operand.getType()) &&
          !op->isAncestor(operand.getParentBlock()->getParentOp()))
        found.insert(operand);
  });
  return found.takeVector();
}

LogicalResult launchParallel(scf::ParallelOp op) {
  unsigned count = op.getNumLoops();
  if (op.getNumResults() != 0 || count > 3)
    return success();
  FailureOr<Value> device = deviceOfAll(op, memrefsOf(op));
  if (failed(device))
    return failure();
  Location loc = op.getLoc();
  OpBuilder b(op);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> extents(count), grid(3, one), block(3, one);
  constexpr int64_t mostAlone = 256, most[] = {32, 8, 1};
  for (unsigned k = 0; k < count; ++k) { // the last dimension is x
    unsigned axis = count - 1 - k;
    Value length = arith::SubIOp::create(b, loc, op.getUpperBound()[k],
                                         op.getLowerBound()[k]);
    extents[k] = arith::CeilDivSIOp::create(b, loc, length, op.getStep()[k]);
    block[axis] = arith::ConstantIndexOp::create(
        b, loc, count == 1 ? mostAlone : most[axis]);
    Value blocks = arith::CeilDivSIOp::create(b, loc, extents[k], block[axis]);
    grid[axis] = arith::MaxSIOp::create(b, loc, blocks, one);
  }
  ir::LaunchOp launch = makeLaunch(b, op, *device, grid, block);
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  IRMapping map;
  SmallVector<Value> ids(count);
  for (unsigned k = 0; k < count; ++k)
    ids[k] = globalId(b, loc, count - 1 - k, block[count - 1 - k]);
  for (unsigned k = 0; k < count; ++k)
    guard(b, loc, ids[k], extents[k]);
  for (unsigned k = 0; k < count; ++k) {
    Value scaled = arith::MulIOp::create(b, loc, ids[k], op.getStep()[k]);
    map.map(
        op.getInductionVars()[k],
        Value(arith::AddIOp::create(b, loc, op.getLowerBound()[k], scaled)));
  }
  for (Operation &each : op.getBody()->without_terminator())
    b.clone(each, map);
  op->erase();
  return success();
}

} // namespace

LogicalResult launchTensorOps(ModuleOp module, bool fuse) {
  SmallVector<Operation *> found;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op))
        found.push_back(op);
      return isa<ir::LaunchOp, scf::ParallelOp>(op) ? WalkResult::skip()
                                                    : WalkResult::advance();
    });
  if (found.empty())
    return success();
  // The text may have named no operation of those.
  module.getContext()
      ->loadDialect<arith::ArithDialect, gpu::GPUDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
  llvm::SmallPtrSet<Operation *, 8> done;
  llvm::SetVector<Value> forwarded;
  for (Operation *op : found) {
    if (done.contains(op))
      continue;
    LogicalResult result = success();
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
      result = launchSoftmax(softmax);
    } else if (auto parallel = dyn_cast<scf::ParallelOp>(op)) {
      result = launchParallel(parallel);
    } else if (auto structured = cast<linalg::LinalgOp>(op);
               hasPointForm(structured)) {
      SmallVector<linalg::LinalgOp> run{structured};
      if (fuse)
        run = fusibleFrom(structured);
      for (linalg::LinalgOp each : run)
        done.insert(each);
      result = launchStructured(run, forwarded);
    }
    if (failed(result))
      return failure();
  }
  dropUnreadBuffers(forwarded);
  return success();
}

} // namespace mgpu::planner
