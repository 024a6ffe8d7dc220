// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/AsyncRegions.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Async/IR/Async.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

bool isOfAsync(Type type) {
  return isa<async::AsyncDialect>(type.getDialect());
}

/// The value that an !async.value holds, and the gpu token behind which it
/// holds it.
struct Held {
  Value payload, token;
};

class Inliner {
public:
  LogicalResult inlineAll(ModuleOp module);

private:
  LogicalResult convert(Operation *op);
  LogicalResult inlineExecute(async::ExecuteOp execute);
  LogicalResult await(Operation *await);
  LogicalResult addToGroup(async::AddToGroupOp add);

  /// The gpu token of a token or a value of the async dialect; null where
  /// nothing shows it.
  Value tokenOf(Value value) const {
    if (isa<gpu::AsyncTokenType>(value.getType()))
      return value;
    return held.lookup(value).token;
  }

  DenseMap<Value, Held> held;
  DenseMap<Value, SmallVector<Value>> groups;
};

LogicalResult refuse(Operation *op) {
  return ir::emitUnsupported(op)
         << "is or uses a part of the dialect 'async' that has no form here: "
            "async.execute, async.await and groups have one, with tokens that "
            "scf hands on";
}

Value waitFor(OpBuilder &b, Location loc, ValueRange tokens) {
  return gpu::WaitOp::create(b, loc, gpu::AsyncTokenType::get(b.getContext()),
                             tokens)
      .getAsyncToken();
}

void waitOnHost(OpBuilder &b, Location loc, ValueRange tokens) {
  gpu::WaitOp::create(b, loc, Type(), tokens);
}

/// Whether tokens may order `op`, which has none yet.
bool takesToken(Operation *op) {
  if (auto alloc = dyn_cast<gpu::AllocOp>(op))
    return !alloc.getHostShared() && !alloc.getAsyncToken();
  return isa<gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp, gpu::LaunchOp,
             gpu::LaunchFuncOp>(op) &&
         !cast<gpu::AsyncOpInterface>(op).getAsyncToken();
}

/// Makes `op` again with a token, behind `token`, and gives its own.
Value orderBehind(Operation *op, Value token) {
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(token.getType());
  Operation *made = Operation::create(
      op->getLoc(), op->getName(), types, op->getOperands(),
      op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
      op->getSuccessors(), op->getNumRegions());
  for (auto [from, to] : llvm::zip(op->getRegions(), made->getRegions()))
    to.takeBody(from);
  op->getBlock()->getOperations().insert(op->getIterator(), made);
  op->replaceAllUsesWith(made->getResults().drop_back());
  op->erase();
  auto ordered = cast<gpu::AsyncOpInterface>(made);
  ordered.addAsyncDependency(token);
  return ordered.getAsyncToken();
}

/// Orders what a region asks of devices, behind `token`; gives the token behind
/// all of it. Host code between waits for what comes before it.
Value orderBody(Block &body, Value token) {
  OpBuilder b(body.getParentOp()->getContext());
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    b.setInsertionPoint(&op);
    if (takesToken(&op)) {
      token = orderBehind(&op, token);
      continue;
    }
    auto wait = dyn_cast<gpu::WaitOp>(op);
    if (wait && !wait.getAsyncToken()) {
      SmallVector<Value> tokens(wait.getAsyncDependencies());
      tokens.push_back(token);
      token = waitFor(b, op.getLoc(), tokens);
      op.erase();
      continue;
    }
    const bool isOrdered = isMemoryEffectFree(&op) ||
                           isa<memref::AllocOp, async::ExecuteOp,
                               async::CreateGroupOp, async::AddToGroupOp>(op) ||
                           (isa<gpu::AsyncOpInterface>(op) &&
                            cast<gpu::AsyncOpInterface>(op).getAsyncToken());
    if (isOrdered)
      continue;
    waitOnHost(b, op.getLoc(), token);
    b.setInsertionPointAfter(&op);
    token = waitFor(b, op.getLoc(), {});
  }
  return token;
}

