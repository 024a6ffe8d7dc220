// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu.launch: the kernel, its shape, and the bytes it touches.
#include "planner/import/Interpreter.h"
#include "planner/import/KernelAccess.h"

namespace mgpu::planner {

using namespace mlir;

/// Nothing is known of a kernel given as source but what the launch says: it
/// may touch all of each memref.
static KernelSummary
summariseSource(ir::LaunchOp op, llvm::function_ref<HostValue(Value)> valueOf) {
  KernelSummary summary;
  for (auto [k, arg] : llvm::enumerate(op.getArgs())) {
    HostValue value = valueOf(arg);
    auto *view = std::get_if<MemRefValue>(&value);
    if (!view)
      continue;
    Type element = cast<MemRefType>(arg.getType()).getElementType();
    uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(element));
    summary.accesses.push_back({arg, boxOf(*view, bytes), op.mayRead(k),
                                op.mayWrite(k), /*exact=*/false});
  }
  return summary;
}

FailureOr<BufferId> Interpreter::parameterOn(DeviceId device, Value scalar,
                                             DynamicValue value) {
  auto [at, isNew] = parameters.try_emplace({device, value.buffer});
  if (!isNew)
    return at->second;
  // Of a value that stays the same, once before the loop.
  if (inRolledLoop && !findInduction(scalar))
    rolled->hoisted.push_back({uint32_t(dag.nodes.size())});
  at->second =
      addBuffer(dag.buffer(value.buffer).name + ".parameter", device,
                BufferRole::Temporary, MemRefType::get({}, scalar.getType()));
  RecordedNode entry;
  DagNode &node = entry.node;
  Box box = Box::flat(0, int64_t(dag.buffer(value.buffer).sizeBytes));
  node.name =
      dag.buffer(at->second).name + "_" + std::to_string(dag.nodes.size());
  node.devices = {device};
  node.bytesRead = node.bytesWritten = dag.buffer(value.buffer).sizeBytes;
  node.uses = {{value.buffer, box, true, false},
               {at->second, box, false, true}};
  node.work = CopyCall{value.buffer, at->second, box, box};
  // No call of the program: it stands before all of them, on no queue.
  entry.calls.push_back({SourcePoint{}, VectorClock(), scalar.getLoc()});
  if (failed(recorder.record(std::move(entry), /*isOpen=*/false)))
    return failure();
  return at->second;
}

