// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/RowThreads.h"

#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <functional>
#include <numeric>

namespace mgpu::conversion {

using namespace mlir;
using Combine = gpu::AllReduceOperation;

// So many threads share a row, whoever computes it: they decide the order of
// its sums, which a tuner may not change.
static constexpr int64_t threadsOfBlock = 256, subgroup = 32;
// More rows than these give a thread of its own to each thread of a large GPU,
// whose neighbours then read neighbouring columns, if not neighbouring rows.
static constexpr int64_t mostRows = 8192;
static constexpr int64_t leastColumn = 64;

static int64_t countOf(ArrayRef<int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t(1),
                         std::multiplies<>());
}

/// Rows beside each other in a block of Columns, and threads of each.
static std::pair<int64_t, int64_t> columnsOf(ArrayRef<int64_t> rows) {
  // So many blocks leave half of a large GPU idle, or more, and not twice as
  // many; fewer are too few either way.
  constexpr int64_t fewBlocks = 32, enoughBlocks = 128;
  int64_t width = 8; // 32 bytes of f32, the least a GPU moves
  while (width < subgroup && width < rows.back())
    width *= 2;
  const int64_t blocks =
      countOf(rows) / rows.back() * llvm::divideCeil(rows.back(), width);
  if (width == subgroup && blocks >= fewBlocks && blocks < enoughBlocks)
    width /= 2;
  return {width, threadsOfBlock / width};
}

std::optional<RowSharing> sharingOf(const RowForm &form) {
  const int64_t rows = countOf(form.rows);
  if (!form.isInner)
    return rows <= mostRows && form.length >= leastColumn
               ? std::optional(RowSharing::Columns)
               : std::nullopt;
  if (form.length < subgroup)
    return std::nullopt;
  return form.length >= threadsOfBlock && rows <= mostRows
             ? RowSharing::Block
             : RowSharing::Subgroup;
}

std::optional<RowChunks> chunksOf(const RowForm &form) {
  // A large GPU keeps some 500 blocks busy, and half of them at least. Chunks
  // begin at places that accesses of 16 bytes may have.
  constexpr int64_t manyBlocks = 512, fewBlocks = 64, aligned = 16;
  // Where each thread has many elements a second launch costs less; a thread of
  // a chunk has some to load at once.
  constexpr int64_t many = 256, some = 16;
  const auto sharing = sharingOf(form);
  if (!sharing || *sharing == RowSharing::Subgroup)
    return std::nullopt;
  int64_t blocks = countOf(form.rows), parts = threadsOfBlock;
  if (*sharing == RowSharing::Columns) {
    int64_t width;
    std::tie(width, parts) = columnsOf(form.rows);
    blocks =
        blocks / form.rows.back() * llvm::divideCeil(form.rows.back(), width);
  }
  if (blocks > fewBlocks || form.length < many * parts)
    return std::nullopt;
  const int64_t count =
      threadsAlong(form.length / aligned,
                   std::min(manyBlocks / blocks, form.length / (some * parts)));
  return RowChunks{count, form.length / aligned / count * aligned};
}

std::optional<RowChunks> chunksOfProduct(const RowForm &form, int64_t bytes) {
  // So many threads, each with some accesses of 16 bytes under way, keep the
  // memory of a large GPU busy.
  constexpr int64_t manyThreads = 1 << 15, access = 16, aligned = 16;
  const int64_t threads = llvm::divideCeil(countOf(form.rows) * bytes, access),
                count = std::min(manyThreads / threads,
                                 form.length / (2 * aligned));
  if (count < 2)
    return std::nullopt;
  const int64_t chunks = threadsAlong(form.length / aligned, count);
  return RowChunks{chunks, form.length / aligned / chunks * aligned};
}

bool mayShareElements(RowSharing sharing, ArrayRef<int64_t> rows,
                      int64_t length) {
  const int64_t parts = sharing == RowSharing::Block ? threadsOfBlock
                        : sharing == RowSharing::Subgroup
                            ? subgroup
                            : columnsOf(rows).second;
  // A launch costs more than a few elements one after the other, or than those
  // of a block's row that its threads have in registers.
  constexpr int64_t enough = 32 * threadsOfBlock, few = 8, inRegisters = 16;
  return countOf(rows) * parts >= enough ||
         length <= (sharing == RowSharing::Block ? inRegisters : few) * parts;
}

