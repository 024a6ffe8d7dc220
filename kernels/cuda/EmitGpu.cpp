// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits what the threads of a block do together.
#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/PrintfFormat.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "llvm/ADT/TypeSwitch.h"

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
    return narrow(type, helper("minimum") + "(" + a + ", " + b + ")");
  case Kind::MAXIMUMF:
    return narrow(type, helper("maximum") + "(" + a + ", " + b + ")");
  case Kind::AND:
    return narrow(type, a + " & " + b);
  case Kind::OR:
    return narrow(type, a + " | " + b);
  case Kind::XOR:
    return narrow(type, a + " ^ " + b);
  }
  llvm_unreachable("all kinds are covered");
}

/// Where `at` is that of the first of several threads, they follow along x.
std::string FunctionEmitter::threadAlong(gpu::Dimension dim) {
  return "at.thread" + dimensionName(dim) +
         (inPart && !hasOwnIds && dim == gpu::Dimension::x ? " + part" : "");
}

LogicalResult FunctionEmitter::emit(gpu::GlobalIdOp op) {
  const gpu::Dimension axis = op.getDimension();
  std::string dim = dimensionName(axis);
  if (!hasGlobals) {
    bind(op, (isNarrow(op) ? "at.block" : "(long long)at.block") + dim + " * " +
                 std::to_string(sizeOf(kernel.block, axis)) + " + " +
                 threadAlong(axis));
    return success();
  }
  if (op.getUpperBound() == 1) { // the launch has no such axis
    bind(op, "0");
    return success();
  }
  bind(op, (isNarrow(op) ? "(int)global" : "(long long)global") + dim +
               (inPart && axis == gpu::Dimension::x ? " + part" : ""));
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::BarrierOp op) {
  if (kernel.bulk.stores && !vectorForm)
    onlyBulk({"fenceCopies();"}); // of what this thread wrote
  if (madeFor(op).empty()) {
    out.line(vectorForm ? "MGPU_MEET();" : "__syncthreads();");
    return success();
  }
  helper("lanes");
  out.line("__syncwarp(laneMask(" + linearThread() + ", " + numThreads() +
           "));");
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::DynamicSharedMemoryOp op) {
  out.line("extern __shared__ __align__(128) unsigned char "
           "mgpu_dynamic_shared[];");
  std::string name = freshName(op.getResult(), "shared");
  std::string start = "mgpu_dynamic_shared";
  if (!kernel.bulk.isEmpty()) // there is room for it
    start = "afterPadding(" + start + ")";
  out.line("signed char *const " + name + " = (signed char *)" + start + ";");
  Pointer pointer;
  pointer.base = pointer.root = name;
  pointer.fromRoot = Extent(0);
  auto bytes = op->getParentOfType<func::FuncOp>()->getAttrOfType<IntegerAttr>(
      "mgpu.dynamic_shared_bytes");
  if (!bytes)
    return ir::emitProgramError(op) << noDynamicMemory;
  pointer.sizes.push_back(Extent(bytes.getInt()));
  pointer.strides.push_back(Extent(1));
  pointers[op.getResult()] = std::move(pointer);
  return success();
}

/// "[](float a, float b) -> float { return a + b; }"
std::string FunctionEmitter::combinerOf(gpu::AllReduceOperation kind,
                                        Type type) {
  std::string t = cType(type);
  return "[](" + t + " a, " + t + " b) -> " + t + " { return " +
         combine(kind, type, "a", "b") + "; }";
}

/// An array of what each part gives to a reduction.
std::string FunctionEmitter::partsOfReduced(const std::string &type,
                                            const std::string &value) {
  std::string all = names.fresh("parts");
  out.line(type + " " + all + "[MGPU_VECTOR]; MGPU_PARTS " + all +
           "[part] = " + value + ";");
  return all;
}

LogicalResult FunctionEmitter::emit(gpu::AllReduceOp op) {
  Type type = op.getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string t = cType(type), lambda;
  std::string value = "(" + t + ")" + use(op.getValue());
  if (auto kind = op.getOp())
    lambda = combinerOf(*kind, type);
  else if (failed(emitCombiner(op.getBody(), op, lambda)))
    return failure();
  std::string name = "blockReduce";
  if (vectorForm) {
    name = "blockReduceParts";
    value = partsOfReduced(t, value);
  }
  bind(op, helper(name) + "<" + numThreads() + ">(" + value + ", " +
               linearThread() + ", " + lambda + ")");
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupReduceOp op) {
  Type type = op.getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string value = "(" + cType(type) + ")" + use(op.getValue());
  int64_t stride = op.getClusterStride();
  int64_t size = op.getClusterSize().value_or(32 / stride);
  if (stride < 1 || size < 1 || size * stride > 32 || 32 % (size * stride))
    return refuse(op, " with clusters that do not divide a subgroup of 32");
  std::string lambda = combinerOf(op.getOp(), type);
  if (vectorForm) { // of whole subgroups alone
    bind(op, helper("subgroupReduceParts") + "(" +
                 partsOfReduced(cType(type), value) + ", " + linearThread() +
                 ", " + lambda + ")");
    return success();
  }
  bind(op, helper("subgroupReduce") + "<" + numThreads() + ", " +
               std::to_string(size) + ", " + std::to_string(stride) + ">(" +
               value + ", " + linearThread() + ", " + lambda + ")");
  return success();
}

