// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/BulkOps.h"
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_PLACEHOSTMEMORY
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

class Placement {
public:
  explicit Placement(func::FuncOp function)
      : function(function), home(deviceHandle(function, 0)),
        host(deviceHandle(function, ir::hostDeviceIndex)) {
    head = home.getDefiningOp();
    if (head->isBeforeInBlock(host.getDefiningOp()))
      head = host.getDefiningOp();
  }

  LogicalResult run();

private:
  LogicalResult find();
  LogicalResult use(Operation *user, Value memref, bool byHost);
  LogicalResult place(Value root);
  LogicalResult placeAllocation(Operation *op);
  void placeGlobal(memref::GlobalOp global, ArrayRef<Operation *> gets);
  LogicalResult placeArgument(BlockArgument argument);
  void returnFrom(func::ReturnOp op);
  void follow();
  LogicalResult addTwins(ir::LaunchOp launch);
  bool isPlaced(Value memref);
  bool isWritten(Value root);
  /// A whole buffer on `device` that holds what `from`, on `owner`, does.
  Value copyOn(OpBuilder &b, Location loc, Value device, Value from,
               Value owner, Value stream = {});

  func::FuncOp function;
  Value home, host;
  Operation *head;               ///< the last of both handles
  llvm::SetVector<Value> roots;  ///< to be placed, as they were found
  llvm::SetVector<Value> placed; ///< their buffers
};

/// Memory of the gpu dialect is its device's; other memory that a launch or
/// host code touches is to be placed.
LogicalResult Placement::use(Operation *user, Value memref, bool byHost) {
  for (Value root : rootsOf(memref)) {
    Operation *op = root.getDefiningOp();
    if (op && byHost && ir::hasMark(op, ir::Mark::DeviceOnly)) {
      InFlightDiagnostic diagnostic =
          ir::emitProgramError(user)
          << "is host code that touches memory of a device: copy it with "
             "gpu.memcpy, or allocate it host_shared";
      diagnostic.attachNote(op->getLoc()) << "allocated here";
      return diagnostic;
    }
    if (op && isa<ir::AllocOp, ir::ShardedAllocOp>(op))
      continue;
    auto argument = dyn_cast<BlockArgument>(root);
    const bool isKnown =
        op ? isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(op)
           : argument.getOwner() == &function.getBody().front();
    if (!isKnown)
      return ir::emitUnsupported(user)
             << "uses a memref whose memory the text of this function does not "
                "show";
    roots.insert(root);
  }
  return success();
}

LogicalResult Placement::find() {
  WalkResult result =
      function.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        const bool isLaunch = isa<ir::LaunchOp, scf::ParallelOp>(op);
        if (!isLaunch && !touchesMemory(op) &&
            !isa<linalg::LinalgOp, linalg::SoftmaxOp>(op))
          return WalkResult::advance();
        for (Value memref : ir::memrefsOf(op))
          if (failed(use(op, memref, touchesMemory(op))))
            return WalkResult::interrupt();
        return WalkResult::skip();
      });
  return failure(result.wasInterrupted());
}

Value Placement::copyOn(OpBuilder &b, Location loc, Value device, Value from,
                        Value owner, Value stream) {
  auto type = cast<MemRefType>(from.getType());
  Value made = ir::AllocOp::create(b, loc, type, device);
  ir::MemcpyOp::create(b, loc, made, from, device, owner, stream);
  return made;
}

bool Placement::isWritten(Value root) {
  SmallVector<Value> todo{root};
  llvm::DenseSet<Value> seen;
  while (!todo.empty()) {
    Value each = todo.pop_back_val();
    if (!seen.insert(each).second)
      continue;
    for (Operation *user : each.getUsers()) {
      if (mayWrite(user, each))
        return true;
      for (Value result : user->getResults())
        if (isa<BaseMemRefType>(result.getType()))
          todo.push_back(result);
    }
  }
  return false;
}

LogicalResult Placement::placeAllocation(Operation *op) {
  Value memory = op->getResult(0);
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> shape(type.getShape());
  auto sizes = op->getOperands().begin();
  for (int64_t &size : shape)
    if (ShapedType::isDynamic(size)) {
      std::optional<int64_t> known = knownSize(*sizes++);
      if (!known || *known < 0)
        return ir::emitUnsupported(op) << "is memory that devices use, of a "
                                          "size that is not a constant";
      size = *known;
    }
  if (!type.getLayout().isIdentity())
    return ir::emitUnsupported(op)
           << "is memory that devices use, of another layout than the default";
  OpBuilder b(op);
  auto wanted =
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  Value made = ir::AllocOp::create(b, op->getLoc(), wanted, home);
  placed.insert(made);
  replaceMemory(memory, made);
  op->erase();
  return success();
}

