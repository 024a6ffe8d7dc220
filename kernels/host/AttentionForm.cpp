// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/AttentionForm.h"

#include "kernels/host/EntryAbi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels::host {

namespace {

/// Keys whose scores are in memory at once: a part of what decides bits.
constexpr int64_t keysAtOnce = 64;

/// Where an operand's elements are: one after the other in memory, at a first
/// place that the batch decides, and a stride for each other dimension.
struct Operand {
  Value memory;
  Value first; ///< of the tile's batch
  int64_t query = 0, key = 0, head = 0, value = 0;
};

class AttentionEmitter {
public:
  AttentionEmitter(func::FuncOp source, func::FuncOp entry,
                   const AttentionBody &body, VectorUnit unit)
      : body(body), of(body.of), source(source), b(entry.getLoc(), entry),
        reader(b, entry), f32(b.getF32Type()) {
    const int64_t widest = unit.bits == 512 ? 32 : 16;
    lanes = of.getQueries() > widest / 2 ? widest : widest / 2;
    rows = unit.bits == 512 ? 8 : 4;
    vector = VectorType::get({lanes}, f32);
  }
  LogicalResult run(func::FuncOp entry, const HostShape &shape);
  int64_t lanes = 0;

private:
  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value times(Value x, int64_t y) {
    return arith::MulIOp::create(b, x, number(y));
  }
  Value lesser(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value all(float value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(vector, b.getF32FloatAttr(value)));
  }
  SmallVector<Value>
  loop(Value begin, Value end, int64_t step, ValueRange carried,
       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> make);
  void each(Value begin, Value end, int64_t step,
            llvm::function_ref<void(Value)> make) {
    loop(begin, end, step, {}, [&](Value at, ValueRange) {
      make(at);
      return SmallVector<Value>();
    });
  }
  Value scratch(int64_t vectors) {
    return memref::AllocaOp::create(b, MemRefType::get({vectors * lanes}, f32),
                                    b.getI64IntegerAttr(64));
  }
  Value load(Value memory, Value at) {
    return vector::LoadOp::create(b, vector, memory, times(at, lanes));
  }
  void store(Value value, Value memory, Value at) {
    vector::StoreOp::create(b, value, memory, times(at, lanes));
  }
  Value larger(Value x, Value y) {
    return arith::SelectOp::create(
        b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, y, x), y, x);
  }
  Value power(Value x, Value most) {
    return math::ExpOp::create(b, arith::SubFOp::create(b, x, most));
  }
  Operand operandOf(unsigned k);
  void place(Operand &operand, unsigned k, ArrayRef<Value> batch);
  Value element(const Operand &operand, Value at);
  /// For `count` rows of a factor from `begin` on: each one's sum, begun by
  /// `start`, of its elements times the vectors of `memory`.
  void products(const Operand &operand, Value first, int64_t along,
                int64_t deep, Value begin, Value end, Value depth,
                Value vectors, llvm::function_ref<Value(Value)> start,
                Value into);
  Value scoreOf(Value product, Value query, Value key, Value batch);
  void applyScore(Value begin, Value end, Value query, Value count,
                  Value batch);
  void tile(Value batch, Value query, Value end);
  SmallVector<Value> block(Value begin, Value query, Value count, Value batch,
                           ValueRange carried);

  AttentionBody body;
  ir::AttentionAttr of;
  func::FuncOp source;
  ImplicitLocOpBuilder b;
  AbiReader reader;
  Type f32;
  int64_t rows = 0; ///< sums of a register tile, each a vector
  VectorType vector;
  SmallVector<Value> arguments;
  Operand q, k, v, result;
  Value queries, scores, sums; ///< vectors by head, by key, by value
};

SmallVector<Value> AttentionEmitter::loop(
    Value begin, Value end, int64_t step, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> make) {
  auto made = scf::ForOp::create(b, begin, end, number(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.getBody());
  SmallVector<Value> next =
      make(made.getInductionVar(), made.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return SmallVector<Value>(made.getResults());
}

Operand AttentionEmitter::operandOf(unsigned k) {
  const auto position = unsigned(of.getOperands()[k]);
  auto type = cast<MemRefType>(source.getArgumentTypes()[position]);
  const SmallVector<int64_t> strides = attentionStrides(body, k);
  SmallVector<int64_t> own;
  int64_t size = 0;
  (void)type.getStridesAndOffset(own, size);
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), own))
    size += (extent - 1) * stride;
  Operand operand;
  operand.memory = reader.argument(
      position, MemRefType::get({size + 1}, type.getElementType()));
  const size_t batch = of.getBatch().size();
  operand.query = strides[batch];
  operand.key = strides[batch + 1];
  operand.head = strides[batch + 2];
  operand.value = strides[batch + 3];
  return operand;
}

