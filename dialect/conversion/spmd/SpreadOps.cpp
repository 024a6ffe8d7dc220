// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes each operation of a device's program for the devices that run it.
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/conversion/spmd/Spread.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

// Whether one device of a program stands for all.

using namespace mlir;

/// Whether some group is not the first one, moved by some devices.
static bool areUnlike(const spmd::DeviceGroups &groups) {
  return llvm::any_of(groups, [&](ArrayRef<int64_t> group) {
    return !llvm::equal(group, groups[0], [&](int64_t a, int64_t b) {
      return a - group[0] == b - groups[0][0];
    });
  });
}

static bool isUneven(spmd::LayoutAttr layout, Value full,
                     ArrayRef<int64_t> devices) {
  ArrayRef<int64_t> shape = cast<ShapedType>(full.getType()).getShape();
  return llvm::any_of(devices, [&](int64_t device) {
    return !layout.holds(device) ||
           layout.shardShape(shape, device) != layout.shardShape(shape, 0);
  });
}

/// Whether `op` computes with a number that depends on the device, other than
/// to say where a part of a buffer begins.
static bool usesNumber(Operation *op, const PerDevice &perDevice) {
  if (isa<memref::SubViewOp>(op) ||
      isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
    return false;
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value value) {
                              return !isa<BaseMemRefType>(value.getType()) &&
                                     perDevice.contains(value);
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The devices at the ends of a shift, and a broadcast's root, wait for less
/// than the others.
static bool isUnlike(Operation *op, const PerDevice &perDevice,
                     ArrayRef<int64_t> devices) {
  if (isa<spmd::OnOp, spmd::MoveOp, spmd::BroadcastOp>(op))
    return true;
  if (auto permute = dyn_cast<spmd::PermuteOp>(op))
    return permute.getPairs().size() != devices.size();
  if (auto part = dyn_cast<spmd::DistributeOp>(op))
    return isUneven(part.getLayout(), part.getInput(), devices);
  if (auto part = dyn_cast<spmd::CollectOp>(op))
    return isUneven(part.getLayout(), part.getInit(), devices);
  if (auto groups = op->getAttrOfType<ArrayAttr>("groups"))
    return areUnlike(spmd::groupsOf(groups, devices));
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return !perDevice.takesAlike(op);
  return usesNumber(op, perDevice);
}

Operation *Spread::findUnlike() const {
  if (!isOne)
    return nullptr;
  if (function->hasAttr(spmd::deviceOrderName))
    return function;
  Operation *found = nullptr;
  const_cast<func::FuncOp &>(function).walk<WalkOrder::PreOrder>(
      [&](Operation *op) {
        if (op == function)
          return WalkResult::advance();
        if (isUnlike(op, perDevice, all)) {
          found = op;
          return WalkResult::interrupt();
        }
        return isa<linalg::LinalgOp, scf::ParallelOp>(op)
                   ? WalkResult::skip()
                   : WalkResult::advance();
      });
  return found;
}

// spmd.move: copies of boxes from device to device.

/// `box` of a buffer that holds `whole`.
static Value viewOf(OpBuilder &b, Location loc, Value buffer,
                    const TensorBox &whole, const TensorBox &box) {
  if (box == whole)
    return buffer;
  SmallVector<OpFoldResult> offsets, sizes;
  for (size_t dim = 0; dim < box.sizes.size(); ++dim) {
    offsets.push_back(b.getIndexAttr(box.offsets[dim] - whole.offsets[dim]));
    sizes.push_back(b.getIndexAttr(box.sizes[dim]));
  }
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return memref::SubViewOp::create(b, loc, buffer, offsets, sizes, ones);
}

void Spread::spreadMove(spmd::MoveOp op) {
  for (int64_t device = op.getFrom().firstDevice();
       device < op.getFrom().endDevice(); ++device)
    if (!checkBuffers(device, op))
      return;
  Location loc = op.getLoc();
  for (const Transfer &each :
       transfersOf(op.getFull(), op.getFrom(), op.getTo()))
    ir::MemcpyOp::create(
        b, loc,
        viewOf(b, loc, on(each.target, op.getInit()), each.to, each.piece),
        viewOf(b, loc, on(each.source, op.getInput()), each.from, each.piece),
        devices[each.target], devices[each.source], Value());
}

bool isHostBuffer(memref::AllocOp alloc) {
  return llvm::any_of(alloc->getUsers(), [&](Operation *user) {
    auto collect = dyn_cast<spmd::CollectOp>(user);
    return collect && collect.getInit() == alloc.getMemref();
  });
}

/// The name of a value, with the device it is on where there are several.
Location Spread::named(Location loc, int64_t device) {
  auto name = dyn_cast<NameLoc>(loc);
  if (!name || all.size() == 1)
    return loc;
  return NameLoc::get(
      StringAttr::get(b.getContext(),
                      name.getName().getValue() + "_" + Twine(device)),
      name.getChildLoc());
}

void Spread::emitOn(int64_t device, Operation *op) {
  if (!isa<spmd::DistributeOp, spmd::CollectOp>(op) &&
      !checkBuffers(device, op))
    return;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](spmd::DeviceIndexOp index) {
        maps[device].map(index.getIndex(),
                         arith::ConstantIndexOp::create(b, op->getLoc(), device)
                             .getResult());
      })
      .Case([&](spmd::DistributeOp each) { emitDistribute(device, each); })
      .Case([&](spmd::CollectOp each) { emitCollect(device, each); })
      .Case([&](memref::AllocOp each) { emitAlloc(device, each); })
      .Case([&](memref::GetGlobalOp each) { emitGlobal(device, each); })
      .Case([&](memref::StoreOp each) { emitStore(device, each); })
      .Case([&](spmd::CustomCallOp each) { emitCustomCall(device, each); })
      .Case([&](spmd::OnOp each) { emitBody(device, each); })
      .Case<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(
          [&](auto) { emitControlFlow(device, op); })
      .Default([&](Operation *) { emitCopy(device, op); });
}

