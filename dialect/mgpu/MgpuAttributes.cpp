// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect's attributes on operations of a program and its kernels: their
// names, and the verifiers of products and attentions.
#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <vector>

using namespace mlir;
using namespace mgpu::ir;

// The names of mgpu's attributes on operations, arguments and results: MLIR
// keeps a word that nobody reads, and nothing would ever say so.

bool mgpu::ir::isFactOfPasses(StringRef name) {
  static constexpr StringLiteral facts[] = {
      productName, attentionName, sparseName, clusterName, markName,
      "mgpu.dynamic_shared_bytes", "mgpu.fragment", "mgpu.launch_group",
      "mgpu.subgroup",
      // Facts of earlier versions, which say nothing any more.
      "mgpu.b_turned", "mgpu.matmul"};
  return llvm::is_contained(facts, name);
}

/// An error where none of `known` is the name; `of` is what has it.
static LogicalResult checkName(StringRef name, const std::string &of,
                               const std::vector<std::string> &known,
                               Location location) {
  if (llvm::is_contained(known, name))
    return success();
  return emitError(location) << of << " has no attribute '" << name << "'"
                             << mgpu::didYouMean(name.str(), known);
}

/// The operations that a mark may be on.
struct MarkPlace {
  Mark mark;
  StringLiteral named; ///< "is for ..."
  bool (*takes)(Operation *);
};

template <typename... Ops>
static bool isAny(Operation *op) {
  return isa<Ops...>(op);
}

static bool isIndex(Operation *op) {
  return op->getNumResults() == 1 && op->getResult(0).getType().isIndex();
}

static bool isForSm90(Operation *op) {
  const StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "nvgpu" || dialect == "nvvm" ||
         isa<UnrealizedConversionCastOp>(op);
}

static constexpr MarkPlace markPlaces[] = {
    {Mark::ProductLoop, "'scf.for'", isAny<scf::ForOp>},
    {Mark::GlobalX, "operations that give an index", isIndex},
    {Mark::GlobalY, "operations that give an index", isIndex},
    {Mark::GlobalZ, "operations that give an index", isIndex},
    {Mark::Instruction, "operations of nvgpu and nvvm", isForSm90},
    {Mark::Meaning, "'scf.for' and 'scf.if'", isAny<scf::ForOp, scf::IfOp>},
    {Mark::WarpgroupProduct, "'scf.for'", isAny<scf::ForOp>},
    {Mark::WholeLoop, "'scf.for'", isAny<scf::ForOp>},
    {Mark::Sentence, "'cf.assert'", isAny<cf::AssertOp>},
    {Mark::Forwarded, "'mgpu.alloc'", isAny<AllocOp>},
    {Mark::DeviceOnly, "'mgpu.alloc'", isAny<AllocOp>},
    {Mark::Head, "'mgpu.get_device'", isAny<GetDeviceOp>},
    {Mark::InOrder, "functions", isAny<FunctionOpInterface>},
    {Mark::OneDevice, "functions and 'mgpu.create_communicator'",
     isAny<FunctionOpInterface, CreateCommunicatorOp>},
    {Mark::AwaitsOthers, "'mgpu.launch'", isAny<LaunchOp>},
    {Mark::Workgroup, "'memref.alloca'", isAny<memref::AllocaOp>},
    {Mark::SparseOperand, "'memref.extract_aligned_pointer_as_index'",
     isAny<memref::ExtractAlignedPointerAsIndexOp>},
};

static LogicalResult verifyMark(Operation *op, Attribute attribute) {
  auto marks = dyn_cast<MarkAttr>(attribute);
  if (!marks)
    return op->emitOpError("has '") << markName << "', which is no #mgpu.mark";
  for (const MarkPlace &place : markPlaces)
    if (hasMark(op, place.mark) && !place.takes(op))
      return op->emitOpError("has the mark '")
             << stringifyMark(place.mark) << "', which is for " << place.named;
  return success();
}

LogicalResult MgpuDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> ofUsers = {"mgpu.name"};
  const StringRef name = attribute.getName();
  if (isa<ModuleOp>(op) && name == "mgpu.device_config")
    return emitError(op->getLoc())
           << "the devices are not an attribute of the module: write the "
              "operation `mgpu.device_config @config "
              "#mgpu.device_config<numDevices = N>` in it";
  if (name == productName)
    return verifyProduct(op, attribute.getValue());
  if (name == attentionName)
    return verifyAttention(op, attribute.getValue());
  if (name == markName)
    return verifyMark(op, attribute.getValue());
  if (isFactOfPasses(name))
    return success();
  return checkName(name, "'" + op->getName().getStringRef().str() + "' op",
                   ofUsers, op->getLoc());
}

