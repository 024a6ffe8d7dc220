// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELHASH_H
#define MGPU_PLANNER_IMPORT_KERNELHASH_H

// Names a kernel in every process and file: SHA-256 of its content, taken from
// the operations of the launch. To print them takes ten times as long, and only
// who compiles a kernel needs its text.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/dag/Dag.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"

#include <string>
#include <unordered_map>

namespace mgpu::planner {

// A launch's body as a program of its own: a module with one function @entry
// whose arguments are the captured memrefs and scalars.

/// The form of one captured value in the kernel.
struct Capture {
  mlir::Value value;
  mlir::Type type; ///< of the kernel's argument; null for a cloned constant
  KernelArgument argument;
};

/// All that decides a kernel.
struct KernelParts {
  ir::LaunchOp launch;
  llvm::ArrayRef<Capture> captures; ///< each value that the body uses, once
  Dim3 block;
  int64_t dynamicSharedBytes = 0;
};

/// Whether the body can be taken out of the program. Fails after a diagnostic
/// at the operation that cannot.
mlir::LogicalResult checkKernelBody(ir::LaunchOp launch);

/// The module of a kernel whose body was checked.
mlir::OwningOpRef<mlir::ModuleOp> buildKernelModule(const KernelParts &kernel);

/// Where a matrix product's operands, the launch's `args`, are among the
/// arguments of its kernel; none of another kernel.
llvm::SmallVector<int64_t> productPositions(const KernelParts &kernel);

/// Whether every function that `root` calls, or these call, has a body. Fails
/// after a diagnostic at the call.
mlir::LogicalResult checkCallees(mlir::Operation *root, mlir::ModuleOp module);
/// Copies functions that were checked into the module of a kernel.
void cloneCallees(mlir::Operation *root, mlir::ModuleOp from,
                  mlir::ModuleOp into);

/// Notes them on the module's @entry, unless they are none.
void setDynamicSharedBytes(mlir::ModuleOp module, int64_t bytes);

/// With locations, which messages of the compiler name.
std::string printKernel(mlir::ModuleOp module);

/// The hashed bytes spell, in an order that can be read in one way only: the
/// block, what else KernelParts has, and of each operation its name,
/// attributes, operands by number, the types of its results, successors and
/// regions; then the functions it calls. Locations and names of values are left
/// out. Equal hashes: the modules buildKernelModule() makes differ in nothing
/// but these.
class KernelHasher {
public:
  /// Whether kernels that differ in constants of floating point do differ.
  enum class Floats { Hashed, LeftOut };

  /// Operations that were hashed must outlive this, unchanged.
  explicit KernelHasher(mlir::ModuleOp module, Floats floats = Floats::Hashed)
      : module(module), floats(floats) {}

  std::string hash(const KernelParts &kernel);
  /// Hashes a kernel that is not a launch's body.
  std::string hash(mlir::ModuleOp kernel, Dim3 block);

private:
  void word(uint64_t value);
  void text(llvm::StringRef value);
  void type(mlir::Type type);
  void spell(mlir::Type type);
  /// Alike in every kernel.
  void attribute(mlir::Attribute attribute);
  void header(mlir::Operation *op);
  void operation(mlir::Operation *op);
  void region(mlir::Region &region);
  void define(mlir::Value value);
  uint64_t numberOf(const void *pointer);
  void callees();
  void begin(Dim3 block);
  std::string finish();

  mlir::ModuleOp module;
  Floats floats;
  llvm::SmallString<1024> bytes; ///< the kernel at hand, as bytes
  llvm::SmallDenseMap<const void *, uint64_t, 64> numbers;
  llvm::SmallSetVector<mlir::Operation *, 4> called;
  /// Spelt once for all kernels: types, attributes by what they are, and
  /// operations' names and attributes by a hash of them.
  llvm::DenseMap<const void *, llvm::StringRef> spelt;
  struct Header {
    mlir::Operation *op;
    llvm::StringRef bytes;
  };
  std::unordered_multimap<size_t, Header> headers;
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saved{memory};
  std::optional<mlir::AsmState> printing;
  std::optional<mlir::SymbolTable> symbols;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELHASH_H