RowThreads::RowThreads(Operation *last, Location loc, Value device,
                       ArrayRef<int64_t> rows, RowSharing sharing)
    : body(last), sharing(sharing) {
  const std::array<int64_t, 3> sizes = sizesOf(rows);
  std::array<int64_t, 3> threads{1, 1, 1};  // of a block
  std::array<int64_t, 3> perBlock{1, 1, 1}; // rows, along each axis of the grid
  switch (sharing) {
  case RowSharing::Block:
    threads[0] = parts = threadsOfBlock;
    break;
  case RowSharing::Subgroup: {
    constexpr int64_t subgroups = threadsOfBlock / subgroup;
    threads[0] = parts = subgroup;
    threads[1] = perBlock[0] = threadsAlong(sizes[0], subgroups);
    threads[2] = perBlock[1] = threadsAlong(sizes[1], subgroups / perBlock[0]);
    break;
  }
  case RowSharing::Columns:
    std::tie(width, parts) = columnsOf(rows);
    threads = {width, parts, 1};
    perBlock[0] = width;
    break;
  }
  SmallVector<Value> grid, block;
  for (size_t axis = 0; axis < 3; ++axis) {
    grid.push_back(index(loc, llvm::divideCeil(sizes[axis], perBlock[axis])));
    block.push_back(index(loc, threads[axis]));
  }
  launch = makeLaunch(body, last, device, grid, block);
  body.setInsertionPoint(launch.getBody().front().getTerminator());
  auto thread = [&](unsigned axis, StringRef name) -> Value {
    return gpu::ThreadIdOp::create(body, named(loc, name),
                                   gpu::Dimension(axis));
  };
  Value ids[3];
  for (unsigned axis = 0; axis < std::min<size_t>(rows.size(), 3); ++axis) {
    ids[axis] =
        gpu::BlockIdOp::create(body, named(loc, "row"), gpu::Dimension(axis));
    if (perBlock[axis] == 1)
      continue;
    // A subgroup's rows lie along y and z of the block, as its lanes are x.
    Value inBlock =
        thread(sharing == RowSharing::Subgroup ? axis + 1 : axis, "rowInBlock");
    ids[axis] = arith::AddIOp::create(
        body, named(loc, "row"),
        arith::MulIOp::create(body, loc, ids[axis], index(loc, perBlock[axis])),
        inBlock);
    if (sizes[axis] % perBlock[axis] == 0)
      continue;
    Value isRow = arith::CmpIOp::create(body, named(loc, "isRow"),
                                        arith::CmpIPredicate::slt, ids[axis],
                                        index(loc, sizes[axis]));
    hasRow =
        hasRow ? Value(arith::AndIOp::create(body, loc, hasRow, isRow)) : isRow;
  }
  row = pointOf(body, loc, rows, ids);
  part = thread(sharing == RowSharing::Columns ? 1 : 0, "first");
  if (sharing == RowSharing::Columns)
    besides = thread(0, "rowInBlock");
}

Value RowThreads::index(Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(body, loc, value);
}

Value RowThreads::combined(Location loc, Combine kind, Value number) {
  if (sharing == RowSharing::Columns)
    return foldColumns(loc, kind, number);
  auto attribute = gpu::AllReduceOperationAttr::get(body.getContext(), kind);
  if (sharing == RowSharing::Subgroup)
    return gpu::SubgroupReduceOp::create(body, loc, number, attribute,
                                         /*uniform=*/body.getUnitAttr(),
                                         /*cluster_size=*/IntegerAttr(),
                                         /*cluster_stride=*/IntegerAttr());
  return gpu::AllReduceOp::create(body, loc, number, attribute,
                                  /*uniform=*/body.getUnitAttr());
}