/// In a loop or branch that devices take each in their own way.
void Spread::emitBody(int64_t device, spmd::OnOp op) {
  if (device < int64_t(op.getFirst()) || device >= int64_t(op.getEnd()))
    return;
  for (Operation &inner : op.getBody().front().without_terminator())
    emitOn(device, &inner);
  for (auto [result, value] :
       llvm::zip(op.getOutputs(), op.getYield().getValues()))
    maps[device].map(result, on(device, value));
}

/// Numbers fold on the way, so that sizes of buffers are known.
void Spread::emitCopy(int64_t device, Operation *op) {
  Operation *copy = b.clone(*op, maps[device]);
  SmallVector<Value> folded;
  if (!isPure(op) || op->getNumRegions() > 0 || op->getNumResults() == 0 ||
      failed(b.tryFold(copy, folded)) || folded.empty())
    return;
  maps[device].map(op->getResults(), folded);
  copy->erase();
}

/// A loop or branch that this device takes in its own way.
void Spread::emitControlFlow(int64_t device, Operation *op) {
  Operation *copy = b.insert(op->cloneWithoutRegions(maps[device]));
  OpBuilder::InsertionGuard guard(b);
  for (auto [k, old] : llvm::enumerate(op->getRegions())) {
    if (old.empty())
      continue;
    Block &body = copy->getRegion(k).emplaceBlock();
    b.setInsertionPointToEnd(&body);
    for (BlockArgument argument : old.getArguments())
      maps[device].map(argument,
                       body.addArgument(argument.getType(), argument.getLoc()));
    for (Operation &inner : old.front())
      emitOn(device, &inner);
  }
}

/// The type of a buffer with the sizes it has on a device; null where one is
/// not known.
MemRefType Spread::typeOn(int64_t device, memref::AllocOp op) {
  SmallVector<int64_t> shape(op.getType().getShape());
  auto size = op.getDynamicSizes().begin();
  for (int64_t &each : shape) {
    if (!ShapedType::isDynamic(each))
      continue;
    std::optional<int64_t> known = getConstantIntValue(on(device, *size++));
    if (!known)
      return {};
    each = *known;
  }
  return MemRefType::get(shape, op.getType().getElementType());
}

void Spread::emitAlloc(int64_t device, memref::AllocOp op) {
  if (isHostBuffer(op)) {
    if (device == running.front())
      mapShared(op, b.clone(*op)->getResults());
    return;
  }
  MemRefType type = typeOn(device, op);
  if (!type) {
    if (!isFailed)
      ir::emitUnsupported(op)
          << "makes a tensor of type " << op.getType()
          << "; its shape must be known once scalar arguments are";
    isFailed = true;
    type = MemRefType::get(SmallVector<int64_t>(op.getType().getRank(), 1),
                           op.getType().getElementType());
  }
  Value buffer =
      ir::AllocOp::create(b, named(op.getLoc(), device), type, devices[device])
          .getPtr();
  if (type != op.getType()) // parts may differ in size between devices
    buffer = memref::CastOp::create(b, op.getLoc(), op.getType(), buffer);
  maps[device].map(op.getMemref(), buffer);
}

/// A constant is copied to each device once, before everything else.
void Spread::emitGlobal(int64_t device, memref::GetGlobalOp op) {
  Value &copy = globals[{op.getName().str(), device}];
  if (!copy) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(head);
    Value whole = b.clone(*op)->getResult(0);
    Location loc = NameLoc::get(StringAttr::get(b.getContext(), op.getName()),
                                op.getLoc());
    copy = ir::AllocOp::create(b, named(loc, device), op.getType(),
                               devices[device]);
    head = ir::MemcpyOp::create(b, op.getLoc(), copy, whole, devices[device],
                                host, Value());
  }
  maps[device].map(op.getResult(), copy);
}