LogicalResult MgpuDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.role"};
  Region &body = op->getRegion(region);
  return checkName(attribute.getName(), "an argument", known,
                   body.empty() ? op->getLoc()
                                : body.getArgument(argument).getLoc());
}

LogicalResult
MgpuDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                         NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.expect",
                                                 "mgpu.expected"};
  return checkName(attribute.getName(), "a result", known, op->getLoc());
}

MatrixAttr MatrixAttr::turned() const {
  return get(getContext(), getArgument(), getColumns(), getRows(),
             getColumnStride(), getRowStride(), getBatch(), getBatchStride(),
             getOffset());
}

LogicalResult ProductAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t m, int64_t n, int64_t k, Type a,
                                  Type b, Type c, int64_t batch, bool turned,
                                  bool overwrites,
                                  ArrayRef<MatrixAttr> matrices) {
  constexpr int64_t most = 1 << 30;
  for (int64_t size : {m, n, k, batch})
    if (size < 1 || size > most)
      return emitError() << "a size of a product is " << size
                         << "; sizes are from 1 to 2^30";
  for (Type type : {a, b, c})
    if (!type.isIntOrIndexOrFloat())
      return emitError() << "a product has numbers as elements, not " << type;
  if (matrices.empty())
    return success();
  const std::pair<int64_t, int64_t> sizes[] = {{m, k}, {k, n}, {m, n}};
  if (matrices.size() < 2 || matrices.size() > 3)
    return emitError() << "a product has the matrices A and B, or A, B and C";
  if (overwrites && matrices.size() == 2)
    return emitError() << "a product overwrites a C that it has";
  for (auto [index, matrix] : llvm::enumerate(matrices)) {
    if (std::pair(matrix.getRows(), matrix.getColumns()) != sizes[index] ||
        matrix.getBatch() != batch)
      return emitError() << "matrix " << index << " is not "
                         << sizes[index].first << " x " << sizes[index].second
                         << ", " << batch << " times";
    for (size_t other = 0; other < index; ++other)
      if (matrices[other].getArgument() == matrix.getArgument())
        return emitError() << "matrices " << other << " and " << index
                           << " are one argument";
  }
  const MatrixAttr inB = matrices[1];
  if (turned != (inB.getColumnStride() != 1 && inB.getRowStride() == 1))
    return emitError() << "B is turned where its columns are contiguous and "
                          "its rows are not";
  return success();
}

MatrixAttr mgpu::ir::matrixOf(FunctionOpInterface kernel, int64_t position) {
  if (position < 0 || position >= kernel.getNumArguments())
    return {};
  auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[position]);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type || !type.hasStaticShape() ||
      (type.getRank() != 2 && type.getRank() != 3) ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(strides, ShapedType::kDynamic) ||
      ShapedType::isDynamic(offset))
    return {};
  const unsigned last = unsigned(type.getRank()) - 1;
  const bool isBatch = last == 2;
  return MatrixAttr::get(
      kernel.getContext(), uint32_t(position), type.getDimSize(last - 1),
      type.getDimSize(last), strides[last - 1], strides[last],
      isBatch ? type.getDimSize(0) : 1, isBatch ? strides[0] : 0, offset);
}

/// Whether the launch's argument may be a batch of matrices of these sizes.
static bool mayBe(Value argument, Type element, int64_t batch, int64_t rows,
                  int64_t columns) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type || type.getElementType() != element ||
      (type.getRank() != 3 && (type.getRank() != 2 || batch != 1)))
    return false;
  const int64_t sizes[] = {batch, rows, columns};
  return llvm::all_of_zip(
      type.getShape(), ArrayRef(sizes).take_back(size_t(type.getRank())),
      [](int64_t size, int64_t wanted) {
        return ShapedType::isDynamic(size) || size == wanted;
      });
}

static bool mayBe(ProductAttr product, OperandRange arguments) {
  const int64_t m = product.getM(), n = product.getN(), k = product.getK(),
                batch = product.getBatch();
  return (arguments.size() == 2 || arguments.size() == 3) &&
         mayBe(arguments[0], product.getA(), batch, m, k) &&
         (product.getTurned()
              ? mayBe(arguments[1], product.getB(), batch, n, k)
              : mayBe(arguments[1], product.getB(), batch, k, n)) &&
         (arguments.size() == 2 ||
          mayBe(arguments[2], product.getC(), batch, m, n));
}

/// Whether the kernel's arguments are these matrices.
static bool hasMatrices(FunctionOpInterface kernel, ProductAttr product) {
  const Type types[] = {product.getA(), product.getB(), product.getC()};
  for (auto [type, matrix] : llvm::zip(types, product.getMatrices())) {
    const MatrixAttr given = matrixOf(kernel, matrix.getArgument());
    if (!given || (given != matrix && given != matrix.turned()) ||
        getElementTypeOrSelf(kernel.getArgumentTypes()[matrix.getArgument()]) !=
            type)
      return false;
  }
  return !product.getMatrices().empty();
}