/// Sets the operand's first place to that of a number of the batch.
void AttentionEmitter::place(Operand &operand, unsigned k,
                             ArrayRef<Value> batch) {
  const SmallVector<int64_t> strides = attentionStrides(body, k);
  operand.first = number(strides.back());
  for (auto [index, stride] : llvm::zip(batch, strides))
    if (stride != 0)
      operand.first = plus(operand.first, times(index, stride));
}

Value AttentionEmitter::element(const Operand &operand, Value at) {
  Value loaded = memref::LoadOp::create(b, operand.memory, at);
  return loaded.getType() == f32 ? loaded
                                 : arith::ExtFOp::create(b, f32, loaded);
}

void AttentionEmitter::products(const Operand &operand, Value first,
                                int64_t along, int64_t deep, Value begin,
                                Value end, Value depth, Value vectors,
                                llvm::function_ref<Value(Value)> start,
                                Value into) {
  auto some = [&](Value from, int64_t count) {
    SmallVector<Value> sums;
    for (int64_t row = 0; row < count; ++row)
      sums.push_back(start(plus(from, number(row))));
    Value place = plus(first, times(from, along));
    sums = loop(number(0), depth, 1, sums, [&](Value step, ValueRange before) {
      markLoop(b, b.getLoc(), Rolled);
      Value factor = load(vectors, step);
      Value at = plus(place, times(step, deep));
      SmallVector<Value> after;
      for (int64_t row = 0; row < count; ++row) {
        Value one = element(operand, plus(at, number(row * along)));
        one = vector::BroadcastOp::create(b, vector, one);
        after.push_back(math::FmaOp::create(b, one, factor, before[row]));
      }
      return after;
    });
    for (int64_t row = 0; row < count; ++row)
      store(sums[row], into, plus(from, number(row)));
  };
  Value rest = arith::RemUIOp::create(b, arith::SubIOp::create(b, end, begin),
                                      number(rows));
  Value whole = arith::SubIOp::create(b, end, rest);
  each(begin, whole, rows, [&](Value from) { some(from, rows); });
  each(whole, end, 1, [&](Value from) { some(from, 1); });
}

Value AttentionEmitter::scoreOf(Value product, Value query, Value key,
                                Value batch) {
  IRMapping map;
  map.map(body.head.getResult(0), product);
  map.map(body.keys.getInductionVar(), key);
  for (BlockArgument argument : source.getArguments())
    map.map(argument, arguments[argument.getArgNumber()]);
  return copyScore(b, body, map, {query, batch, number(0)});
}

/// Turns products into scores.
void AttentionEmitter::applyScore(Value begin, Value end, Value query,
                                  Value count, Value batch) {
  if (body.score == body.head.getResult(0))
    return;
  auto lanesTo = [&](Value most, LoopMark mark) {
    each(begin, end, 1, [&](Value key) {
      Value row = times(arith::SubIOp::create(b, key, begin), lanes);
      each(number(0), most, 1, [&](Value lane) {
        markLoop(b, b.getLoc(), mark);
        Value at = plus(row, lane);
        Value product = memref::LoadOp::create(b, scores, at);
        memref::StoreOp::create(
            b, scoreOf(product, plus(query, lane), key, batch), scores, at);
      });
    });
  };
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, number(lanes));
  auto either = scf::IfOp::create(b, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(either.thenBlock());
  lanesTo(number(lanes), ParallelTile);
  b.setInsertionPointToStart(either.elseBlock());
  lanesTo(count, ParallelThreads);
}

/// A block of keys: the largest scores and the sums of powers so far become
/// those with it.
SmallVector<Value> AttentionEmitter::block(Value begin, Value query,
                                           Value count, Value batch,
                                           ValueRange carried) {
  Value zero = number(0), none = all(0);
  Value end = lesser(plus(begin, number(keysAtOnce)), number(of.getKeys()));
  Value here = arith::SubIOp::create(b, end, begin);
  products(
      k, plus(k.first, times(begin, k.key)), k.key, k.head, zero, here,
      number(of.getHead()), queries, [&](Value) { return none; }, scores);
  applyScore(begin, end, query, count, batch);
  Value most = loop(zero, here, 1, carried[0], [&](Value key, ValueRange now) {
    return SmallVector<Value>{larger(now[0], load(scores, key))};
  })[0];
  // Without a score there is nothing to subtract, and each power is 0.
  Value lowest = all(-std::numeric_limits<float>::infinity());
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, most, lowest);
  Value shift = arith::SelectOp::create(b, isNone, none, most);
  Value correction = power(carried[0], shift);
  Value isGone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, correction, all(0));
  Value total = arith::MulFOp::create(b, carried[1], correction);
  total = loop(zero, here, 1, total, [&](Value key, ValueRange now) {
    Value weight = power(load(scores, key), shift);
    store(weight, scores, key);
    return SmallVector<Value>{arith::AddFOp::create(b, now[0], weight)};
  })[0];
  products(
      v, plus(v.first, times(begin, v.key)), v.value, v.key, zero,
      number(of.getValue()), here, scores,
      [&](Value row) -> Value {
        // Sums that count no more may be infinite.
        Value before = arith::MulFOp::create(b, load(sums, row), correction);
        return arith::SelectOp::create(b, isGone, none, before);
      },
      sums);
  return {most, total};
}

