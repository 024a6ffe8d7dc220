// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_HOSTSCOPE_H
#define MGPU_PLANNER_IMPORT_HOSTSCOPE_H

// Holds what the host code's SSA values are known to be, and the recorder that
// its commands go to.

#include "planner/import/HostValue.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mgpu::planner {

/// Reports the diagnostic; the result is its error.
tl::unexpected<Error> reported(mlir::InFlightDiagnostic diagnostic,
                               ErrorKind kind = ErrorKind::Invalid);
/// Reports an operation that this version cannot capture.
tl::unexpected<Error> notSupported(mlir::Operation *op, const llvm::Twine &why);

class HostScope {
public:
  /// The recorder's findings become diagnostics at the operations concerned.
  explicit HostScope(RecorderOptions options);

  Recorder recorder;
  /// The operation being interpreted: findings about a call begin with its
  /// name.
  mlir::Operation *current = nullptr;

  Place placeOf(mlir::Location location);
  const HostValue &valueOf(mlir::Value value) const;
  void set(mlir::Value value, HostValue known) {
    values[value] = std::move(known);
  }
  /// The value from trip to trip of the rolled loop, if it changes; or null.
  const Induction *findInduction(mlir::Value value) const;

  // Each fails after a diagnostic at `op` if the value is not known to be one.
  Result<int64_t> integerOf(mlir::Operation *op, mlir::Value value,
                            const llvm::Twine &what) const;
  Result<int64_t> integerOf(mlir::Operation *op, mlir::OpFoldResult value,
                            const llvm::Twine &what) const;
  Result<View> memrefOf(mlir::Operation *op, mlir::Value value);
  /// memrefOf() without a copy, until the next value is set.
  Result<const View *> viewOf(mlir::Operation *op, mlir::Value value);
  Result<DeviceId> deviceOf(mlir::Operation *op, mlir::Value value) const;
  Result<SourceStream> streamOf(mlir::Operation *op, mlir::Value value) const;
  /// The op's own place, and its stream if `stream` is one.
  Result<CallSite> siteOf(mlir::Operation *op, mlir::Value stream);

  /// A whole new buffer of the type becomes what `result` is; `shape` is its
  /// shape where the type does not say it.
  BufferId allocate(mlir::Value result, std::string name, DeviceId device,
                    BufferRole role, std::vector<std::byte> contents = {},
                    std::optional<std::vector<int64_t>> shape = std::nullopt);
  /// The text of the recorder's last error.
  const std::string &lastError() const { return lastErrorText; }

private:
  void show(const Finding &finding);

  llvm::DenseMap<mlir::Value, HostValue> values;
  llvm::DenseMap<mlir::Location, Place> places;
  std::vector<mlir::Location> locations; ///< by place, from 1 on
  std::string lastErrorText;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_HOSTSCOPE_H
