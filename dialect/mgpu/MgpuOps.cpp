// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsers, printers, builders and result names. Verifiers are in
// MgpuVerify.cpp and MgpuCollectiveVerify.cpp.
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mgpu::ir;

using UnresolvedOperands = SmallVectorImpl<OpAsmParser::UnresolvedOperand>;

//===----------------------------------------------------------------------===//
// Custom directives
//===----------------------------------------------------------------------===//

static ParseResult parseDeviceConfig(OpAsmParser &parser,
                                     DeviceConfigAttr &config) {
  return parser.parseAttribute(config);
}

// With the attribute's name in front, as the dialect's document has it.
static void printDeviceConfig(OpAsmPrinter &printer, Operation *,
                              DeviceConfigAttr config) {
  printer.printAttribute(config);
}

/// Parses an enumerator, as a keyword or as a string.
template <typename EnumAttr>
static ParseResult parseEnumerator(OpAsmParser &parser, EnumAttr &attr,
                                   StringRef what, StringRef choices) {
  std::string name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&name))
    return failure();
  auto value = symbolizeEnum<decltype(attr.getValue())>(name);
  if (!value)
    return parser.emitError(loc, "unknown ")
           << what << " '" << name << "', expected " << choices;
  attr = EnumAttr::get(parser.getContext(), *value);
  return success();
}

static ParseResult parseReduction(OpAsmParser &parser,
                                  ReductionKindAttr &attr) {
  return parseEnumerator(parser, attr, "reduction kind",
                         "sum, prod, min or max");
}

static void printReduction(OpAsmPrinter &printer, Operation *,
                           ReductionKindAttr attr) {
  printer << stringifyReductionKind(attr.getValue());
}

static ParseResult parseSharding(OpAsmParser &parser, ShardKindAttr &attr) {
  return parseEnumerator(parser, attr, "shard kind",
                         "uniform, uneven or replicate");
}

static void printSharding(OpAsmPrinter &printer, Operation *,
                          ShardKindAttr attr) {
  printer << stringifyShardKind(attr.getValue());
}

/// Parses `[[a, b], [c, d]]` into a, b, c, d.
static ParseResult parsePairs(OpAsmParser &parser, DenseI64ArrayAttr &attr) {
  SmallVector<int64_t> numbers;
  auto parsePair = [&]() -> ParseResult {
    return failure(
        parser.parseLSquare() || parser.parseInteger(numbers.emplace_back()) ||
        parser.parseComma() || parser.parseInteger(numbers.emplace_back()) ||
        parser.parseRSquare());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePair))
    return failure();
  attr = DenseI64ArrayAttr::get(parser.getContext(), numbers);
  return success();
}

static void printPairs(OpAsmPrinter &printer, Operation *,
                       DenseI64ArrayAttr attr) {
  ArrayRef<int64_t> numbers = attr;
  printer << '[';
  for (size_t k = 0; k + 1 < numbers.size(); k += 2)
    printer << (k ? ", [" : "[") << numbers[k] << ", " << numbers[k + 1] << ']';
  printer << ']';
}

/// Parses `[a, b], [c, d]`, or `a, b, c, d`, which means the same.
template <typename Item, typename ParseItem>
static ParseResult parseTwo(OpAsmParser &parser, SmallVectorImpl<Item> &first,
                            SmallVectorImpl<Item> &second, StringRef what,
                            ParseItem parseItem) {
  auto parseList = [&](SmallVectorImpl<Item> &items) {
    return parser.parseCommaSeparatedList(
        [&] { return parseItem(items.emplace_back()); });
  };
  if (succeeded(parser.parseOptionalLSquare())) {
    auto parseRest = [&](SmallVectorImpl<Item> &items) -> ParseResult {
      if (succeeded(parser.parseOptionalRSquare()))
        return success();
      return failure(parseList(items) || parser.parseRSquare());
    };
    return failure(parseRest(first) || parser.parseComma() ||
                   parser.parseLSquare() || parseRest(second));
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parseList(first))
    return failure();
  if (first.size() % 2 != 0)
    return parser.emitError(loc, "a flat list must hold as many buffers as "
                                 "devices, got ")
           << first.size() << " " << what << " in all";
  second.append(first.begin() + first.size() / 2, first.end());
  first.truncate(first.size() / 2);
  return success();
}

