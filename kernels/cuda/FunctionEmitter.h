// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_FUNCTIONEMITTER_H
#define MGPU_KERNELS_CUDA_FUNCTIONEMITTER_H

// Writes one function of a kernel as C++, an operation a statement. Each
// Emit*.cpp has the operations of one dialect, which it looks up by their type.

#include "facts/IndexRanges.h"
#include "kernels/cuda/BulkForm.h"
#include "kernels/cuda/CudaHelpers.h"
#include "kernels/cuda/SourceText.h"
#include "kernels/cuda/StagePlan.h"
#include "kernels/cuda/VectorForm.h"
#include "support/Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mgpu::kernels::cuda {

/// A size, stride or offset: a number, or an expression of type long long.
struct Extent {
  std::string text;
  std::optional<int64_t> value;

  Extent(int64_t value) : text(std::to_string(value)), value(value) {}
  explicit Extent(std::string text) : text(std::move(text)) {}
};

/// The form of a memref in C++: element i is base[offset + sum(i[k] *
/// strides[k])].
struct Pointer {
  std::string base; ///< a pointer variable
  Extent offset{0};
  /// MLIR's base of the buffer, and where `base` is from there; null where
  /// the pointer came through control flow and forgot.
  std::string root;
  std::optional<Extent> fromRoot;
  llvm::SmallVector<Extent> sizes, strides;
  /// A divisor of the address `base`, in elements, where `base` is a multiple
  /// of MGPU_ALIGN at all (IndexRanges.h).
  uint32_t divisor = 1;
};

/// The state that the functions of one kernel share.
struct KernelContext {
  KernelContext(Dim3 block, const facts::IndexRanges &ranges)
      : block(block), ranges(ranges) {}

  Dim3 block;
  Helpers helpers;
  const facts::IndexRanges &ranges;
  /// The C++ names of device functions.
  llvm::DenseMap<mlir::Operation *, std::string> functions;
  StagePlan stages;                           ///< of the entry
  BulkForm bulk;                              ///< of the entry
  llvm::DenseSet<mlir::Operation *> streamed; ///< StreamedLoads.h
  bool hasUnroll = false;                     ///< a loop asks MGPU_UNROLL
  bool needsSm80 = false;                     ///< which is said
  /// Functions that, or whose callees, ask for the thread's ids.
  llvm::DenseSet<mlir::Operation *> needThread;
};

class FunctionEmitter {
public:
  /// With `vectorForm`, emits the form for MGPU_VECTOR threads at once.
  FunctionEmitter(KernelContext &kernel, Text &out,
                  const VectorForm *vectorForm = nullptr)
      : kernel(kernel), out(out), vectorForm(vectorForm) {
    for (const auto &[function, name] : kernel.functions)
      names.reserve(name);
  }

  struct Parameter {
    std::string type, name;
  };
  /// Whether the text around it has globalX, and globalY and globalZ where the
  /// launch is longer than one thread along them: this thread's index.
  void setGlobals(bool has) { hasGlobals = has; }
  /// Names the arguments, the first of them `at` where the function needs it.
  mlir::FailureOr<std::vector<Parameter>> parameters(mlir::func::FuncOp f);
  /// "static __device__ int f(const int a)": without body or semicolon.
  mlir::FailureOr<std::string> signature(mlir::func::FuncOp f,
                                         llvm::StringRef name);
  mlir::LogicalResult body(mlir::func::FuncOp f);

private:
  using Value = mlir::Value;
  using Operation = mlir::Operation;
  using Type = mlir::Type;

  // Values. ------------------------------------------------------------
  /// The text of a scalar or vector in an expression: a name or literal.
  std::string use(Value value);
  /// A scalar's or vector's type: an index that fits in 32 bits is an int.
  std::string typeOf(Value value);
  bool isNarrow(Value value) { return kernel.ranges.fitsInt(value); }
  /// `use`, as a long long where it is an int.
  std::string asLongLong(Value value);
  /// `use`, as the unsigned type of the value's MLIR width.
  std::string asUnsigned(Value value);
  std::string freshName(Value value, llvm::StringRef otherwise = "v");
  /// const T name = expression;
  void bind(Value result, const std::string &expression);
  /// Declares variables without a value (one for a scalar, several for a
  /// memref) and lets them stand for `value`.
  void declare(Value value, llvm::StringRef name = "");
  /// The variables that stand for a value, and the expressions of one to give
  /// them: a memref is its pointer, then its dynamic sizes and strides.
  llvm::SmallVector<std::string> variables(Value value);
  llvm::SmallVector<std::string> components(Value value);
  llvm::SmallVector<std::string> componentTypes(Value value);
  void bindComponents(Value value, llvm::ArrayRef<std::string> names);
  /// to = from, all at once; temporaries where one reads what another wrote.
  void assign(mlir::ValueRange to, mlir::ValueRange from);
  /// The result lane by lane: `scalar` makes one from those of the operands.
  mlir::LogicalResult elementwise(
      Operation *op,
      llvm::function_ref<std::string(llvm::ArrayRef<std::string>)> scalar);
  /// for (int lane = first; lane < count; ++lane) statement;
  void forElements(int64_t count, const std::string &statement,
                   int64_t first = 0);
  /// Short statements, several to a line.
  void packed(llvm::ArrayRef<std::string> statements);
  std::string helper(llvm::StringRef name) {
    kernel.helpers.use(name);
    return name.str();
  }
  mlir::LogicalResult checkTypes(Operation *op);