/// Null where it has no elements: MLIR has no view of none.
Value Spread::partOf(Value full, spmd::LayoutAttr layout, int64_t device,
                     Location loc) {
  auto type = cast<MemRefType>(full.getType());
  SmallVector<int64_t> sizes = layout.shardShape(type.getShape(), device);
  if (ArrayRef(sizes) == type.getShape())
    return full;
  if (llvm::is_contained(sizes, 0))
    return {};
  return memref::SubViewOp::create(
      b, loc, full, layout.shardOffsets(type.getShape(), device), sizes,
      SmallVector<int64_t>(sizes.size(), 1));
}

void Spread::emitDistribute(int64_t device, spmd::DistributeOp op) {
  if (!op.getLayout().holds(device))
    return;
  if (Value part = partOf(on(device, op.getInput()), op.getLayout(), device,
                          op.getLoc()))
    ir::MemcpyOp::create(b, op.getLoc(), on(device, op.getInit()), part,
                         devices[device], host, Value());
}

/// The first one of the devices that hold the same part gives it.
void Spread::emitCollect(int64_t device, spmd::CollectOp op) {
  if (!op.getLayout().holds(device) || !checkBuffers(device, op))
    return;
  auto type = cast<MemRefType>(op.getInit().getType());
  auto offsets = [&](int64_t of) {
    return op.getLayout().shardOffsets(type.getShape(), of);
  };
  for (int64_t before = op.getLayout().firstDevice(); before < device; ++before)
    if (offsets(before) == offsets(device))
      return;
  if (Value part =
          partOf(on(device, op.getInit()), op.getLayout(), device, op.getLoc()))
    ir::MemcpyOp::create(b, op.getLoc(), part, on(device, op.getInput()), host,
                         devices[device], Value());
}

/// A store of host code is a kernel that fills one element.
void Spread::emitStore(int64_t device, memref::StoreOp op) {
  SmallVector<OpFoldResult> offsets;
  for (Value index : op.getIndices())
    offsets.push_back(getAsOpFoldResult(on(device, index)));
  size_t rank = offsets.size();
  SmallVector<OpFoldResult> ones(rank, b.getIndexAttr(1));
  Value element = on(device, op.getMemref());
  if (rank > 0)
    element =
        memref::SubViewOp::create(b, op.getLoc(), element, offsets, ones, ones);
  linalg::FillOp::create(b, op.getLoc(), on(device, op.getValueToStore()),
                         element);
}

/// The kernel's macros ELEMENTS, of the largest init, and DIM0 to DIM6, the
/// sizes of the first input or else of the first init.
static DictionaryAttr macrosOf(OpBuilder &b, spmd::CustomCallOp op,
                               int64_t elements) {
  Value first = op.getInputs().empty() ? op.getInits()[0] : op.getInputs()[0];
  SmallVector<NamedAttribute> macros;
  auto say = [&](const Twine &name, int64_t value) {
    if (value <= UINT32_MAX && macros.size() < 8)
      macros.push_back(b.getNamedAttr(
          b.getStringAttr(name), b.getArrayAttr(b.getI64IntegerAttr(value))));
  };
  say("ELEMENTS", elements);
  for (auto [k, size] :
       llvm::enumerate(cast<MemRefType>(first.getType()).getShape()))
    say("DIM" + Twine(k), size);
  return b.getDictionaryAttr(macros);
}

/// The text of a call's configuration that a registered function reads: a
/// string as it is, anything else as MLIR prints it.
static std::string configText(spmd::CustomCallOp op) {
  std::string text;
  if (auto config = op.getConfigAttr();
      auto string = dyn_cast_or_null<StringAttr>(config))
    text = string.getValue();
  else if (config)
    llvm::raw_string_ostream(text) << config;
  return text;
}