LogicalResult mgpu::ir::verifyProduct(Operation *op, Attribute attribute) {
  auto product = dyn_cast<ProductAttr>(attribute);
  if (!product)
    return op->emitOpError("has 'mgpu.product', which is no #mgpu.product");
  auto launch = dyn_cast<LaunchOp>(op);
  auto kernel = dyn_cast<FunctionOpInterface>(op);
  if (!launch && !kernel)
    return op->emitOpError("cannot be a product: launches and kernels are");
  if (launch ? mayBe(product, launch.getArgs()) : hasMatrices(kernel, product))
    return success();
  return op->emitOpError("is a product, and its arguments are other matrices "
                         "than A, B and C");
}

LogicalResult
SparseProductAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          uint32_t kind, int64_t rows, int64_t columns,
                          int64_t entries, int64_t breadth, bool, bool,
                          ArrayRef<int64_t> operands) {
  constexpr uint32_t lastKind = 2; // kernels::SparseProduct::Sampled
  if (kind > lastKind)
    return emitError() << "there is no sparse product of kind " << kind;
  for (int64_t size : {rows, columns, entries, breadth})
    if (size < 1)
      return emitError() << "a size of a sparse product is " << size;
  if (!operands.empty() && operands.size() != 5)
    return emitError() << "a sparse product has 5 operands, not "
                       << operands.size();
  return success();
}

// The attribute #mgpu.attention, and that what has it has such buffers.

int64_t AttentionAttr::getBatchSize() const {
  int64_t all = 1;
  for (int64_t size : getBatch())
    all *= size;
  return all;
}

/// Whether the index is a sum of dimensions, each times a constant.
static bool isLinear(AffineExpr index) {
  auto both = dyn_cast<AffineBinaryOpExpr>(index);
  return !both || ((index.getKind() == AffineExprKind::Add ||
                    index.getKind() == AffineExprKind::Mul) &&
                   isLinear(both.getLHS()) && isLinear(both.getRHS()));
}

LogicalResult
AttentionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> batch, int64_t queries, int64_t keys,
                      int64_t head, int64_t value, ArrayAttr maps,
                      ArrayRef<int64_t> operands) {
  constexpr int64_t most = 1 << 30;
  SmallVector<int64_t> sizes(batch);
  sizes.append({queries, keys, head, value});
  int64_t all = 1;
  for (int64_t size : sizes)
    if (size < 1 || size > most)
      return emitError() << "a size of an attention is " << size
                         << "; sizes are from 1 to 2^30";
  constexpr int64_t mostBatches = 65535; // CUDA's blocks along y
  for (int64_t size : batch)
    if ((all *= size) > mostBatches)
      return emitError() << "an attention has a batch of at most "
                         << mostBatches;
  constexpr size_t buffers = 4;
  if (maps.size() != buffers || !llvm::all_of(maps, [&](Attribute each) {
        auto map = dyn_cast<AffineMapAttr>(each);
        return map && map.getValue().getNumDims() == sizes.size() &&
               map.getValue().getNumSymbols() == 0 &&
               llvm::all_of(map.getValue().getResults(),
                            [](AffineExpr index) { return isLinear(index); });
      }))
    return emitError() << "an attention has maps of Q, K, V and the result, "
                          "each of the batch's dimensions and four more";
  if (!operands.empty() && operands.size() != buffers)
    return emitError() << "an attention has 4 operands, not "
                       << operands.size();
  return success();
}

LogicalResult mgpu::ir::verifyAttention(Operation *op, Attribute attribute) {
  auto attention = dyn_cast<AttentionAttr>(attribute);
  if (!attention)
    return op->emitOpError("has 'mgpu.attention', which is no "
                           "#mgpu.attention");
  auto launch = dyn_cast<LaunchOp>(op);
  auto kernel = dyn_cast<FunctionOpInterface>(op);
  if (!launch && !kernel)
    return op->emitOpError("cannot be an attention: launches and kernels are");
  SmallVector<Type> types;
  if (launch)
    llvm::append_range(types, launch.getArgs().getTypes());
  for (int64_t position : attention.getOperands())
    if (kernel && position >= 0 && position < kernel.getNumArguments())
      types.push_back(kernel.getArgumentTypes()[size_t(position)]);
  const bool fits =
      types.size() == attention.getMaps().size() &&
      llvm::all_of(llvm::enumerate(types), [&](auto each) {
        auto type = dyn_cast<MemRefType>(each.value());
        return type &&
               type.getRank() == attention.getMap(each.index()).getNumResults();
      });
  return fits ? success()
              : op->emitOpError("is an attention, and its arguments are other "
                                "buffers than Q, K, V and the result");
}