static ParseResult parseTwoLists(OpAsmParser &parser, UnresolvedOperands &first,
                                 UnresolvedOperands &second) {
  return parseTwo(parser, first, second, "operands",
                  [&](OpAsmParser::UnresolvedOperand &operand) {
                    return parser.parseOperand(operand);
                  });
}

static void printTwoLists(OpAsmPrinter &printer, Operation *,
                          OperandRange first, OperandRange second) {
  printer << "[" << first << "], [" << second << "]";
}

static ParseResult parseTwoTypeLists(OpAsmParser &parser,
                                     SmallVectorImpl<Type> &first,
                                     SmallVectorImpl<Type> &second) {
  return parseTwo(parser, first, second, "types",
                  [&](Type &type) { return parser.parseType(type); });
}

static void printTwoTypeLists(OpAsmPrinter &printer, Operation *,
                              TypeRange first, TypeRange second) {
  printer << "[" << first << "], [" << second << "]";
}

//===----------------------------------------------------------------------===//
// destroy_stream, sync_stream: with or without the stream's device
//===----------------------------------------------------------------------===//

/// The device is not an operand of the op, so what can be checked of it is
/// checked here.
static ParseResult checkStreamDevice(OpAsmParser &parser, SMLoc loc,
                                     OperationName op, Value device,
                                     Value stream) {
  auto create = stream.getDefiningOp<CreateStreamOp>();
  if (!create || create->getNumOperands() != 1)
    return success();
  std::optional<int64_t> named = getConstantDeviceIndex(device);
  std::optional<int64_t> owner = getConstantDeviceIndex(create.getDevice());
  if (!named || !owner || *named == *owner)
    return success();
  return parser.emitError(loc, "the stream was created on device ")
         << *owner << ", not on device " << *named << rule(op, 1);
}

static ParseResult parseStreamOp(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand first, second;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperand(first))
    return failure();
  // A comma between the two is in nobody's grammar, and in everybody's fingers.
  bool needsSecond = succeeded(parser.parseOptionalComma());
  OptionalParseResult hasSecond = parser.parseOptionalOperand(second);
  if (hasSecond.has_value() && failed(*hasSecond))
    return failure();
  if (needsSecond && !hasSecond.has_value())
    return parser.emitError(parser.getCurrentLocation(), "expected a stream");

  SmallVector<Type, 2> types;
  SMLoc typeLoc;
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&typeLoc) || parser.parseTypeList(types))
    return failure();
  if (!hasSecond.has_value()) {
    if (types.size() != 1)
      return parser.emitError(typeLoc, "expected 1 type, got ") << types.size();
    return parser.resolveOperand(first, types[0], result.operands);
  }
  if (types.size() != 2)
    return parser.emitError(typeLoc, "expected 2 types, got ") << types.size();
  if (!isa<DeviceType>(types[0]))
    return parser.emitError(typeLoc, "the first of two operands must be a "
                                     "device handle, but it is ")
           << types[0];
  SmallVector<Value, 1> device;
  if (parser.resolveOperand(first, types[0], device) ||
      parser.resolveOperand(second, types[1], result.operands))
    return failure();
  return checkStreamDevice(parser, loc, result.name, device[0],
                           result.operands.back());
}

static void printStreamOp(OpAsmPrinter &printer, Operation *op) {
  printer << ' ' << op->getOperand(0);
  printer.printOptionalAttrDict(op->getAttrs());
  printer << " : " << op->getOperand(0).getType();
}

ParseResult DestroyStreamOp::parse(OpAsmParser &parser,
                                   OperationState &result) {
  return parseStreamOp(parser, result);
}