/// A launch of the file of CUDA C++, or one of which only the uses are known.
void Spread::emitCustomCall(int64_t device, spmd::CustomCallOp op) {
  constexpr int64_t threads = 256;
  int64_t elements = 0;
  for (Value init : op.getInits())
    elements =
        std::max(elements, cast<MemRefType>(init.getType()).getNumElements());
  const int64_t blocks =
      op.getSource() ? llvm::divideCeil(elements, threads) : 1;
  auto size = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(b, op.getLoc(), number);
  };
  SmallVector<Value> arguments = llvm::map_to_vector(
      op->getOperands(), [&](Value value) { return on(device, value); });
  auto launch =
      ir::LaunchOp::create(b, op.getLoc(), devices[device],
                           ValueRange(size(std::max<int64_t>(blocks, 1))),
                           ValueRange(size(threads)), Value(), arguments);
  SmallVector<int64_t> reads, writes;
  for (OpOperand &operand : op->getOpOperands()) {
    const bool isInit = op.isDpsInit(&operand);
    const int64_t position = operand.getOperandNumber();
    if (!isInit || spmd::keepsInit(op, operand))
      reads.push_back(position);
    if (isInit)
      writes.push_back(position);
  }
  launch->setAttr("reads", b.getDenseI64ArrayAttr(reads));
  launch->setAttr("writes", b.getDenseI64ArrayAttr(writes));
  launch->setAttr(ir::LaunchOp::getSourceAttrName(),
                  op.getSource() ? op.getSourceAttr() : op.getTargetAttr());
  if (op.getSource()) {
    launch->setAttr("entry", op.getEntryAttr());
    launch->setAttr("tunables", macrosOf(b, op, elements));
  } else {
    launch->setAttr(ir::LaunchOp::getOpaqueAttrName(), b.getUnitAttr());
    if (StringAttr library = op.getRegisteredAttr()) {
      launch->setAttr(ir::LaunchOp::getRegisteredAttrName(),
                      b.getStringAttr(configText(op)));
      launch->setAttr(ir::LaunchOp::getLibraryAttrName(), library);
    }
  }
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Value Spread::communicator(ArrayRef<int64_t> group) {
  Value &made = communicators[SmallVector<int64_t>(group)];
  if (!made) {
    SmallVector<Value> members = llvm::map_to_vector(
        group, [&](int64_t device) { return devices[device]; });
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(head);
    head = ir::CreateCommunicatorOp::create(
        b, function.getLoc(), ir::CommunicatorType::get(b.getContext()),
        members);
    made = head->getResult(0);
    if (isOne)
      ir::setMark(head, ir::Mark::OneDevice);
  }
  return made;
}

/// Makes the call of the member of rank `rank`.
static void makeCall(OpBuilder &b, Operation *op, Value send, Value recv,
                     Value comm) {
  Location loc = op->getLoc();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](spmd::AllReduceOp each) {
        ir::AllReduceOp::create(b, loc, send, recv, comm, Value(),
                                each.getKind());
      })
      .Case([&](spmd::AllGatherOp each) {
        ir::AllGatherOp::create(b, loc, send, recv, comm, Value(),
                                each.getAxis());
      })
      .Case([&](spmd::ReduceScatterOp each) {
        ir::ReduceScatterOp::create(b, loc, send, recv, comm, Value(),
                                    each.getKind(), each.getAxis());
      })
      .Case([&](spmd::AllToAllOp each) {
        ir::AllToAllOp::create(b, loc, send, recv, comm, Value(),
                               each.getSplit(), each.getConcat());
      })
      .Case([&](spmd::BroadcastOp each) {
        Value root = arith::ConstantIndexOp::create(b, loc, each.getRoot());
        ir::BroadcastOp::create(b, loc, recv, comm, root, Value());
      });
}

void Spread::spreadCollective(Operation *op) {
  if (auto move = dyn_cast<spmd::MoveOp>(op))
    return spreadMove(move);
  for (int64_t device : running)
    if (!checkBuffers(device, op))
      return;
  if (auto permute = dyn_cast<spmd::PermuteOp>(op))
    return spreadPermute(permute);
  auto destination = cast<DestinationStyleOpInterface>(op);
  Value input = destination.getDpsInputs()[0];
  Value init = destination.getDpsInits()[0];
  auto broadcast = dyn_cast<spmd::BroadcastOp>(op);
  auto groups = op->getAttrOfType<ArrayAttr>("groups");
  for (ArrayRef<int64_t> group : spmd::groupsOf(groups, members())) {
    if (llvm::none_of(group, [&](int64_t each) { return isWritten(each); }))
      continue;
    Value comm = communicator(group);
    if (broadcast && input != init) // it sends from where it receives
      if (int64_t root = group[broadcast.getRoot()]; isWritten(root))
        memref::CopyOp::create(b, op->getLoc(), on(root, input),
                               on(root, init));
    for (int64_t device : group)
      if (isWritten(device))
        makeCall(b, op, on(device, input), on(device, init), comm);
  }
}

void Spread::spreadPermute(spmd::PermuteOp op) {
  SmallVector<int64_t> pairs; // of ranks
  for (Attribute pair : op.getPairs())
    for (int64_t device : cast<DenseI64ArrayAttr>(pair).asArrayRef())
      pairs.push_back(device - running.front());
  Value comm = communicator(members());
  for (int64_t device : running)
    ir::PermuteOp::create(b, op.getLoc(), on(device, op.getInput()),
                          on(device, op.getInit()), comm, Value(), pairs);
}

} // namespace mgpu::conversion
