// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vector dialect: a vector is a struct of lanes, row-major.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// The reduction of the gpu dialect that does the same.
static std::optional<gpu::AllReduceOperation>
reductionOf(vector::CombiningKind kind) {
  using K = vector::CombiningKind;
  using R = gpu::AllReduceOperation;
  switch (kind) {
  case K::ADD:
    return R::ADD;
  case K::MUL:
    return R::MUL;
  case K::MINUI:
    return R::MINUI;
  case K::MINSI:
    return R::MINSI;
  case K::MAXUI:
    return R::MAXUI;
  case K::MAXSI:
    return R::MAXSI;
  case K::MINNUMF:
    return R::MINNUMF;
  case K::MAXNUMF:
    return R::MAXNUMF;
  case K::MINIMUMF:
    return R::MINIMUMF;
  case K::MAXIMUMF:
    return R::MAXIMUMF;
  case K::AND:
    return R::AND;
  case K::OR:
    return R::OR;
  case K::XOR:
    return R::XOR;
  }
  return std::nullopt;
}

/// The first lane of the part of a vector at a position, and how many lanes it
/// has. None for a position that is poison.
std::optional<std::pair<std::string, int64_t>>
FunctionEmitter::partAt(VectorType type, ArrayRef<OpFoldResult> position) {
  int64_t size = type.getNumElements(), first = 0;
  std::string text;
  for (auto [at, extent] : llvm::zip(position, type.getShape())) {
    size /= extent;
    std::optional<int64_t> known = getConstantIntValue(at);
    if (known && (*known < 0 || *known >= extent))
      return std::nullopt;
    if (known) {
      first += *known * size;
      continue;
    }
    text += text.empty() ? "" : " + ";
    text += use(cast<Value>(at));
    if (size != 1)
      text += " * " + std::to_string(size);
  }
  if (text.empty())
    text = std::to_string(first);
  else if (first != 0)
    text += " + " + std::to_string(first);
  return std::pair(text, size);
}

/// The lane of `from` that each lane of `to`, to which it is broadcast, has.
static SmallVector<int64_t> broadcastLanes(VectorType from, VectorType to) {
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < to.getNumElements(); ++lane) {
    int64_t rest = lane, source = 0, stride = 1;
    for (auto [k, extent] : llvm::enumerate(llvm::reverse(to.getShape()))) {
      const int64_t at = rest % extent;
      rest /= extent;
      if (int64_t(k) >= from.getRank())
        break;
      const int64_t size = from.getDimSize(from.getRank() - 1 - int64_t(k));
      source += size == 1 ? 0 : at * stride;
      stride *= size;
    }
    lanes.push_back(source);
  }
  return lanes;
}