void DestroyStreamOp::print(OpAsmPrinter &printer) {
  printStreamOp(printer, *this);
}

ParseResult SyncStreamOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseStreamOp(parser, result);
}

void SyncStreamOp::print(OpAsmPrinter &printer) {
  printStreamOp(printer, *this);
}

//===----------------------------------------------------------------------===//
// launch
//===----------------------------------------------------------------------===//

void LaunchOp::build(OpBuilder &builder, OperationState &state, Value device,
                     ValueRange grid, ValueRange block, Value stream,
                     ValueRange args, TypeRange workgroupTypes,
                     Value dynamicSharedMemorySize) {
  state.addOperands(device);
  state.addOperands(args);
  state.addOperands(grid);
  state.addOperands(block);
  if (stream)
    state.addOperands(stream);
  if (dynamicSharedMemorySize)
    state.addOperands(dynamicSharedMemorySize);
  state.getOrAddProperties<Properties>().operandSegmentSizes = {
      1,
      static_cast<int32_t>(args.size()),
      static_cast<int32_t>(grid.size()),
      static_cast<int32_t>(block.size()),
      stream ? 1 : 0,
      dynamicSharedMemorySize ? 1 : 0};
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locs(workgroupTypes.size(), state.location);
  Region *body = state.addRegion();
  builder.createBlock(body, {}, workgroupTypes, locs);
  ensureTerminator(*body, builder, state.location);
}

/// `args(%a, %b : types)`, which may be absent.
static ParseResult parseLaunchArguments(OpAsmParser &parser,
                                        SmallVectorImpl<Value> &operands,
                                        size_t &count) {
  if (failed(parser.parseOptionalKeyword("args")))
    return success();
  SmallVector<OpAsmParser::UnresolvedOperand> args;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLParen() || parser.parseOperandList(args) ||
      (!args.empty() && parser.parseColonTypeList(types)) ||
      parser.parseRParen() ||
      parser.resolveOperands(args, types, loc, operands))
    return failure();
  count = args.size();
  return success();
}