  // Statements. ----------------------------------------------------------
  mlir::LogicalResult operation(Operation *op);
  /// The block's operations but its terminator.
  mlir::LogicalResult statements(mlir::Block &block);
  /// An operation, in each form that it has.
  mlir::LogicalResult statement(Operation *op);
  mlir::LogicalResult terminator(Operation *op);

  /// An operation of the dialect, or of several that go together; it is
  /// refused where there is no function for it.
  mlir::LogicalResult arithOp(Operation *op); ///< and ub, and index
  mlir::LogicalResult integerOp(Operation *op);
  mlir::LogicalResult mathOp(Operation *op);
  mlir::LogicalResult memrefOp(Operation *op);
  mlir::LogicalResult controlOp(Operation *op);
  mlir::LogicalResult gpuOp(Operation *op);
  mlir::LogicalResult matrixOp(Operation *op);
  mlir::LogicalResult vectorOp(Operation *op);
  mlir::LogicalResult nvidiaOp(Operation *op);

  // Arithmetic, of any dialect. --------------------------------------------
  /// The result is `a sign b`, or a call of the function with all operands.
  mlir::LogicalResult infix(Operation *op, llvm::StringRef sign);
  mlir::LogicalResult callOf(Operation *op, const std::string &name);
  mlir::LogicalResult addSubMul(Operation *op, char sign);
  mlir::LogicalResult divide(Operation *op, char sign, bool isSigned);
  mlir::LogicalResult compare(Operation *op, llvm::StringRef predicate);
  mlir::LogicalResult minMax(Operation *op, char sign, bool isSigned);
  mlir::LogicalResult rounded(Operation *op, llvm::StringRef name);
  mlir::LogicalResult ceilDivUnsigned(Operation *op);
  mlir::LogicalResult bitwise(Operation *op, char sign);
  mlir::LogicalResult shift(Operation *op, llvm::StringRef sign, bool isSigned);
  mlir::LogicalResult extended(Operation *op);
  mlir::LogicalResult countBits(Operation *op);
  mlir::LogicalResult integerCast(Operation *op);
  mlir::LogicalResult emitIndexCast(Operation *op);
  mlir::LogicalResult toFloat(Operation *op, bool isSigned);
  mlir::LogicalResult fromFloat(Operation *op, bool isSigned);
  mlir::LogicalResult emit(mlir::arith::ConstantOp op);
  mlir::LogicalResult emit(mlir::ub::PoisonOp op);
  mlir::LogicalResult emit(mlir::arith::SelectOp op);
  mlir::LogicalResult emit(mlir::arith::DivFOp op);
  mlir::LogicalResult emit(mlir::arith::ExtFOp op);
  mlir::LogicalResult emit(mlir::arith::TruncFOp op);
  mlir::LogicalResult emit(mlir::arith::BitcastOp op);
  mlir::LogicalResult emit(mlir::math::AbsIOp op);
  /// `expression`, of type int or wider, as the operation's element type.
  std::string narrow(Type type, const std::string &expression);
  /// v[0] * v[1] + v[2], rounded once.
  std::string fma(Type type, llvm::ArrayRef<std::string> v);
  std::string combine(mlir::gpu::AllReduceOperation kind, Type type,
                      const std::string &a, const std::string &b);