LogicalResult Interpreter::visitLaunch(ir::LaunchOp op) {
  auto device = deviceOf(op, op.getDevice());
  if (failed(device))
    return failure();
  if (device->isHost())
    return op.emitOpError("cannot run on the host");
  int64_t dynamicSharedBytes = 0;
  if (Value size = op.getDynamicSharedMemorySize()) {
    auto bytes = integerOf(op, size, "the dynamic shared memory size");
    if (failed(bytes))
      return failure();
    if (*bytes < 0)
      return op.emitOpError("the dynamic shared memory size is ") << *bytes;
    dynamicSharedBytes = *bytes;
  }
  auto dims = [&](OperandRange sizes, const char *what) -> FailureOr<Dim3> {
    uint32_t found[3] = {1, 1, 1};
    for (auto [k, value] : llvm::enumerate(sizes)) {
      auto size = integerOf(op, value, what);
      if (failed(size))
        return failure();
      if (*size < 1 || *size > UINT32_MAX)
        return op.emitOpError(what) << " is " << *size;
      found[k] = uint32_t(*size);
    }
    return Dim3{found[0], found[1], found[2]};
  };
  auto grid = dims(op.getGrid(), "the grid size");
  if (failed(grid))
    return failure();
  auto block = dims(op.getBlock(), "the block size");
  if (failed(block))
    return failure();
  constexpr uint32_t mostBlocks = INT32_MAX, mostBeside = 65535;
  if (grid->x > mostBlocks || grid->y > mostBeside || grid->z > mostBeside)
    return op.emitOpError("a grid of ")
           << grid->x << " x " << grid->y << " x " << grid->z
           << " blocks; CUDA allows at most " << mostBlocks << " along x and "
           << mostBeside << " along y and z";
  // One by one as well: the volume may pass 64 bits.
  constexpr uint32_t most = 1024, mostAlongZ = 64;
  if (block->z > mostAlongZ && block->volume() <= most)
    return op.emitOpError("a block of ")
           << block->x << " x " << block->y << " x " << block->z
           << " threads; CUDA allows at most " << mostAlongZ
           << " along z: use x or y";
  if (std::max({block->x, block->y, block->z}) > most || block->volume() > most)
    return op.emitOpError("a block of ")
           << block->x << " x " << block->y << " x " << block->z
           << " threads; CUDA allows at most 1024";

  llvm::SmallVector<BufferId, 2> parametersRead;
  LogicalResult parametersMade = success();
  auto valueOfOuter = [&](Value value) -> HostValue {
    auto *dynamic = std::get_if<DynamicValue>(&valueOf(value));
    if (!dynamic)
      return valueOf(value);
    auto parameter = parameterOn(*device, value, *dynamic);
    if (failed(parameter)) {
      parametersMade = failure();
      return {};
    }
    if (!llvm::is_contained(parametersRead, *parameter))
      parametersRead.push_back(*parameter);
    return MemRefValue{*parameter, 0, {}, {}};
  };
  if (op.hasSource())
    for (auto [k, arg] : llvm::enumerate(op.getArgs()))
      if (std::holds_alternative<DynamicValue>(valueOf(arg)))
        return notSupported(op, "argument " + Twine(k) +
                                    " is a dynamic scalar, which lies in "
                                    "memory, but a kernel given as source "
                                    "takes its value; give it the role "
                                    "specialised, or pass a memref");
  auto outlined =
      op.hasSource()
          ? kernels.outlineSource(op, *block, dynamicSharedBytes, valueOfOuter)
          : kernels.outline(op, *block, dynamicSharedBytes, valueOfOuter);
  if (failed(outlined) || failed(parametersMade))
    return failure();
  KernelSummary summary =
      op.hasSource()
          ? summariseSource(op, valueOfOuter)
          : summariseKernel(op.getBody(), *grid, *block, valueOfOuter);

  if (const auto &outside = summary.outOfBounds) {
    InFlightDiagnostic diagnostic = outside->op->emitOpError("index ")
                                    << outside->dimension << " runs from "
                                    << outside->first << " to " << outside->last
                                    << ", outside the " << outside->size
                                    << " of the memref";
    diagnostic.attachNote(op.getLoc())
        << "in this launch of " << grid->volume() << " blocks of "
        << block->volume() << " threads";
    return diagnostic;
  }

  RecordedNode entry;
  DagNode &node = entry.node;
  node.name = dag.kernels[outlined->kernel.value].name + "_" +
              std::to_string(dag.nodes.size());
  node.devices = {*device};
  node.flops = summary.flops;
  for (const KernelAccess &access : summary.accesses) {
    auto view = memrefOf(op, access.root);
    if (failed(view))
      return failure();
    const Buffer &buffer = dag.buffer(view->buffer);
    if (buffer.device != *device)
      return op.emitOpError("kernel on device ")
             << device->value << " uses buffer '" << buffer.name << "' of "
             << (buffer.device.isHost()
                     ? std::string("the host")
                     : "device " + std::to_string(buffer.device.value));
    auto [low, high] = access.box.byteRange();
    if (access.exact && (low < 0 || uint64_t(high) > buffer.sizeBytes))
      return op.emitOpError("kernel reaches outside buffer '")
             << buffer.name << "': bytes " << low << " to " << high << " of "
             << buffer.sizeBytes;
    // A guard keeps the rest of such a box from being touched.
    Box box = access.box;
    std::array<int64_t, 3> blockSteps = access.blockSteps;
    if (low < high && (low < 0 || uint64_t(high) > buffer.sizeBytes)) {
      low = std::max<int64_t>(low, 0);
      high = std::max(low, std::min(high, int64_t(buffer.sizeBytes)));
      box = Box::flat(low, high - low);
      blockSteps = {};
    }
    uint64_t bytes = uint64_t(box.numElements()) * box.elementBytes;
    node.bytesRead += access.reads ? bytes : 0;
    node.bytesWritten += access.writes ? bytes : 0;
    node.uses.push_back({view->buffer, std::move(box), access.reads,
                         access.writes, blockSteps});
    entry.inexact.push_back(!access.exact);
  }
  for (BufferId parameter : parametersRead) {
    uint64_t bytes = dag.buffer(parameter).sizeBytes;
    node.uses.push_back({parameter, Box::flat(0, int64_t(bytes)),
                         /*reads=*/true, /*writes=*/false});
    entry.inexact.push_back(false);
    node.bytesRead += bytes;
  }
  node.work =
      KernelCall{outlined->kernel, *grid, std::move(outlined->arguments)};
  auto chain = chainOf(op, op.getStream(), *device);
  if (failed(chain))
    return failure();
  if (op.getStream() && order.deviceOf(*chain) != *device)
    return op.emitOpError("launches on device ")
           << device->value << " with a stream of device "
           << order.deviceOf(*chain).value;
  return enqueue(op, std::move(entry), *chain, !op.getStream());
}

} // namespace mgpu::planner