LogicalResult Inliner::inlineExecute(async::ExecuteOp execute) {
  OpBuilder b(execute);
  Block &body = *execute.getBody();
  SmallVector<Value> tokens;
  for (Value each : execute.getDependencies())
    tokens.push_back(tokenOf(each));
  for (auto [operand, argument] :
       llvm::zip(execute.getBodyOperands(), body.getArguments())) {
    Held from = held.lookup(operand);
    tokens.push_back(from.token);
    if (from.payload)
      argument.replaceAllUsesWith(from.payload);
  }
  if (llvm::is_contained(tokens, Value()))
    return refuse(execute);
  Value token = orderBody(body, waitFor(b, execute.getLoc(), tokens));
  for (auto [result, payload] :
       llvm::zip(execute.getBodyResults(), body.getTerminator()->getOperands()))
    held[result] = {payload, token};
  execute.getToken().replaceAllUsesWith(token);
  body.getTerminator()->erase();
  execute->getBlock()->getOperations().splice(execute->getIterator(),
                                              body.getOperations());
  return success();
}

LogicalResult Inliner::await(Operation *await) {
  OpBuilder b(await);
  Value operand = await->getOperand(0), token = tokenOf(operand);
  if (!token)
    return refuse(await);
  waitOnHost(b, await->getLoc(), token);
  if (await->getNumResults() == 1)
    await->getResult(0).replaceAllUsesWith(held.lookup(operand).payload);
  return success();
}

/// A token that another block adds is waited for at once, as nothing names it
/// where the group is awaited.
LogicalResult Inliner::addToGroup(async::AddToGroupOp add) {
  Value token = tokenOf(add.getOperand()), group = add.getGroup();
  if (!token || !add->use_empty() || !group.getDefiningOp())
    return refuse(add);
  if (group.getDefiningOp()->getBlock() == add->getBlock()) {
    groups[group].push_back(token);
    return success();
  }
  OpBuilder b(add);
  waitOnHost(b, add.getLoc(), token);
  return success();
}

LogicalResult Inliner::convert(Operation *op) {
  if (op->getParentOfType<gpu::LaunchOp>() ||
      op->getParentOfType<gpu::GPUModuleOp>())
    return refuse(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](async::ExecuteOp execute) { return inlineExecute(execute); })
      .Case([&](async::AwaitOp op) { return await(op); })
      .Case([&](async::CreateGroupOp) { return success(); })
      .Case([&](async::AddToGroupOp add) { return addToGroup(add); })
      .Case([&](async::AwaitAllOp all) {
        OpBuilder b(all);
        if (ArrayRef<Value> tokens = groups[all.getOperand()]; !tokens.empty())
          waitOnHost(b, all.getLoc(), tokens);
        return success();
      })
      .Default([](Operation *op) { return refuse(op); });
}

LogicalResult Inliner::inlineAll(ModuleOp module) {
  module.getContext()->loadDialect<gpu::GPUDialect>();
  SmallVector<Operation *> found;
  auto token = gpu::AsyncTokenType::get(module.getContext());
  auto retype = [&](ValueRange values) {
    for (Value value : values)
      if (isa<async::TokenType>(value.getType()))
        value.setType(token);
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa_and_nonnull<async::AsyncDialect>(op->getDialect()) &&
        !isa<async::YieldOp>(op))
      found.push_back(op);
    if (!isa_and_nonnull<scf::SCFDialect>(op->getDialect()))
      return;
    retype(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        retype(block.getArguments());
  });
  for (Operation *op : found)
    if (failed(convert(op)))
      return failure();
  for (Operation *op : llvm::reverse(found)) {
    if (!op->use_empty())
      return refuse(*op->user_begin());
    op->erase();
  }
  WalkResult left = module.walk([](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (llvm::any_of(block.getArgumentTypes(), isOfAsync))
          return WalkResult(refuse(op));
    return WalkResult(failure(llvm::any_of(op->getResultTypes(), isOfAsync) &&
                              failed(refuse(op))));
  });
  return failure(left.wasInterrupted());
}

} // namespace

void registerAsyncDialect(DialectRegistry &registry) {
  registry.insert<async::AsyncDialect>();
}

bool hasAsyncRegions(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_nonnull<async::AsyncDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult inlineAsyncRegions(ModuleOp module) {
  return Inliner().inlineAll(module);
}

} // namespace mgpu::conversion
