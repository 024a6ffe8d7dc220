// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the threads of a block do together.
#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/PrintfFormat.h"
#include "kernels/lower/SubgroupBarrier.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

static std::string dimensionName(gpu::Dimension dim) {
  return dim == gpu::Dimension::x ? "X" : dim == gpu::Dimension::y ? "Y" : "Z";
}

static uint64_t sizeOf(Dim3 sizes, gpu::Dimension dim) {
  return dim == gpu::Dimension::x   ? sizes.x
         : dim == gpu::Dimension::y ? sizes.y
                                    : sizes.z;
}

/// The thread's number in its block, x fastest.
std::string FunctionEmitter::linearThread() {
  std::string x = std::to_string(kernel.block.x),
              y = std::to_string(kernel.block.y);
  std::string text = "at.threadX";
  if (kernel.block.z > 1)
    return "(" + text + " + " + x + " * (at.threadY + " + y + " * at.threadZ))";
  if (kernel.block.y > 1)
    return "(" + text + " + " + x + " * at.threadY)";
  return text;
}

std::string FunctionEmitter::combine(gpu::AllReduceOperation kind, Type type,
                                     const std::string &a,
                                     const std::string &b) {
  using Kind = gpu::AllReduceOperation;
  bool isFloat = isa<FloatType>(type), isBool = type.isInteger(1);
  std::string cast = "(" + (isFloat ? "" : unsignedType(type)) + ")";
  std::string f = type.isF64() ? "" : "f";
  auto modulo = [&](char sign) {
    if (isBool)
      return sign == '*' ? a + " & " + b : a + " != " + b;
    if (widthOf(type) < 32)
      return "(" + cType(type) + ")(" + a + " " + sign + " " + b + ")";
    return helper("wrap") + (sign == '*' ? "Mul(" : "Add(") + a + ", " + b +
           ")";
  };
  auto choose = [&](const char *sign, const std::string &as) {
    return as + a + " " + sign + " " + as + b + " ? " + a + " : " + b;
  };
  std::string asSigned = isBool ? "-(int)" : "";
  switch (kind) {
  case Kind::ADD:
    return isFloat ? narrow(type, a + " + " + b) : modulo('+');
  case Kind::MUL:
    return isFloat ? narrow(type, a + " * " + b) : modulo('*');
  case Kind::MINUI:
    return choose("<", cast);
  case Kind::MAXUI:
    return choose(">", cast);
  case Kind::MINSI:
    return choose("<", asSigned);
  case Kind::MAXSI:
    return choose(">", asSigned);
  case Kind::MINNUMF:
    return narrow(type, "fmin" + f + "(" + a + ", " + b + ")");
  case Kind::MAXNUMF:
    return narrow(type, "fmax" + f + "(" + a + ", " + b + ")");
  case Kind::MINIMUMF:
    return helper("minimum") + "(" + a + ", " + b + ")";
  case Kind::MAXIMUMF:
    return helper("maximum") + "(" + a + ", " + b + ")";
  case Kind::AND:
    return narrow(type, a + " & " + b);
  case Kind::OR:
    return narrow(type, a + " | " + b);
  case Kind::XOR:
    return narrow(type, a + " ^ " + b);
  }
  llvm_unreachable("all kinds are covered");
}

