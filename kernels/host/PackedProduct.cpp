// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/PackedProduct.h"

#include "facts/KernelProduct.h"
#include "kernels/host/EntryAbi.h"
#include "kernels/lower/ProductParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace mgpu::kernels::host {

//===----------------------------------------------------------------------===//
// Which kernels have the form
//===----------------------------------------------------------------------===//

/// The argument of the kernel that `factor` is an element of, widened or not.
static BlockArgument factorOf(Value factor) {
  if (auto wide = factor.getDefiningOp<arith::ExtFOp>())
    factor = wide.getIn();
  auto load = factor.getDefiningOp<memref::LoadOp>();
  return load ? dyn_cast<BlockArgument>(load.getMemRef()) : BlockArgument();
}

/// Whether a step of the sum is an fma; none where it does anything but
/// multiply an element of A and one of B and add.
static std::optional<bool> stepOf(scf::ForOp loop, ir::ProductAttr product) {
  if (loop.getNumRegionIterArgs() != 1 ||
      getConstantIntValue(loop.getLowerBound()) != 0 ||
      getConstantIntValue(loop.getUpperBound()) != product.getK() ||
      getConstantIntValue(loop.getStep()) != 1)
    return std::nullopt;
  Value sum = loop.getRegionIterArg(0), next = loop.getYieldedValues()[0];
  Value x, y;
  auto fma = next.getDefiningOp<math::FmaOp>();
  if (fma && fma.getC() == sum) {
    x = fma.getA();
    y = fma.getB();
  } else if (auto add = next.getDefiningOp<arith::AddFOp>()) {
    Value other = add.getLhs() == sum ? add.getRhs() : add.getLhs();
    auto product = other.getDefiningOp<arith::MulFOp>();
    if (!product || (add.getLhs() != sum && add.getRhs() != sum))
      return std::nullopt;
    x = product.getLhs();
    y = product.getRhs();
  } else {
    return std::nullopt;
  }
  BlockArgument a = factorOf(x), b = factorOf(y);
  if (!a || !b)
    return std::nullopt;
  if (a.getArgNumber() != product.matrixA().getArgument())
    std::swap(a, b);
  const bool areFactors = a.getArgNumber() == product.matrixA().getArgument() &&
                          b.getArgNumber() == product.matrixB().getArgument();
  const bool isAll = llvm::all_of(*loop.getBody(), [](Operation &op) {
    return isa<memref::LoadOp, arith::ExtFOp, math::FmaOp, arith::MulFOp,
               arith::AddFOp, scf::YieldOp>(op);
  });
  return areFactors && isAll ? std::optional(bool(fma)) : std::nullopt;
}