FailureOr<bool> FunctionEmitter::vectorOp(Operation *op) {
  if (!isa<vector::VectorDialect>(op->getDialect()))
    return false;
  auto copyLanes = [&](const std::string &to, const std::string &from,
                       int64_t count) {
    out.line("for (int lane = 0; lane < " + std::to_string(count) +
             "; ++lane)");
    ++out.depth;
    out.line(to + " = " + from + ";");
    --out.depth;
  };
  auto plus = [](const std::string &first) {
    return first == "0" ? std::string("lane") : "lane + " + first;
  };
  /// Statements name[lane] = value, several to a line.
  auto eachLane = [&](const std::string &name, int64_t count,
                      llvm::function_ref<std::string(int64_t)> value) {
    std::string line;
    for (int64_t lane = 0; lane < count; ++lane) {
      std::string text = value(lane);
      if (text.empty()) // poison
        continue;
      std::string statement =
          name + "[" + std::to_string(lane) + "] = " + text + ";";
      if (!line.empty() && line.size() + statement.size() > 90) {
        out.line(line);
        line.clear();
      }
      line += (line.empty() ? "" : " ") + statement;
    }
    if (!line.empty())
      out.line(line);
  };
  if (isa<vector::LoadOp, vector::StoreOp>(op)) {
    auto load = dyn_cast<vector::LoadOp>(op);
    auto store = dyn_cast<vector::StoreOp>(op);
    Value memref = load ? load.getBase() : store.getBase();
    ValueRange indices = load ? load.getIndices() : store.getIndices();
    VectorType type = load ? load.getVectorType() : store.getVectorType();
    const Pointer &pointer = pointerOf(memref);
    // Those of other ranks are rows by now (ExpandOps.h).
    if (type.getRank() != 1 || pointer.strides.empty() ||
        isa<VectorType>(cast<MemRefType>(memref.getType()).getElementType()))
      return refuse(op, " in memory whose elements are vectors");
    // MLIR promises no more than the element's alignment unless it says so.
    unsigned bytes = unsigned(type.getNumElements()) *
                     std::max(1u, widthOf(type.getElementType()) / 8);
    auto alignment = op->getAttrOfType<IntegerAttr>("alignment");
    bool isWide = alignment && alignment.getInt() >= bytes && bytes <= 16 &&
                  llvm::isPowerOf2_32(bytes) &&
                  pointer.strides.back().value == 1;
    std::string at = element(memref, indices);
    std::string size = std::to_string(type.getNumElements());
    std::string t = cType(type.getElementType());
    if (isWide) {
      helper("loadAligned");
      std::string parameters =
          "<" + std::to_string(bytes) + ", " + t + ", " + size + ">(&" + at;
      if (load)
        bind(load.getResult(), "loadAligned" + parameters + ")");
      else
        out.line("storeAligned" + parameters + ", " +
                 use(store.getValueToStore()) + ");");
      return true;
    }
    std::string lane = "lane";
    if (pointer.strides.back().value != 1)
      lane += " * " + pointer.strides.back().text;
    std::string each = "(&" + at + ")[" + lane + "]";
    if (load) {
      declare(load.getResult());
      copyLanes(scalars[load.getResult()] + "[lane]", each,
                type.getNumElements());
    } else {
      copyLanes(each, use(store.getValueToStore()) + "[lane]",
                type.getNumElements());
    }
    return true;
  }
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    VectorType type = broadcast.getResultVectorType();
    auto from = dyn_cast<VectorType>(broadcast.getSourceType());
    int64_t period = from ? from.getNumElements() : 0;
    if (from && from.getShape() != type.getShape().take_back(from.getRank()) &&
        period != 1) {
      SmallVector<int64_t> lanes = broadcastLanes(from, type);
      declare(op->getResult(0));
      eachLane(scalars[op->getResult(0)], type.getNumElements(),
               [&](int64_t lane) {
                 return use(broadcast.getSource()) + "[" +
                        std::to_string(lanes[size_t(lane)]) + "]";
               });
      return true;
    }
    // The source has the last dimensions as they are: its lanes repeat.
    declare(op->getResult(0));
    copyLanes(scalars[op->getResult(0)] + "[lane]",
              use(broadcast.getSource()) +
                  (period > 1    ? "[lane % " + std::to_string(period) + "]"
                   : period == 1 ? "[0]"
                                 : ""),
              type.getNumElements());
    return true;
  }
  if (auto product = dyn_cast<vector::FMAOp>(op)) {
    Type type = product.getVectorType().getElementType();
    if (failed(elementwise(
            op, [&](ArrayRef<std::string> v) { return fma(type, v); })))
      return failure();
    return true;
  }
  if (auto shuffle = dyn_cast<vector::ShuffleOp>(op)) {
    VectorType from = shuffle.getV1VectorType();
    if (from.getRank() != 1)
      return refuse(op, " other than of one-dimensional vectors");
    declare(op->getResult(0));
    ArrayRef<int64_t> mask = shuffle.getMask();
    eachLane(scalars[op->getResult(0)], int64_t(mask.size()),
             [&](int64_t lane) -> std::string {
               const int64_t at = mask[size_t(lane)],
                             split = from.getNumElements();
               if (at < 0)
                 return "";
               return use(at < split ? shuffle.getV1() : shuffle.getV2()) +
                      "[" + std::to_string(at < split ? at : at - split) + "]";
             });
    return true;
  }
  if (isa<vector::ShapeCastOp>(op)) {
    scalars[op->getResult(0)] = use(op->getOperand(0));
    return true;
  }
  if (auto extract = dyn_cast<vector::ExtractOp>(op)) {
    std::string source = use(extract.getSource());
    auto part =
        partAt(extract.getSourceVectorType(), extract.getMixedPosition());
    if (!part)
      return refuse(op, " at a position that is not there");
    if (!isa<VectorType>(op->getResult(0).getType())) {
      std::string lane = source + "[" + part->first + "]";
      bind(op->getResult(0),
           isNarrow(op->getResult(0)) ? "(int)" + lane : lane);
      return true;
    }
    declare(op->getResult(0));
    copyLanes(scalars[op->getResult(0)] + "[lane]",
              source + "[" + plus(part->first) + "]", part->second);
    return true;
  }
  if (auto insert = dyn_cast<vector::InsertOp>(op)) {
    declare(op->getResult(0));
    std::string name = scalars[op->getResult(0)];
    out.line(name + " = " + use(insert.getDest()) + ";");
    std::string value = use(insert.getValueToStore());
    auto part = partAt(insert.getDestVectorType(), insert.getMixedPosition());
    if (!part)
      return refuse(op, " at a position that is not there");
    if (!isa<VectorType>(insert.getValueToStoreType()))
      out.line(name + "[" + part->first + "] = " + value + ";");
    else
      copyLanes(name + "[" + plus(part->first) + "]", value + "[lane]",
                part->second);
    return true;
  }
  if (auto reduce = dyn_cast<vector::ReductionOp>(op)) {
    auto kind = reductionOf(reduce.getKind());
    if (!kind)
      return refuse(op);
    // In the lanes' order, from the accumulator if there is one.
    std::string source = use(reduce.getVector());
    int64_t count = reduce.getSourceVectorType().getNumElements();
    Type type = op->getResult(0).getType();
    std::string sum = names.fresh("sum");
    bool hasStart = bool(reduce.getAcc());
    out.line(cType(type) + " " + sum + " = " +
             (hasStart ? use(reduce.getAcc()) : source + "[0]") + ";");
    out.line("for (int lane = " + std::string(hasStart ? "0" : "1") +
             "; lane < " + std::to_string(count) + "; ++lane)");
    ++out.depth;
    out.line(sum + " = " + combine(*kind, type, sum, source + "[lane]") + ";");
    --out.depth;
    scalars[op->getResult(0)] =
        isNarrow(op->getResult(0)) ? "(int)" + sum : sum;
    return true;
  }
  if (isa<vector::FromElementsOp>(op)) {
    declare(op->getResult(0));
    for (auto [lane, value] : llvm::enumerate(op->getOperands()))
      out.line(scalars[op->getResult(0)] + "[" + std::to_string(lane) +
               "] = " + use(value) + ";");
    return true;
  }
  if (isa<vector::ToElementsOp>(op)) {
    for (auto [lane, value] : llvm::enumerate(op->getResults()))
      bind(value, (isNarrow(value) ? "(int)" : "") + use(op->getOperand(0)) +
                      "[" + std::to_string(lane) + "]");
    return true;
  }
  if (isa<vector::StepOp>(op)) {
    declare(op->getResult(0));
    copyLanes(scalars[op->getResult(0)] + "[lane]", "lane",
              cast<VectorType>(op->getResult(0).getType()).getNumElements());
    return true;
  }
  return false;
}

} // namespace mgpu::kernels::cuda