/// The lane that a shuffle reads in its mode.
static std::string sourceLane(gpu::ShuffleMode mode, const std::string &lane,
                              const std::string &offset) {
  switch (mode) {
  case gpu::ShuffleMode::XOR:
    return lane + " ^ " + offset;
  case gpu::ShuffleMode::UP:
    return lane + " - " + offset;
  case gpu::ShuffleMode::DOWN:
    return lane + " + " + offset;
  case gpu::ShuffleMode::IDX:
    return offset;
  }
  llvm_unreachable("all modes are covered");
}

/// A value of another lane, which the dialect defines; where it leaves the
/// value undefined, a lane keeps its own, as on the host target.
LogicalResult
FunctionEmitter::exchange(Operation *op,
                          llvm::function_ref<LanesRead(const std::string &lane,
                                                       const std::string &from)>
                              read) {
  Value result = op->getResult(0), isValid = op->getResult(1);
  Type type = result.getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  helper("lanes");
  helper("exchange");
  std::string lane = names.fresh("lane"), from = names.fresh("from");
  out.line("const unsigned " + lane + " = " + linearThread() + " % 32;");
  LanesRead lanesRead = read(lane, from);
  out.line("const unsigned " + from + " = " + lanesRead.formula + ";");
  std::string ok = freshName(isValid, "valid");
  scalars[isValid] = ok;
  out.line("const bool " + ok + " = " + lanesRead.valid + " && " + from +
           " < 32 && " + linearThread() + " - " + lane + " + " + from + " < " +
           numThreads() + ";");
  std::string name = freshName(result, "shuffled");
  scalars[result] = name;
  out.line("const " + cType(type) + " " + name + " = exchange(laneMask(" +
           linearThread() + ", " + numThreads() + "), (" + cType(type) + ")" +
           use(op->getOperand(0)) + ", " + ok + " ? " + from + " : " + lane +
           ");");
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::RotateOp op) {
  return exchange(op, [&](const std::string &lane, const std::string &) {
    std::string last = std::to_string(op.getWidth() - 1);
    return LanesRead{"(" + lane + " & ~" + last + "u) + (" + lane + " + " +
                         std::to_string(op.getOffset()) + " & " + last + "u)",
                     lane + " < " + std::to_string(op.getWidth())};
  });
}

LogicalResult FunctionEmitter::emit(gpu::ShuffleOp op) {
  return exchange(op, [&](const std::string &lane, const std::string &from) {
    std::string offset = "(unsigned)" + use(op.getOffset()),
                width = "(unsigned)" + use(op.getWidth());
    return LanesRead{sourceLane(op.getMode(), lane, offset),
                     from + " < " + width + " && " + lane + " < " + width};
  });
}

LogicalResult FunctionEmitter::emit(gpu::PrintfOp op) {
  FailureOr<std::string> format = checkedFormat(op);
  if (failed(format))
    return failure();
  std::string call = "printf(" + quoted(*format);
  for (Value value : op.getArgs()) {
    Type type = value.getType();
    call += ", ";
    if (isa<FloatType>(type))
      call += widthOf(type) < 64 ? "(double)(float)" : "";
    else
      call += widthOf(type) > 32 ? "(long long)" : "(int)";
    call += use(value);
  }
  out.line(call + ");");
  return success();
}

LogicalResult FunctionEmitter::gpuOp(Operation *op) {
  auto give = [&](const std::string &expression) {
    bind(op->getResult(0), expression);
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<gpu::GlobalIdOp, gpu::BarrierOp, gpu::DynamicSharedMemoryOp,
            gpu::AllReduceOp, gpu::SubgroupReduceOp, gpu::ShuffleOp,
            gpu::RotateOp, gpu::PrintfOp>([&](auto each) { return emit(each); })
      .Case([&](gpu::ThreadIdOp id) {
        return give(threadAlong(id.getDimension()));
      })
      .Case([&](gpu::BlockIdOp id) {
        return give("at.block" + dimensionName(id.getDimension()));
      })
      .Case([&](gpu::GridDimOp dim) {
        return give("at.grid" + dimensionName(dim.getDimension()));
      })
      .Case([&](gpu::BlockDimOp dim) {
        return give(std::to_string(sizeOf(kernel.block, dim.getDimension())));
      })
      .Case([&](gpu::LaneIdOp) { return give(linearThread() + " % 32"); })
      .Case([&](gpu::SubgroupIdOp) { return give(linearThread() + " / 32"); })
      .Case([&](gpu::NumSubgroupsOp) {
        return give(std::to_string((kernel.block.volume() + 31) / 32));
      })
      .Case([&](gpu::SubgroupSizeOp) { return give("32"); })
      .Default([&](Operation *) { return matrixOp(op); });
}

} // namespace mgpu::kernels::cuda