/// The queries from `query` on, as many as there are lanes or as there are.
void AttentionEmitter::tile(Value batch, Value query, Value end) {
  Value zero = number(0), none = all(0);
  SmallVector<Value> indices;
  Value rest = batch;
  for (int64_t size : llvm::reverse(of.getBatch())) {
    indices.insert(indices.begin(),
                   arith::RemUIOp::create(b, rest, number(size)));
    rest = arith::DivUIOp::create(b, rest, number(size));
  }
  unsigned at = 0;
  for (Operand *operand : {&q, &k, &v, &result})
    place(*operand, at++, indices);
  Value count = lesser(arith::SubIOp::create(b, end, query), number(lanes));
  each(zero, number(of.getHead()), 1, [&](Value d) {
    store(none, queries, d);
    Value from = plus(plus(q.first, times(query, q.query)), times(d, q.head));
    each(zero, count, 1, [&](Value lane) {
      memref::StoreOp::create(b, element(q, plus(from, times(lane, q.query))),
                              queries, plus(times(d, lanes), lane));
    });
  });
  each(zero, number(of.getValue()), 1,
       [&](Value row) { store(none, sums, row); });
  SmallVector<Value> ends =
      loop(zero, number(of.getKeys()), keysAtOnce,
           {all(-std::numeric_limits<float>::infinity()), none},
           [&](Value begin, ValueRange carried) {
             return block(begin, query, count, batch, carried);
           });
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, ends[1], none);
  each(zero, number(of.getValue()), 1, [&](Value row) {
    Value quotient = arith::DivFOp::create(b, load(sums, row), ends[1]);
    store(arith::SelectOp::create(b, isNone, none, quotient), sums, row);
  });
  Type element = cast<MemRefType>(result.memory.getType()).getElementType();
  Value first = plus(result.first, times(query, result.query));
  each(zero, count, 1, [&](Value lane) {
    each(zero, number(of.getValue()), 1, [&](Value row) {
      Value sum =
          memref::LoadOp::create(b, sums, plus(times(row, lanes), lane));
      if (element != f32)
        sum = arith::TruncFOp::create(b, element, sum);
      memref::StoreOp::create(b, sum, result.memory,
                              plus(plus(first, times(lane, result.query)),
                                   times(row, result.value)));
    });
  });
}

LogicalResult AttentionEmitter::run(func::FuncOp entry,
                                    const HostShape &shape) {
  b.setInsertionPointToStart(&entry.getBody().front());
  if (failed(reader.arguments(source, arguments)))
    return failure();
  q = operandOf(0);
  k = operandOf(1);
  v = operandOf(2);
  result = operandOf(3);
  queries = scratch(of.getHead());
  scores = scratch(keysAtOnce);
  sums = scratch(of.getValue());
  const Extent part = partOf(b, reader);
  scf::ForOp blocks = makeBlockLoop(b, b.getLoc(), reader,
                                    ownBlocks(b, b.getLoc(), shape, part));
  func::ReturnOp::create(b);
  b.setInsertionPoint(blocks.getBody()->getTerminator());
  // The object's blocks are tiles of queries, counted from the part's first.
  const uint32_t block[] = {shape.block.x, shape.block.y},
                 covered[] = {shape.covered.x, shape.covered.y};
  const int64_t sizes[] = {of.getQueries(), of.getBatchSize()};
  Value begins[2], ends[2];
  for (unsigned axis = 0; axis < 2; ++axis) {
    Value first = times(part.begin[axis], block[axis]);
    Value last = lesser(plus(first, times(part.count[axis], block[axis])),
                        number(sizes[axis]));
    Value begin = times(blocks.getRegionIterArgs()[axis], covered[axis]);
    if (block[axis] != covered[axis])
      begin = plus(first, begin);
    begins[axis] = begin;
    ends[axis] = lesser(last, plus(begin, number(covered[axis])));
  }
  each(begins[1], ends[1], 1, [&](Value batch) {
    each(begins[0], ends[0], lanes,
         [&](Value query) { tile(batch, query, ends[0]); });
  });
  return success();
}

} // namespace

LogicalResult makeAttention(ModuleOp kernel, Dim3 block,
                            const AttentionBody &body, VectorUnit unit) {
  HostShape shape(block);
  const int64_t widest = unit.bits == 512 ? 32 : 16;
  shape.covered = {uint32_t(widest), block.y, 1};
  return replaceByEntry(
      kernel, shape, [&](func::FuncOp source, func::FuncOp entry) {
        return AttentionEmitter(source, entry, body, unit).run(entry, shape);
      });
}

} // namespace mgpu::kernels::host