Value RowThreads::foldColumns(Location loc, Combine kind, Value number) {
  Value &tile = tiles[number.getType()];
  if (tile) { // the numbers before these may still be wanted
    gpu::BarrierOp::create(body, loc);
  } else {
    auto space = gpu::AddressSpaceAttr::get(
        body.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
    tile = launch.getBody().front().addArgument(
        MemRefType::get({parts, width}, number.getType(),
                        MemRefLayoutAttrInterface(), space),
        loc);
  }
  memref::StoreOp::create(body, loc, number, tile, ValueRange{part, besides});
  gpu::BarrierOp::create(body, loc);
  auto load = [&](OpBuilder &b, Value at) -> Value {
    return memref::LoadOp::create(b, loc, tile, ValueRange{at, besides});
  };
  Value first = load(body, index(loc, 0));
  return makeLoop(
      body, loc, parts - 1, first, [&](OpBuilder &b, Value k, ValueRange so) {
        Value next = arith::AddIOp::create(
            b, loc, k, arith::ConstantIndexOp::create(b, loc, 1));
        return SmallVector<Value>{vector::makeArithReduction(
            b, loc, gpu::convertReductionKind(kind), so[0], load(b, next))};
      })[0];
}

namespace {

bool isReduction(const RowForm &form) {
  return form.kind == RowKind::Reduce || form.kind == RowKind::Softmax;
}

std::optional<RowForm> reductionForm(Operation *op) {
  auto form = rowFormOf(op, RowKind::Reduce);
  return form ? form : rowFormOf(op, RowKind::Softmax);
}

/// Whether what one of them writes the other touches only at the same element
/// of its row, or row: forms say that each is the only one to write there.
bool mayFollow(const RowForm &first, const RowForm &next) {
  for (const RowAccess &mine : first.accesses)
    for (const RowAccess &theirs : next.accesses)
      if ((mine.isWritten || theirs.isWritten) &&
          ir::rootOf(mine.memref) == ir::rootOf(theirs.memref) &&
          !ir::areApart(mine.memref, theirs.memref) &&
          (mine.memref != theirs.memref || !mine.axes ||
           mine.axes != theirs.axes))
        return false;
  return true;
}

/// The form in which `op` shares rows like those of `model`, which threads
/// share in that way; none if it does not.
std::optional<RowForm> formLike(const RowForm &model, RowSharing sharing,
                                Operation *op) {
  const bool sharesElements =
      mayShareElements(sharing, model.rows, model.length);
  for (RowKind kind : {RowKind::Reduce, RowKind::Softmax, RowKind::Scalars,
                       RowKind::Elements}) {
    auto form = rowFormOf(op, kind, model.along);
    if (form && form->rows == model.rows &&
        (kind == RowKind::Scalars || form->length == model.length) &&
        (!isReduction(*form) || form->isInner == model.isInner) &&
        (kind != RowKind::Elements || sharesElements))
      return form;
  }
  return std::nullopt;
}

/// The operations from `first` to `last`, or to the end of their block, that
/// share rows like those of `model`, which threads share in that way.
RowRun runOf(Operation *first, Operation *last, const RowForm &model,
             RowSharing sharing) {
  RowRun run{{}, sharing, ""};
  size_t whole = 0; // up to the last one that is of use here
  bool reduces = false;
  Value device;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp>(op)) {
      if (mayBeBetween(op))
        continue;
      run.why = op->getName().getStringRef().str() + " at " +
                ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    run.why = "its launch has as many operations as one may have";
    if (run.ops.size() == mostInLaunch)
      break;
    run.why = "it does not work on the same rows, or too few threads would "
              "share their elements";
    auto form = formLike(model, sharing, op);
    if (!form)
      break;
    run.why = "what one writes the other touches elsewhere in the row, or the "
              "text does not show that their buffers are of one device";
    Value here = visibleDevice(*form);
    if (!run.ops.empty() && (!here || here != device ||
                             !llvm::all_of(run.ops, [&](const RowOp &each) {
                               return mayFollow(each.form, *form);
                             })))
      break;
    device = here;
    reduces |= isReduction(*form);
    run.ops.push_back({op, std::move(*form)});
    if (reduces)
      whole = run.ops.size();
    if (op == last || !device)
      break;
  }
  if (whole < run.ops.size())
    run.why = "no reduction of the rows follows";
  run.ops.erase(run.ops.begin() + whole, run.ops.end());
  return run;
}

/// Whether none of the memrefs that it names first is of another device.
bool mayBeOn(Operation *op, Value device) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isa<MemRefType>(operand.getType()) ||
           ir::visibleDevice(operand) == device;
  });
}

} // namespace

/// The run from `first` to `last` at most whose rows are those of `reduction`.
static RowRun runLike(Operation *first, Operation *last,
                      const std::optional<RowForm> &reduction) {
  auto sharing = reduction ? sharingOf(*reduction) : std::nullopt;
  return sharing ? runOf(first, last, *reduction, *sharing)
                 : RowRun{{}, RowSharing::Block, ""};
}

/// The device of what may come before a reduction in its run; null for others.
static Value deviceBeforeReduction(Operation *first) {
  // It may be of elements, or of what each row has one of.
  auto form = rowFormOf(first, RowKind::Elements);
  if (!form)
    form = rowFormOf(first, RowKind::Scalars);
  return form ? visibleDevice(*form) : Value();
}

/// The first reduction of rows behind `first`, if all that is between them may
/// be between operations of a launch on that device.
Operation *RowRuns::reductionAfter(Operation *first, Value device) {
  SmallVector<Operation *> passed{first};
  Operation *found = nullptr;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    const bool isOne = isa<linalg::LinalgOp, linalg::SoftmaxOp>(op);
    if (isOne ? !mayBeOn(op, device) : !mayBeBetween(op))
      break;
    if (!isOne)
      continue;
    if (reductionForm(op)) {
      found = op;
      break;
    }
    if (auto known = reductions.find({op, device}); known != reductions.end()) {
      found = known->second;
      break;
    }
    passed.push_back(op);
  }
  for (Operation *op : passed)
    reductions[{op, device}] = found;
  return found;
}

RowRun RowRuns::from(Operation *first) {
  RowRun run = runLike(first, nullptr, reductionForm(first));
  Value device = run.ops.empty() ? deviceBeforeReduction(first) : Value();
  if (!device)
    return run;
  auto known = reductions.find({first, device});
  Operation *next =
      known != reductions.end() ? known->second : reductionAfter(first, device);
  return next ? runLike(first, nullptr, reductionForm(next)) : run;
}

std::optional<RowRun> rowRunOf(const LaunchGroup &group) {
  Operation *first = group.front(), *last = group.back();
  RowRun run = runLike(first, last, reductionForm(first));
  if (run.ops.empty() && group.size() > 1 && deviceBeforeReduction(first))
    for (Operation *op : ArrayRef(group).drop_front())
      if (auto form = reductionForm(op)) {
        run = runLike(first, last, form);
        break;
      }
  if (run.ops.size() != group.size())
    return std::nullopt;
  for (auto [op, each] : llvm::zip_equal(group, run.ops))
    if (op != each.op)
      return std::nullopt;
  return run;
}

} // namespace mgpu::conversion