FailureOr<bool> FunctionEmitter::gpuOp(Operation *op) {
  if (!isa<gpu::GPUDialect>(op->getDialect()))
    return false;
  auto give = [&](const std::string &expression) -> FailureOr<bool> {
    bind(op->getResult(0), expression);
    return true;
  };
  // Where `at` is that of the first of several threads, they follow along x.
  auto along = [&](gpu::Dimension dim) {
    return inPart && !hasOwnIds && dim == gpu::Dimension::x ? " + part" : "";
  };
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return give("at.thread" + dimensionName(id.getDimension()) +
                along(id.getDimension()));
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return give("at.block" + dimensionName(id.getDimension()));
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return give("at.grid" + dimensionName(dim.getDimension()));
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return give(std::to_string(sizeOf(kernel.block, dim.getDimension())));
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    std::string dim = dimensionName(id.getDimension());
    std::string cast = isNarrow(id.getResult()) ? "(int)" : "(long long)";
    if (hasGlobals) {
      const auto bound = id.getUpperBound();
      if (bound && *bound == 1) // the launch has no such axis
        return give("0");
      bool isPart = inPart && id.getDimension() == gpu::Dimension::x;
      return give(cast + "global" + dim + (isPart ? " + part" : ""));
    }
    return give(
        (isNarrow(id.getResult()) ? "at.block" : "(long long)at.block") + dim +
        " * " + std::to_string(sizeOf(kernel.block, id.getDimension())) +
        " + at.thread" + dim + along(id.getDimension()));
  }
  if (isa<gpu::LaneIdOp>(op))
    return give(linearThread() + " % 32");
  if (isa<gpu::SubgroupIdOp>(op))
    return give(linearThread() + " / 32");
  if (isa<gpu::NumSubgroupsOp>(op))
    return give(std::to_string((kernel.block.volume() + 31) / 32));
  if (isa<gpu::SubgroupSizeOp>(op))
    return give("32");
  if (isa<gpu::BarrierOp>(op)) {
    if (madeFor(op).empty()) {
      out.line("__syncthreads();");
    } else {
      helper("lanes");
      out.line("__syncwarp(laneMask(" + linearThread() + ", " + numThreads() +
               "));");
    }
    return true;
  }
  if (auto shared = dyn_cast<gpu::DynamicSharedMemoryOp>(op)) {
    out.line("extern __shared__ __align__(128) unsigned char "
             "mgpu_dynamic_shared[];");
    std::string name = freshName(shared.getResult(), "shared");
    out.line("signed char *const " + name +
             " = (signed char *)mgpu_dynamic_shared;");
    Pointer pointer;
    pointer.base = pointer.root = name;
    pointer.fromRoot = Extent(0);
    auto bytes =
        op->getParentOfType<func::FuncOp>()->getAttrOfType<IntegerAttr>(
            "mgpu.dynamic_shared_bytes");
    if (!bytes)
      return ir::emitProgramError(op) << noDynamicMemory;
    pointer.sizes.push_back(Extent(bytes.getInt()));
    pointer.strides.push_back(Extent(1));
    pointers[shared.getResult()] = std::move(pointer);
    return true;
  }
  if (isa<gpu::AllReduceOp, gpu::SubgroupReduceOp>(op)) {
    Type type = op->getResult(0).getType();
    if (isa<VectorType>(type))
      return refuse(op, " for vectors");
    std::string t = cType(type), lambda;
    auto known = [&](gpu::AllReduceOperation kind) {
      lambda = "[](" + t + " a, " + t + " b) -> " + t + " { return " +
               combine(kind, type, "a", "b") + "; }";
    };
    std::string value = "(" + t + ")" + use(op->getOperand(0));
    if (auto reduce = dyn_cast<gpu::AllReduceOp>(op)) {
      if (auto kind = reduce.getOp())
        known(*kind);
      else if (failed(emitCombiner(reduce.getBody(), op, lambda)))
        return failure();
      if (lanes) {
        std::string all = names.fresh("parts");
        out.line(t + " " + all + "[MGPU_VECTOR]; MGPU_PARTS " + all +
                 "[part] = " + value + ";");
        return give(helper("blockReduceParts") + "<" + numThreads() + ">(" +
                    all + ", " + linearThread() + ", " + lambda + ")");
      }
      return give(helper("blockReduce") + "<" + numThreads() + ">(" + value +
                  ", " + linearThread() + ", " + lambda + ")");
    }
    auto reduce = cast<gpu::SubgroupReduceOp>(op);
    int64_t stride = reduce.getClusterStride();
    int64_t size = reduce.getClusterSize().value_or(32 / stride);
    if (stride < 1 || size < 1 || size * stride > 32 || 32 % (size * stride))
      return refuse(op, " with clusters that do not divide a subgroup of 32");
    known(reduce.getOp());
    return give(helper("subgroupReduce") + "<" + numThreads() + ", " +
                std::to_string(size) + ", " + std::to_string(stride) + ">(" +
                value + ", " + linearThread() + ", " + lambda + ")");
  }
  if (isa<gpu::ShuffleOp, gpu::RotateOp>(op)) {
    Type type = op->getResult(0).getType();
    if (isa<VectorType>(type))
      return refuse(op, " for vectors");
    // The lane read is defined by the dialect; where that leaves the value
    // undefined, a lane keeps its own, as on the host target.
    helper("lanes");
    helper("exchange");
    std::string lane = names.fresh("lane"), from = names.fresh("from"),
                source = names.fresh("source");
    out.line("const unsigned " + lane + " = " + linearThread() + " % 32;");
    std::string limit, valid;
    if (auto rotate = dyn_cast<gpu::RotateOp>(op)) {
      std::string last = std::to_string(rotate.getWidth() - 1);
      out.line("const unsigned " + from + " = (" + lane + " & ~" + last +
               "u) + (" + lane + " + " + std::to_string(rotate.getOffset()) +
               " & " + last + "u);");
      valid = lane + " < " + std::to_string(rotate.getWidth());
    } else {
      auto shuffle = cast<gpu::ShuffleOp>(op);
      std::string offset = "(unsigned)" + use(shuffle.getOffset()),
                  width = "(unsigned)" + use(shuffle.getWidth());
      std::string formula;
      switch (shuffle.getMode()) {
      case gpu::ShuffleMode::XOR:
        formula = lane + " ^ " + offset;
        break;
      case gpu::ShuffleMode::UP:
        formula = lane + " - " + offset;
        break;
      case gpu::ShuffleMode::DOWN:
        formula = lane + " + " + offset;
        break;
      case gpu::ShuffleMode::IDX:
        formula = offset;
        break;
      }
      out.line("const unsigned " + from + " = " + formula + ";");
      valid = from + " < " + width + " && " + lane + " < " + width;
    }
    std::string ok = freshName(op->getResult(1), "valid");
    scalars[op->getResult(1)] = ok;
    out.line("const bool " + ok + " = " + valid + " && " + from + " < 32 && " +
             linearThread() + " - " + lane + " + " + from + " < " +
             numThreads() + ";");
    std::string name = freshName(op->getResult(0), "shuffled");
    scalars[op->getResult(0)] = name;
    out.line("const " + cType(type) + " " + name + " = exchange(laneMask(" +
             linearThread() + ", " + numThreads() + "), (" + cType(type) + ")" +
             use(op->getOperand(0)) + ", " + ok + " ? " + from + " : " + lane +
             ");");
    return true;
  }
  if (auto print = dyn_cast<gpu::PrintfOp>(op)) {
    FailureOr<std::string> format = checkedFormat(print);
    if (failed(format))
      return failure();
    std::string call = "printf(" + quoted(*format);
    for (Value value : print.getArgs()) {
      Type type = value.getType();
      call += ", ";
      if (isa<FloatType>(type))
        call += widthOf(type) < 64 ? "(double)(float)" : "";
      else
        call += widthOf(type) > 32 ? "(long long)" : "(int)";
      call += use(value);
    }
    out.line(call + ");");
    return true;
  }
  return false;
}

} // namespace mgpu::kernels::cuda