void Placement::placeGlobal(memref::GlobalOp global,
                            ArrayRef<Operation *> gets) {
  OpBuilder b(function.getContext());
  b.setInsertionPointAfter(head);
  Location loc = gets.front()->getLoc();
  auto type = cast<MemRefType>(gets.front()->getResult(0).getType());
  Value made;
  if (global.getInitialValue() && !global.isUninitialized()) {
    Value from = memref::GetGlobalOp::create(b, loc, type, global.getSymName());
    made = copyOn(b, loc, home, from, host);
  } else {
    made = ir::AllocOp::create(b, loc, type, home);
  }
  placed.insert(made);
  for (Operation *get : gets) {
    get->getResult(0).replaceAllUsesWith(made);
    get->erase();
  }
}

LogicalResult Placement::placeArgument(BlockArgument argument) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return ir::emitUnsupported(function)
           << "has an argument that devices use, which needs a static shape "
              "and the default layout";
  const bool writes = isWritten(argument);
  OpBuilder b(function.getContext());
  b.setInsertionPointAfter(head);
  Value made = copyOn(b, argument.getLoc(), home, argument, host);
  argument.replaceAllUsesExcept(made, made.getDefiningOp()->getNextNode());
  placed.insert(made);
  if (writes)
    function.walk([&](func::ReturnOp end) {
      OpBuilder last(end);
      ir::MemcpyOp::create(last, argument.getLoc(), argument, made, host, home,
                           Value());
    });
  return success();
}

LogicalResult Placement::place(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return placeArgument(argument);
  Operation *op = root.getDefiningOp();
  auto get = dyn_cast<memref::GetGlobalOp>(op);
  if (!get)
    return placeAllocation(op);
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
      get, get.getNameAttr());
  if (!global)
    return get.emitOpError("names no memref.global of this module");
  auto type = cast<MemRefType>(get.getType());
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return ir::emitUnsupported(get)
           << "names memory that devices use, which needs a static shape and "
              "the default layout";
  // One memory, however often it is named.
  SmallVector<Operation *> gets;
  function.walk([&](memref::GetGlobalOp each) {
    if (each.getName() == get.getName())
      gets.push_back(each);
  });
  for (Operation *each : gets)
    roots.remove(each->getResult(0));
  placeGlobal(global, gets);
  return success();
}

/// Results are memory of the host.
void Placement::returnFrom(func::ReturnOp op) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape() || !isPlaced(operand.get()))
      continue;
    Value made = memref::AllocOp::create(
        b, op.getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()));
    ir::MemcpyOp::create(b, op.getLoc(), made, operand.get(), host, home,
                         Value());
    if (made.getType() == type)
      operand.set(made);
  }
}

bool Placement::isPlaced(Value memref) {
  return llvm::any_of(rootsOf(memref),
                      [&](Value root) { return placed.contains(root); });
}

/// Follows the values that name the memory by its place.
void Placement::follow() {
  SmallVector<Operation *> deallocs;
  function.walk([&](Operation *op) {
    if (auto copy = dyn_cast<ir::MemcpyOp>(op)) {
      if (isPlaced(copy.getDst()))
        copy.getDstDeviceMutable().assign(home);
      if (isPlaced(copy.getSrc()))
        copy.getSrcDeviceMutable().assign(home);
    } else if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
      if (isPlaced(dealloc.getMemref()))
        deallocs.push_back(op);
    } else if (auto end = dyn_cast<func::ReturnOp>(op)) {
      returnFrom(end);
    }
  });
  for (Operation *op : deallocs) {
    OpBuilder b(op);
    ir::FreeOp::create(b, op->getLoc(), op->getOperand(0), home);
    op->erase();
  }
}

/// The memref as a view of `twin` in place of its root; null where loops or
/// branches carry it.
static Value viewOfTwin(OpBuilder &b, Value memref, Value root, Value twin) {
  if (memref == root)
    return twin;
  Value of = ir::viewSourceOf(memref);
  Value source = of ? viewOfTwin(b, of, root, twin) : Value();
  if (!source)
    return {};
  IRMapping map;
  map.map(of, source);
  return b.clone(*memref.getDefiningOp(), map)
      ->getResult(cast<OpResult>(memref).getResultNumber());
}