/// Workgroup buffers, attributes, and the body, for which the attribute
/// "source" may stand.
static ParseResult parseLaunchBody(OpAsmParser &parser,
                                   OperationState &result) {
  SmallVector<OpAsmParser::Argument> workgroup;
  if (succeeded(parser.parseOptionalKeyword("workgroup")) &&
      parser.parseArgumentList(workgroup, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  OptionalParseResult hasBody = parser.parseOptionalRegion(*body, workgroup);
  if (hasBody.has_value() && failed(*hasBody))
    return failure();
  if (!hasBody.has_value() &&
      (!workgroup.empty() ||
       !result.attributes.get(LaunchOp::getSourceAttrName())))
    return parser.emitError(parser.getNameLoc(),
                            "expected the kernel's body, or the "
                            "attribute 'source' with a file of CUDA "
                            "C++ and no workgroup buffers");
  LaunchOp::ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

ParseResult LaunchOp::parse(OpAsmParser &parser, OperationState &result) {
  using Delimiter = OpAsmParser::Delimiter;
  Builder &builder = parser.getBuilder();
  Type deviceType = builder.getType<DeviceType>();
  Type streamType = builder.getType<StreamType>();
  Type indexType = builder.getIndexType();
  SmallVectorImpl<Value> &operands = result.operands;

  OpAsmParser::UnresolvedOperand device;
  if (parser.parseOperand(device) ||
      parser.resolveOperand(device, deviceType, operands))
    return failure();

  size_t numArgs = 0;
  SmallVector<OpAsmParser::UnresolvedOperand> grid, block;
  if (parseLaunchArguments(parser, operands, numArgs))
    return failure();
  if (parser.parseKeyword("grid") ||
      parser.parseOperandList(grid, Delimiter::Paren) ||
      parser.resolveOperands(grid, indexType, operands) ||
      parser.parseKeyword("block") ||
      parser.parseOperandList(block, Delimiter::Paren) ||
      parser.resolveOperands(block, indexType, operands))
    return failure();

  bool hasStream = succeeded(parser.parseOptionalKeyword("stream"));
  if (hasStream) {
    OpAsmParser::UnresolvedOperand stream;
    if (parser.parseOperand(stream) ||
        (succeeded(parser.parseOptionalColon()) &&
         parser.parseType(streamType)) ||
        parser.resolveOperand(stream, streamType, operands))
      return failure();
  }
  bool hasDynamic =
      succeeded(parser.parseOptionalKeyword("dynamic_shared_memory_size"));
  if (hasDynamic) {
    OpAsmParser::UnresolvedOperand size;
    if (parser.parseOperand(size) ||
        parser.resolveOperand(size, builder.getI32Type(), operands))
      return failure();
  }
  result.getOrAddProperties<Properties>().operandSegmentSizes = {
      1,
      static_cast<int32_t>(numArgs),
      static_cast<int32_t>(grid.size()),
      static_cast<int32_t>(block.size()),
      hasStream,
      hasDynamic};
  return parseLaunchBody(parser, result);
}

void LaunchOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getDevice();
  if (!getArgs().empty())
    printer << " args(" << getArgs() << " : " << getArgs().getTypes() << ")";
  printer << " grid(" << getGrid() << ") block(" << getBlock() << ")";
  if (getStream())
    printer << " stream " << getStream();
  if (getDynamicSharedMemorySize())
    printer << " dynamic_shared_memory_size " << getDynamicSharedMemorySize();
  bool hasIds = getNumIdArguments() != 0;
  if (!hasIds && !getBody().getArguments().empty()) {
    printer << " workgroup(";
    llvm::interleaveComma(
        getBody().getArguments(), printer,
        [&](BlockArgument arg) { printer.printRegionArgument(arg); });
    printer << ")";
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getOperandSegmentSizeAttr()});
  if (hasSource() && llvm::hasSingleElement(getBody().front()))
    return;
  printer << ' ';
  bool plain = getBody().front().getTerminator()->getAttrs().empty();
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/hasIds,
                      /*printBlockTerminators=*/!plain);
}

unsigned LaunchOp::getNumIdArguments() {
  unsigned count = 0;
  for (BlockArgument argument : getBody().getArguments()) {
    if (!argument.getType().isIndex())
      break;
    ++count;
  }
  return count;
}

void LaunchOp::replaceIdArguments() {
  unsigned count = getNumIdArguments();
  if (count == 0)
    return;
  Block &body = getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  for (unsigned k = 0; k < count; ++k) {
    BlockArgument argument = body.getArgument(k);
    if (argument.use_empty())
      continue;
    auto dimension = gpu::Dimension(k % 3);
    auto make = [&]() -> Value {
      Location loc = argument.getLoc();
      switch (k / 3) {
      case 0:
        return gpu::BlockIdOp::create(b, loc, dimension);
      case 1:
        return gpu::ThreadIdOp::create(b, loc, dimension);
      case 2:
        return gpu::GridDimOp::create(b, loc, dimension);
      default:
        return gpu::BlockDimOp::create(b, loc, dimension);
      }
    };
    argument.replaceAllUsesWith(make());
  }
  body.eraseArguments(0, count);
}

//===----------------------------------------------------------------------===//
// Result names
//===----------------------------------------------------------------------===//

void GetDeviceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  std::optional<int64_t> index = getConstantDeviceIndex(getDevice());
  if (!index)
    return setName(getDevice(), "dev");
  if (*index == hostDeviceIndex)
    return setName(getDevice(), "host");
  setName(getDevice(), ("dev" + Twine(*index)).str());
}

void CreateStreamOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getStream(), "stream");
}

void CreateCommunicatorOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getComm(), "comm");
}

void AllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getPtr(), "ptr");
}

void ShardedAllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (!getShards().empty())
    setName(getShards().front(), "shards");
}

#define GET_OP_CLASSES
#include "dialect/mgpu/MgpuOps.cpp.inc"