  // Vectors. ---------------------------------------------------------------
  void setElements(Value result, int64_t count,
                   llvm::function_ref<std::string(int64_t)> value);
  mlir::LogicalResult moveRow(Operation *op, Value memref,
                              mlir::ValueRange indices, Value value,
                              bool isStore);
  mlir::LogicalResult emit(mlir::vector::LoadOp op);
  mlir::LogicalResult emit(mlir::vector::StoreOp op);
  mlir::LogicalResult emit(mlir::vector::BroadcastOp op);
  mlir::LogicalResult emit(mlir::vector::FMAOp op);
  mlir::LogicalResult emit(mlir::vector::ShuffleOp op);
  mlir::LogicalResult emit(mlir::vector::ShapeCastOp op);
  mlir::LogicalResult emit(mlir::vector::ExtractOp op);
  mlir::LogicalResult emit(mlir::vector::InsertOp op);
  mlir::LogicalResult emit(mlir::vector::ReductionOp op);
  mlir::LogicalResult emit(mlir::vector::FromElementsOp op);
  mlir::LogicalResult emit(mlir::vector::ToElementsOp op);
  mlir::LogicalResult emit(mlir::vector::StepOp op);
  std::optional<std::pair<std::string, int64_t>>
  partAt(mlir::VectorType type, llvm::ArrayRef<mlir::OpFoldResult> position);

  // Control. -----------------------------------------------------------------
  void writeUnroll(mlir::scf::ForOp op);
  mlir::LogicalResult emit(mlir::scf::ForOp op);
  mlir::LogicalResult emit(mlir::scf::WhileOp op);
  mlir::LogicalResult emit(mlir::scf::IfOp op);
  mlir::LogicalResult emit(mlir::scf::IndexSwitchOp op);
  mlir::LogicalResult emit(mlir::scf::ExecuteRegionOp op);
  mlir::LogicalResult emit(mlir::func::CallOp op);
  mlir::LogicalResult emit(mlir::cf::AssertOp op);
  void giveYields(mlir::Region &region, mlir::ResultRange results);
  /// The statements of one of its regions, and what it yields.
  mlir::LogicalResult branchOfIf(mlir::scf::IfOp op, mlir::Region &region);
  mlir::LogicalResult emitCombiner(mlir::Region &region, Operation *op,
                                   std::string &name);

  // Memory. ------------------------------------------------------------------
  const Pointer &pointerOf(Value value);
  /// The lvalue of one element.
  std::string element(Value memref, mlir::ValueRange indices);
  /// The text of what a load reads: an element of its buffer, or of the
  /// buffer's tile.
  std::string loaded(mlir::memref::LoadOp load);
  std::string linear(const Pointer &pointer, mlir::ValueRange indices,
                     bool withOffset);
  /// A divisor of the address of an element, in elements (IndexRanges.h).
  uint32_t divisorAt(Value memref, mlir::ValueRange indices);
  /// A divisor for what a load reads: its buffer or, with MGPU_STAGE, its tile.
  uint32_t divisorAt(mlir::memref::LoadOp load);
  mlir::LogicalResult emit(mlir::memref::LoadOp op);
  mlir::LogicalResult emit(mlir::memref::StoreOp op);
  mlir::LogicalResult emit(mlir::memref::AllocaOp op);
  mlir::LogicalResult emit(mlir::memref::SubViewOp op);
  mlir::LogicalResult emit(mlir::memref::ReinterpretCastOp op);
  mlir::LogicalResult emit(mlir::memref::ViewOp op);
  mlir::LogicalResult emit(mlir::memref::DimOp op);
  mlir::LogicalResult emit(mlir::memref::ExtractStridedMetadataOp op);
  mlir::LogicalResult emitReshape(Operation *op);
  mlir::LogicalResult emitSameMemory(Operation *op);
  /// A size, stride or offset as the result of an operation.
  void give(mlir::Value result, const Extent &extent);
  mlir::LogicalResult emit(mlir::memref::AtomicRMWOp op);
  mlir::LogicalResult emit(mlir::memref::GenericAtomicRMWOp op);
  std::string updated(mlir::arith::AtomicRMWKind kind, Type type,
                      const std::string &value);
  Extent extentOf(mlir::OpFoldResult value);
  /// "const float *" for memrefs that are only read.
  std::string pointerType(Value memref);

  // Several threads at once (VectorForm.h).
  // --------------------------------------
  mlir::LogicalResult vectorFormOperation(Operation *op);
  mlir::LogicalResult partsOf(Operation *op);
  mlir::FailureOr<bool> partsAccess(Operation *op);
  mlir::LogicalResult partsIf(mlir::scf::IfOp op);
  unsigned ifsTogether = 0; ///< around, that all parts of a thread take
  mlir::LogicalResult partsAlloca(mlir::memref::AllocaOp op);
  /// A loop over the parts, each with its own ids where `op` asks for them.
  void openParts(Operation *op);
  bool asksIds(Operation *op) const;
  void closeParts();
  /// Lets an array stand for the value; its declaration.
  std::string newParts(Value value, llvm::StringRef name = "");
  /// Whether a value is an array of parts here.
  bool isParts(Value value) const {
    return vectorForm && !inPart && vectorForm->isVarying(value);
  }