/// Whether what is around the sum may run as a loop over elements.
static bool isPlain(ModuleOp around) {
  return !around
              ->walk([](Operation *op) {
                return isa<cf::AssertOp, memref::AtomicRMWOp,
                           memref::GenericAtomicRMWOp, memref::AllocaOp>(op)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

std::optional<ProductTiles> packedForm(ModuleOp kernel, VectorUnit unit) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  const ir::ProductAttr product = productOf(kernel);
  scf::ForOp loop =
      product ? facts::productLoop(entry.getBody()) : scf::ForOp();
  if (!loop || goesBack(entry) || !isPlain(*splitProduct(loop)))
    return std::nullopt;
  Type sum = loop.getResult(0).getType();
  const std::optional<bool> isFused = stepOf(loop, product);
  if ((!sum.isF32() && !sum.isF64()) || !isFused || (*isFused && !unit.hasFma))
    return std::nullopt;
  return tilesOf(product.getM(), product.getN(), product.getK(), unit.bits,
                 sum.getIntOrFloatBitWidth() / 8);
}

namespace {

/// A factor, and panels of it: of each step of k the elements that a register
/// tile multiplies, side by side. A panel's elements beyond C's edge are 0,
/// and what is computed of them goes nowhere.
struct Side {
  Value memory;       ///< all of the factor's elements, one after the other
  int64_t first = 0;  ///< where the first of them is
  int64_t batch = 0;  ///< from one product to the next
  int64_t along = 0;  ///< from one row of A, or column of B, to the next
  int64_t deep = 0;   ///< from one step of k to the next
  int64_t width = 0;  ///< elements of a panel of one step
  int64_t vector = 0; ///< elements that are copied at once
  Value panels;
};

/// Elements of C along one of its axes.
struct Range {
  Value begin, end;
};

/// The elements of C that a register tile has.
struct Tile {
  Range down, across;
  Value batch;
  Value isWhole; ///< as many elements as there are sums
};

class ProductEmitter {
public:
  ProductEmitter(func::FuncOp source, func::FuncOp entry,
                 const ProductTiles &tiles)
      : product(ir::productOf(source)), tiles(tiles), b(entry.getLoc(), entry),
        reader(b, entry) {
    scf::ForOp loop = facts::productLoop(source.getBody());
    sum = cast<FloatType>(loop.getResult(0).getType());
    isFused = *stepOf(loop, product);
    around = splitProduct(loop);
  }

  /// Emits all of `entry`; fails where it cannot take an argument.
  LogicalResult run(func::FuncOp source, func::FuncOp entry,
                    const HostShape &shape);

private:
  // Numbers and control.
  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value minus(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value times(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value times(Value x, int64_t y) { return times(x, number(y)); }
  Value lesser(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value isLess(Value x, Value y) {
    return compare(arith::CmpIPredicate::slt, x, y);
  }
  void each(Value begin, Value end, int64_t step,
            llvm::function_ref<void(Value)> body);
  void when(Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr);

  /// Memory of the calling thread's stack.
  Value scratch(int64_t elements) {
    return memref::AllocaOp::create(b, MemRefType::get({elements}, sum),
                                    b.getI64IntegerAttr(64));
  }

  // Panels.
  Side sideOf(bool isA, int64_t width, int64_t most);
  void pack(const Side &side, Range range, Value batch, Value k, Value steps);
  void copyVectors(const Side &side, Value from, Value whole, Value steps);
  void copyTurned(const Side &side, Value from, Value to, Value steps);
  void copyEach(const Side &side, Value from, Value to, Value begin,
                Value steps, Value count);
  Value load(const Side &side, Value at, int64_t count);
  void turn(SmallVectorImpl<Value> &rows);

  // Sums.
  void computeTile(Range down, Range across, Value batch);
  Tile registerTile(Value i, Value endOfRows, Value j, Value endOfColumns,
                    Value batch);
  void begin(Value at, const Tile &tile);
  void addSteps(Value at, Value fromLeft, Value fromRight, Value steps);
  void eachElement(func::FuncOp part, Value at, const Tile &tile);
  void oneElement(func::FuncOp part, Value place, Value down, Value across,
                  Value batch);

  ir::ProductAttr product;
  ProductTiles tiles;
  ImplicitLocOpBuilder b;
  AbiReader reader;
  FloatType sum;
  bool isFused = false;
  OwningOpRef<ModuleOp> around; ///< what is around the sums
  SmallVector<Value> arguments; ///< of the kernel
  Side left, right;             ///< the factors down and across
  Value sums;
};

void ProductEmitter::each(Value begin, Value end, int64_t step,
                          llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, begin, end, number(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void ProductEmitter::when(Value condition, llvm::function_ref<void()> then,
                          llvm::function_ref<void()> otherwise) {
  auto made = scf::IfOp::create(b, condition, bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.thenBlock());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(made.elseBlock());
  otherwise();
}

/// `most` elements along are packed at once.
Side ProductEmitter::sideOf(bool isA, int64_t width, int64_t most) {
  const ir::MatrixAttr matrix = isA ? product.matrixA() : product.matrixB();
  const int64_t rows = matrix.getRowStride(),
                columns = matrix.getColumnStride();
  const int64_t size =
      matrix.getOffset() + (matrix.getBatch() - 1) * matrix.getBatchStride() +
      (matrix.getRows() - 1) * rows + (matrix.getColumns() - 1) * columns + 1;
  Side side{reader.argument(
                matrix.getArgument(),
                MemRefType::get({size}, isA ? product.getA() : product.getB())),
            matrix.getOffset(),
            matrix.getBatchStride(),
            isA ? rows : columns,
            isA ? columns : rows,
            width,
            std::min(width, tiles.lanes),
            {}};
  if (side.along != 1) // squares of powers of two are transposed
    side.vector = std::min(tiles.lanes, width & -width);
  side.panels = scratch(most * tiles.depth);
  return side;
}

/// Elements side by side, as the sums have them.
Value ProductEmitter::load(const Side &side, Value at, int64_t count) {
  Type element = cast<MemRefType>(side.memory.getType()).getElementType();
  Value loaded =
      count == 1 ? memref::LoadOp::create(b, side.memory, at).getResult()
                 : vector::LoadOp::create(b, VectorType::get({count}, element),
                                          side.memory, at)
                       .getResult();
  if (element == sum)
    return loaded;
  return arith::ExtFOp::create(
      b, count == 1 ? Type(sum) : VectorType::get({count}, sum), loaded);
}

/// Packs the elements of `range` of steps k to k + `steps`: panels that are
/// whole, then the last one, if it is not.
void ProductEmitter::pack(const Side &side, Range range, Value batch, Value k,
                          Value steps) {
  Value zero = number(0), count = minus(range.end, range.begin);
  Value rest = arith::RemUIOp::create(b, count, number(side.width));
  Value whole = minus(count, rest);
  Value from = plus(plus(number(side.first), times(batch, side.batch)),
                    plus(times(k, side.deep), times(range.begin, side.along)));
  if (side.along == 1)
    copyVectors(side, from, whole, steps);
  else
    each(zero, whole, side.width, [&](Value panel) {
      Value source = plus(from, times(panel, side.along)),
            target = times(panel, steps);
      if (side.deep == 1 && side.vector > 1)
        copyTurned(side, source, target, steps);
      else
        copyEach(side, source, target, zero, steps, number(side.width));
    });
  when(compare(arith::CmpIPredicate::ne, rest, zero), [&] {
    Value target = times(whole, steps);
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(sum));
    each(target, plus(target, times(steps, side.width)), 1,
         [&](Value at) { memref::StoreOp::create(b, none, side.panels, at); });
    copyEach(side, plus(from, times(whole, side.along)), target, zero, steps,
             rest);
  });
}

/// `whole` elements that lie side by side along, which all panels together have
/// of each step: memory is read in its order.
void ProductEmitter::copyVectors(const Side &side, Value from, Value whole,
                                 Value steps) {
  each(number(0), steps, 1, [&](Value k) {
    markLoop(b, b.getLoc(), Rolled);
    Value source = plus(from, times(k, side.deep));
    each(number(0), whole, side.width, [&](Value panel) {
      Value target = plus(times(panel, steps), times(k, side.width));
      for (int64_t w = 0; w < side.width; w += side.vector) {
        const int64_t count = std::min(side.vector, side.width - w);
        Value elements =
            load(side, plus(plus(source, panel), number(w)), count);
        Value at = plus(target, number(w));
        if (count == 1)
          memref::StoreOp::create(b, elements, side.panels, at);
        else
          vector::StoreOp::create(b, elements, side.panels, at);
      }
    });
  });
}

/// Elements that lie side by side along k: squares of them are transposed.
void ProductEmitter::copyTurned(const Side &side, Value from, Value to,
                                Value steps) {
  Value whole =
      minus(steps, arith::RemUIOp::create(b, steps, number(side.vector)));
  each(number(0), whole, side.vector, [&](Value k) {
    markLoop(b, b.getLoc(), Rolled);
    for (int64_t w = 0; w < side.width; w += side.vector) {
      SmallVector<Value> square;
      for (int64_t row = 0; row < side.vector; ++row)
        square.push_back(
            load(side, plus(plus(from, number((w + row) * side.along)), k),
                 side.vector));
      turn(square);
      for (int64_t step = 0; step < side.vector; ++step)
        vector::StoreOp::create(b, square[step], side.panels,
                                plus(plus(to, times(k, side.width)),
                                     number(step * side.width + w)));
    }
  });
  copyEach(side, from, to, whole, steps, number(side.width));
}

/// `count` elements of a panel, of the steps from `begin` on, one by one.
void ProductEmitter::copyEach(const Side &side, Value from, Value to,
                              Value begin, Value steps, Value count) {
  each(begin, steps, 1, [&](Value k) {
    markLoop(b, b.getLoc(), Rolled);
    Value source = plus(from, times(k, side.deep)),
          target = plus(to, times(k, side.width));
    each(number(0), count, 1, [&](Value w) {
      memref::StoreOp::create(b,
                              load(side, plus(source, times(w, side.along)), 1),
                              side.panels, plus(target, w));
    });
  });
}

/// Transposes a square. In each round two rows that are `apart` exchange
/// elements that are as far apart: what is left of the diagonal of one, and
/// right of it in the other.
void ProductEmitter::turn(SmallVectorImpl<Value> &rows) {
  const int64_t size = int64_t(rows.size());
  for (int64_t apart = 1; apart < size; apart *= 2)
    for (int64_t row = 0; row < size; ++row) {
      if ((row & apart) != 0)
        continue;
      SmallVector<int64_t> upper, lower;
      for (int64_t k = 0; k < size; ++k) {
        const bool isMoved = (k & apart) != 0;
        upper.push_back(isMoved ? size + k - apart : k);
        lower.push_back(isMoved ? size + k : k + apart);
      }
      Value x = rows[row], y = rows[row + apart];
      rows[row] = vector::ShuffleOp::create(b, x, y, upper);
      rows[row + apart] = vector::ShuffleOp::create(b, x, y, lower);
    }
}

/// The tile of C that a block of the object computes. Its sums wait in memory
/// between panels of k, register tile by register tile; where there is one
/// panel, each tile's sums are there from its beginning to its end alone.
void ProductEmitter::computeTile(Range down, Range across, Value batch) {
  auto last = around->lookupSymbol<func::FuncOp>("product.last");
  Value zero = number(0), all = number(product.getK());
  const bool isWhole = product.getK() <= tiles.depth;
  each(zero, all, tiles.depth, [&](Value k) {
    Value steps = lesser(number(tiles.depth), minus(all, k));
    Value isFirst = compare(arith::CmpIPredicate::eq, k, zero),
          isLast = compare(arith::CmpIPredicate::eq, plus(k, steps), all);
    pack(right, across, batch, k, steps);
    each(down.begin, down.end, tiles.block, [&](Value block) {
      Range rows{block, lesser(plus(block, number(tiles.block)), down.end)};
      pack(left, rows, batch, k, steps);
      each(across.begin, across.end, tiles.width(), [&](Value j) {
        each(rows.begin, rows.end, tiles.rows, [&](Value i) {
          Value inX = minus(j, across.begin), inY = minus(i, down.begin);
          Value at =
              isWhole ? zero
                      : plus(times(inX, tiles.down), times(inY, tiles.width()));
          const Tile tile = registerTile(i, rows.end, j, across.end, batch);
          when(isFirst, [&] { begin(at, tile); });
          addSteps(at, times(minus(i, block), steps), times(inX, steps), steps);
          when(isLast, [&] { eachElement(last, at, tile); });
        });
      });
    });
  });
}

Tile ProductEmitter::registerTile(Value i, Value endOfRows, Value j,
                                  Value endOfColumns, Value batch) {
  Value endI = plus(i, number(tiles.rows)),
        endJ = plus(j, number(tiles.width()));
  Value isWhole = arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::sle, endI, endOfRows),
      compare(arith::CmpIPredicate::sle, endJ, endOfColumns));
  return {{i, lesser(endI, endOfRows)},
          {j, lesser(endJ, endOfColumns)},
          batch,
          isWhole};
}

/// Begins the sums of a register tile. Sums beyond C's edge are 0: whatever
/// the stack held might be slow to add to.
void ProductEmitter::begin(Value at, const Tile &tile) {
  auto part = around->lookupSymbol<func::FuncOp>("product.first");
  Attribute same;
  const bool isSame = matchPattern(
      part.getBody().front().getTerminator()->getOperand(0), m_Constant(&same));
  auto fill = [&](Attribute element) {
    auto type = VectorType::get({tiles.lanes}, sum);
    Value all =
        arith::ConstantOp::create(b, DenseElementsAttr::get(type, element));
    for (int64_t k = 0; k < tiles.rows * tiles.width(); k += tiles.lanes)
      vector::StoreOp::create(b, all, sums, plus(at, number(k)));
  };
  if (isSame)
    fill(same);
  else
    when(
        tile.isWhole, [] {}, [&] { fill(b.getZeroAttr(sum)); });
  // Work fused before the product is done even where its sums begin alike.
  const bool isAlone = llvm::all_of(part.getBody().front(), [](Operation &op) {
    return isMemoryEffectFree(&op);
  });
  if (!isSame || !isAlone)
    eachElement(part, at, tile);
}

/// Adds the products of `steps` steps of k, whose elements are in the panels
/// from `fromLeft` and `fromRight` on, to a register tile.
void ProductEmitter::addSteps(Value at, Value fromLeft, Value fromRight,
                              Value steps) {
  auto type = VectorType::get({tiles.lanes}, sum);
  auto place = [&](int64_t row, int64_t vector) {
    return plus(at, number(row * tiles.width() + vector * tiles.lanes));
  };
  SmallVector<Value> initial;
  for (int64_t row = 0; row < tiles.rows; ++row)
    for (int64_t vector = 0; vector < tiles.vectors; ++vector)
      initial.push_back(
          vector::LoadOp::create(b, type, sums, place(row, vector)));
  auto loop = scf::ForOp::create(
      b, number(0), steps, number(1), initial,
      [&](OpBuilder &, Location, Value k, ValueRange before) {
        markLoop(b, b.getLoc(), Rolled);
        Value ofLeft = plus(fromLeft, times(k, left.width)),
              ofRight = plus(fromRight, times(k, right.width));
        SmallVector<Value> factors, after;
        for (int64_t vector = 0; vector < tiles.vectors; ++vector)
          factors.push_back(vector::LoadOp::create(
              b, type, right.panels,
              plus(ofRight, number(vector * tiles.lanes))));
        for (int64_t row = 0; row < tiles.rows; ++row) {
          Value element =
              memref::LoadOp::create(b, left.panels, plus(ofLeft, number(row)));
          Value factor = vector::BroadcastOp::create(b, type, element);
          for (int64_t vector = 0; vector < tiles.vectors; ++vector) {
            Value old = before[row * tiles.vectors + vector];
            after.push_back(
                isFused ? math::FmaOp::create(b, factor, factors[vector], old)
                              .getResult()
                        : arith::AddFOp::create(
                              b, old,
                              arith::MulFOp::create(b, factor, factors[vector]))
                              .getResult());
          }
        }
        scf::YieldOp::create(b, after);
      });
  for (int64_t row = 0; row < tiles.rows; ++row)
    for (int64_t vector = 0; vector < tiles.vectors; ++vector)
      vector::StoreOp::create(b, loop.getResult(row * tiles.vectors + vector),
                              sums, place(row, vector));
}

/// Runs a part of what is around the sums for each element of C that a register
/// tile has. It is given the sum, or its result is the sum. A whole tile has
/// loops of its own, whose lengths are known.
void ProductEmitter::eachElement(func::FuncOp part, Value at,
                                 const Tile &tile) {
  auto loops = [&](Value rows, Value columns, LoopMark mark) {
    each(number(0), rows, 1, [&](Value row) {
      each(number(0), columns, 1, [&](Value column) {
        markLoop(b, b.getLoc(), mark);
        oneElement(part, plus(plus(at, times(row, tiles.width())), column),
                   plus(tile.down.begin, row), plus(tile.across.begin, column),
                   tile.batch);
      });
    });
  };
  when(
      tile.isWhole,
      [&] { loops(number(tiles.rows), number(tiles.width()), ParallelTile); },
      [&] {
        loops(minus(tile.down.end, tile.down.begin),
              minus(tile.across.end, tile.across.begin), ParallelThreads);
      });
}

void ProductEmitter::oneElement(func::FuncOp part, Value place, Value down,
                                Value across, Value batch) {
  const Value ids[] = {tiles.isTurned ? down : across,
                       tiles.isTurned ? across : down, batch};
  IRMapping map;
  for (BlockArgument argument : part.getArguments())
    map.map(argument, argument.getArgNumber() < arguments.size()
                          ? arguments[argument.getArgNumber()]
                          : memref::LoadOp::create(b, sums, place));
  for (Operation &op : part.getBody().front())
    if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
      map.map(id.getResult(), ids[unsigned(id.getDimension())]);
    else if (!isa<func::ReturnOp>(op))
      b.clone(op, map);
    else if (op.getNumOperands() != 0)
      memref::StoreOp::create(b, map.lookup(op.getOperand(0)), sums, place);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult ProductEmitter::run(func::FuncOp source, func::FuncOp entry,
                                  const HostShape &shape) {
  b.setInsertionPointToStart(&entry.getBody().front());
  if (failed(reader.arguments(source, arguments)))
    return failure();
  left = sideOf(!tiles.isTurned, tiles.rows, tiles.block);
  right = sideOf(tiles.isTurned, tiles.width(), tiles.across);
  sums = scratch(tiles.waiting(product.getK()));
  // The call runs tiles of a part of the launch, whose extent is counted in
  // threads of the source.
  const Extent part = partOf(b, reader);
  scf::ForOp blocks = makeBlockLoop(b, b.getLoc(), reader,
                                    ownBlocks(b, b.getLoc(), shape, part));
  func::ReturnOp::create(b);
  b.setInsertionPoint(blocks.getBody()->getTerminator());
  const uint32_t block[] = {shape.block.x, shape.block.y, shape.block.z},
                 covered[] = {shape.covered.x, shape.covered.y,
                              shape.covered.z};
  const int64_t sizes[] = {product.getN(), product.getM(), product.getBatch()};
  Range ranges[3];
  for (unsigned axis = 0; axis < 3; ++axis) {
    Value id = blocks.getRegionIterArgs()[axis];
    Value first = times(part.begin[axis], block[axis]);
    Value end = plus(first, times(part.count[axis], block[axis]));
    Value begin = times(id, covered[axis]);
    if (block[axis] != covered[axis])
      begin = plus(first, begin);
    end = lesser(lesser(end, number(sizes[axis])),
                 plus(begin, number(covered[axis])));
    ranges[axis] = {begin, end};
  }
  // The last blocks of the source may lie beyond C, and a tile in them alone.
  Value isThere =
      arith::AndIOp::create(b, isLess(ranges[0].begin, ranges[0].end),
                            isLess(ranges[1].begin, ranges[1].end));
  when(isThere, [&] {
    each(ranges[2].begin, ranges[2].end, 1, [&](Value batch) {
      computeTile(ranges[tiles.isTurned ? 0 : 1],
                  ranges[tiles.isTurned ? 1 : 0], batch);
    });
  });
  return success();
}

} // namespace

LogicalResult makePackedProduct(ModuleOp kernel, Dim3 block,
                                const ProductTiles &tiles) {
  HostShape shape(block);
  shape.covered = {uint32_t(tiles.isTurned ? tiles.down : tiles.across),
                   uint32_t(tiles.isTurned ? tiles.across : tiles.down),
                   block.z};
  return replaceByEntry(
      kernel, shape, [&](func::FuncOp source, func::FuncOp entry) {
        return ProductEmitter(source, entry, tiles).run(source, entry, shape);
      });
}

} // namespace mgpu::kernels::host