/// A launch on another device works on memory of that device, copied there
/// before and, where it writes, back behind.
LogicalResult Placement::addTwins(ir::LaunchOp launch) {
  Value device = launch.getDevice();
  if (device == home || ir::getConstantDeviceIndex(device) == 0)
    return success();
  OpBuilder before(launch), behind(launch->getContext());
  behind.setInsertionPointAfter(launch);
  llvm::DenseMap<Value, Value> twins;
  for (Value memref : ir::memrefsOf(launch)) {
    if (!isPlaced(memref))
      continue;
    Value root = ir::rootOf(memref);
    Value twin = placed.contains(root) ? twins.lookup(root) : Value();
    if (placed.contains(root) && !twin)
      twin = twins[root] = copyOn(before, launch.getLoc(), device, root, home,
                                  launch.getStream());
    Value view = twin ? viewOfTwin(before, memref, root, twin) : Value();
    if (!view)
      return ir::emitUnsupported(launch)
             << "runs on another device than the first with memory of the host "
                "that loops or branches carry; allocate it with gpu.alloc";
    bool writes = false;
    memref.replaceUsesWithIf(view, [&](OpOperand &operand) {
      Operation *user = operand.getOwner();
      if (!launch->isAncestor(user))
        return false;
      writes |=
          mayWrite(user, memref) ||
          llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
      return true;
    });
    if (writes)
      ir::MemcpyOp::create(behind, launch.getLoc(), root, twin, home, device,
                           launch.getStream());
  }
  return success();
}

LogicalResult Placement::run() {
  if (failed(find()))
    return failure();
  while (!roots.empty()) {
    Value root = roots.front();
    roots.remove(root);
    if (failed(place(root)))
      return failure();
  }
  follow();
  SmallVector<ir::LaunchOp> launches;
  function.walk([&](ir::LaunchOp launch) { launches.push_back(launch); });
  for (ir::LaunchOp launch : launches)
    if (failed(addTwins(launch)))
      return failure();
  return success();
}

struct PlaceHostMemory : impl::PlaceHostMemoryBase<PlaceHostMemory> {
  using PlaceHostMemoryBase::PlaceHostMemoryBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = module.lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return markAllAnalysesPreserved();
    if (module.getOps<ir::DeviceConfigOp>().empty()) {
      int64_t count = devices > 0 ? int64_t(devices) : 1;
      function.walk([&](ir::GetDeviceOp device) {
        if (auto index = ir::getConstantDeviceIndex(device))
          count = std::max(count, std::min<int64_t>(*index, UINT32_MAX) + 1);
      });
      auto config = ir::DeviceConfigAttr::getChecked(
          [&] { return ir::emitUnsupported(function); }, &getContext(),
          uint32_t(std::min<int64_t>(count, UINT32_MAX)), DenseI32ArrayAttr());
      if (!config)
        return signalPassFailure();
      auto b = OpBuilder::atBlockBegin(module.getBody());
      ir::DeviceConfigOp::create(b, module.getLoc(), "mgpu_devices", config);
    }
    if (failed(Placement(function).run()))
      signalPassFailure();
  }
};

} // namespace

void nameMemorySpaces(Operation *kernel) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    auto number = dyn_cast_or_null<IntegerAttr>(type.getMemorySpace());
    if (!number || (number.getInt() != 3 && number.getInt() != 5))
      return std::nullopt;
    auto space = gpu::AddressSpaceAttr::get(
        type.getContext(), number.getInt() == 3 ? gpu::AddressSpace::Workgroup
                                                : gpu::AddressSpace::Private);
    return MemRefType::get(type.getShape(), type.getElementType(),
                           type.getLayout(), space);
  });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

namespace {

Value dynamicMemory(OpBuilder &b, Location loc, MemRefType type) {
  auto bytes =
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value memory = gpu::DynamicSharedMemoryOp::create(b, loc, bytes);
  Value start = arith::ConstantIndexOp::create(b, loc, 0);
  return memref::ViewOp::create(b, loc, type, memory, start, ValueRange());
}

/// A name of dynamic memory, which views of static sizes give its sizes.
void placeDynamic(memref::GetGlobalOp get) {
  for (Operation *user : llvm::make_early_inc_range(get->getUsers())) {
    auto cast = dyn_cast<memref::ReinterpretCastOp>(user);
    if (!cast || !cast.getType().hasStaticShape() ||
        !cast.getType().getLayout().isIdentity())
      continue;
    OpBuilder b(cast);
    cast.replaceAllUsesWith(dynamicMemory(b, cast.getLoc(), cast.getType()));
    cast->erase();
  }
  OpBuilder b(get);
  if (!get->use_empty())
    get.replaceAllUsesWith(dynamicMemory(b, get.getLoc(), get.getType()));
  get->erase();
}

} // namespace

void placeWorkgroupGlobals(ir::LaunchOp launch) {
  SmallVector<memref::GetGlobalOp> found;
  launch.walk([&](memref::GetGlobalOp get) {
    if (gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(get.getType()))
      found.push_back(get);
  });
  llvm::StringMap<Value> buffers;
  for (memref::GetGlobalOp get : found) {
    if (get.getType().hasStaticShape() && get.getType().getNumElements() == 0) {
      placeDynamic(get);
      continue;
    }
    Value &buffer = buffers[get.getName()];
    if (!buffer) {
      OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
      buffer = memref::AllocaOp::create(b, get.getLoc(), get.getType());
    }
    get.replaceAllUsesWith(buffer);
    get->erase();
  }
}

} // namespace mgpu::conversion