  // GPU. ----------------------------------------------------------------------
  std::string linearThread();
  std::string numThreads() { return std::to_string(kernel.block.volume()); }
  std::string threadAlong(mlir::gpu::Dimension dim);
  std::string partsOfReduced(const std::string &type, const std::string &value);
  std::string combinerOf(mlir::gpu::AllReduceOperation kind, Type type);
  /// The lane that each lane reads, and where that has a value.
  struct LanesRead {
    std::string formula, valid;
  };
  mlir::LogicalResult
  exchange(Operation *op, llvm::function_ref<LanesRead(const std::string &lane,
                                                       const std::string &from)>
                              read);
  mlir::LogicalResult emit(mlir::gpu::GlobalIdOp op);
  mlir::LogicalResult emit(mlir::gpu::BarrierOp op);
  mlir::LogicalResult emit(mlir::gpu::DynamicSharedMemoryOp op);
  mlir::LogicalResult emit(mlir::gpu::AllReduceOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupReduceOp op);
  mlir::LogicalResult emit(mlir::gpu::ShuffleOp op);
  mlir::LogicalResult emit(mlir::gpu::RotateOp op);
  mlir::LogicalResult emit(mlir::gpu::PrintfOp op);
  mlir::LogicalResult emit(mlir::nvgpu::DeviceAsyncCopyOp op);
  mlir::LogicalResult emit(mlir::nvgpu::LdMatrixOp op);
  void instruction(Operation *op);
  void makeBarrier(mlir::nvgpu::MBarrierInitOp op);
  void arrive(mlir::nvgpu::MBarrierArriveOp op);
  std::string tensorCopy(llvm::StringRef function, mlir::Value descriptor,
                         mlir::Value memory, mlir::ValueRange coordinates,
                         const std::string &between);
  void loadTensor(mlir::nvgpu::TmaAsyncLoadOp op);
  void storeTensor(mlir::nvgpu::TmaAsyncStoreOp op);
  void multiplyWarpgroup(const WarpgroupProduct &product);
  void onlyBulk(llvm::ArrayRef<std::string> lines);
  std::string barrierAt(Value group, Value index);
  std::string startOf(Value memref);
  /// Between memory and the elements, `name`, that this lane has of a matrix.
  mlir::LogicalResult moveMatrix(Value memory, mlir::ValueRange indices,
                                 int64_t leading, bool isTransposed,
                                 mlir::gpu::MMAMatrixType type,
                                 const std::string &name, bool isStore);
  /// An error in the text for earlier GPUs, once: "a needs the b".
  void requireSm80(const std::string &what);
  void fillMatrix(Value result, const std::string &expression);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaLoadMatrixOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaStoreMatrixOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaComputeOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaConstantMatrixOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaElementwiseOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaExtractThreadLocalOp op);
  mlir::LogicalResult emit(mlir::gpu::SubgroupMmaInsertThreadLocalOp op);
  std::string matrixElement(mlir::gpu::MMAElementwiseOp kind, Type type,
                            Type from, const std::string &a,
                            const std::string &b);

  KernelContext &kernel;
  Text &out;
  Names names;
  llvm::DenseMap<Value, std::string> scalars;
  llvm::DenseMap<Value, Pointer> pointers;
  const VectorForm *vectorForm;
  bool hasGlobals = false;
  bool inPart = false;    ///< in a loop over the parts
  bool hasOwnIds = false; ///< there, and `at` is the part's
  /// Results of the operation being emitted that are declared already.
  llvm::DenseSet<Value> declared;
  /// The names that a return gives to: reference parameters, if several.
  llvm::SmallVector<std::string> returned;
};

/// The parameter that is a tensor map; no name of the source begins so.
inline std::string tensorMapName(size_t map) {
  return "mgpuMap" + std::to_string(map);
}

/// Whether a store, an atomic or a use we do not follow reaches the memref.
bool mayBeWritten(mlir::Value memref, unsigned depth = 0);

/// "cannot be emitted as CUDA C++", and why, at the operation.
mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &why = "");

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_FUNCTIONEMITTER_H
